"""The spans of calls, as trees in plain sight."""

import asyncio
import threading
from typing import Never

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retry,
    Service,
    Worker,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    step,
    workflow,
)
from rehydrate.errors import CheckpointNotFoundError, MessageTypeError, RunFailedError
from rehydrate.testing import run_virtually
from tests.observers.claims import Claim, payment
from tests.observers.kit import Sdk


@pytest.fixture
def sdk() -> Sdk:
    """An SDK of its own for each test."""
    return Sdk()


def test_a_nested_run_is_a_tree_by_scope(sdk: Sdk) -> None:
    """The call has one span; below it stand attempts and commits, and those of a sub-workflow below its own."""
    flow = payment(sdk.observer(), store=InMemoryCheckpointStorage())
    assert asyncio.run(flow.run(Claim("c-1", 90), run_id="r")).outputs == ["c-1 paid"]
    assert sdk.tree() == [
        "workflow.run IDLE",
        "  checkpoint.save message",
        "  executor.process intake",
        "    message.send intake review",
        "  checkpoint.save superstep",
        "  checkpoint.save superstep",
        "  workflow.run review#1",
        "    executor.process review#1 assess",
        "      message.send review#1 assess pay",
        "  executor.process pay",
        "  checkpoint.save superstep",
    ]
    root = sdk.spans[-1]
    assert (root.status.status_code, root.parent, root.links) == (StatusCode.UNSET, None, ())
    assert dict(root.attributes) == {
        "rehydrate.workflow.name": "payment",
        "rehydrate.workflow.version": 1,
        "rehydrate.run.id": "r",
        "rehydrate.turn.cause": "message",
        "rehydrate.turn.number": 1,
        "rehydrate.turn.replayed": False,
        "rehydrate.run.status": "IDLE",
        "rehydrate.run.open_requests": 0,
    }
    assert dict(sdk.named("executor.process")[1].attributes) == {
        "rehydrate.workflow.name": "payment",
        "rehydrate.run.id": "r",
        "rehydrate.scope.path": "review#1",
        "rehydrate.superstep.number": 1,
        "rehydrate.executor.id": "assess",
        "rehydrate.executor.activation": 1,
        "rehydrate.executor.attempt": 1,
        "rehydrate.outcome": "finished",
    }


def test_a_pause_ends_its_span_and_the_resuming_one_links_back(sdk: Sdk) -> None:
    """The span of the call that pauses is over; the next call has a trace of its own with a link, and so on."""
    flow = payment(sdk.observer(), store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        paused = await flow.run(Claim("c-1", 5000))
        assert sdk.tree()[0] == "workflow.run IDLE_WITH_PENDING_REQUESTS"
        sdk.exporter.clear()
        await flow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])
        assert sdk.tree() == [
            "workflow.run IDLE",
            "  checkpoint.restore",
            "  checkpoint.save answers",
            "  checkpoint.save superstep",
            "  workflow.run review#1",
            "    executor.process review#1 assess",
            "      message.send review#1 assess pay",
            "  executor.process pay",
            "  checkpoint.save superstep",
        ]

    asyncio.run(scenario())


def test_each_call_links_to_the_one_before(sdk: Sdk) -> None:
    """A second turn, a fork, and a turn after one that nobody observed, link to the newest that was observed."""
    store = InMemoryCheckpointStorage()
    flow, unseen = payment(sdk.observer(), store=store), payment(store=store)

    async def scenario() -> list[object]:
        first = await flow.run(Claim("a", 1))
        second = await flow.run(Claim("b", 1), checkpoint=first)
        third = await unseen.run(Claim("c", 1), checkpoint=second)
        await flow.run(Claim("d", 1), checkpoint=third)
        await flow.run(Claim("e", 1), checkpoint=first, fork=True)

    asyncio.run(scenario())
    roots = [span for span in sdk.named("workflow.run") if span.parent is None]
    ids = [span.context.span_id for span in roots]
    assert [[link.context.span_id for link in span.links] for span in roots] == [[], ids[:1], ids[1:2], ids[:1]]
    assert all(link.context.is_remote for span in roots for link in span.links)
    assert len({span.context.trace_id for span in roots}) == 4


def test_a_failure_has_its_type_and_not_its_text(sdk: Sdk) -> None:
    """Attempt, scope and call are marked as failed with the type of the exception; no event holds its text."""
    flow = payment(sdk.observer())
    with pytest.raises(RunFailedError):
        asyncio.run(flow.run(Claim("c-1", -1)))
    assert sdk.tree() == [
        "workflow.run FAILED ValueError",
        "  executor.process intake",
        "    message.send intake review",
        "  workflow.run review#1 ValueError",
        "    executor.process review#1 assess failed ValueError",
    ]
    root = sdk.spans[-1]
    assert (root.status.status_code, root.status.description) == (StatusCode.ERROR, None)
    assert root.attributes["rehydrate.failure.place"] == "review#1/assess"
    assert [span.events for span in sdk.spans] == [()] * 5


def test_a_call_that_is_refused_is_a_failed_span(sdk: Sdk) -> None:
    """What fails before anything has run is told too: a checkpoint that is not there, a message of a wrong type."""
    flow = payment(sdk.observer(), store=InMemoryCheckpointStorage())
    for options, error in (({"checkpoint": "none"}, CheckpointNotFoundError), ({"message": 7}, MessageTypeError)):
        with pytest.raises(error):
            asyncio.run(flow.run(**options))
    assert sdk.tree() == [
        "workflow.run CheckpointNotFoundError",
        "  checkpoint.restore CheckpointNotFoundError",
        "workflow.run MessageTypeError",
    ]


def test_attempts_that_fail_or_take_too_long_have_spans_of_their_own(sdk: Sdk) -> None:
    """A retry is a further span with the next number; a timeout has its own type of error."""

    @executor(id="flaky", retry=Retry(attempts=3, delay=5.0), timeout=1.0)
    async def flaky(text: str, ctx: WorkflowContext[Never, str]) -> None:
        if ctx.attempt == 1:
            raise OSError(text)
        if ctx.attempt == 2:
            await asyncio.Event().wait()
        ctx.yield_output(text)

    flow = WorkflowBuilder("flaky", flaky, observers=[sdk.observer()]).build()
    run_virtually(flow.run("x"))
    assert sdk.tree() == [
        "workflow.run IDLE",
        "  executor.process flaky failed OSError",
        "  executor.process flaky failed InvocationTimeoutError",
        "  executor.process flaky",
    ]
    numbers = [span.attributes["rehydrate.executor.attempt"] for span in sdk.named("executor.process")]
    assert numbers == [1, 2, 3]


def test_a_cancelled_run_leaves_its_attempt(sdk: Sdk) -> None:
    """What was cancelled is no error: the attempt was left, and the run says that it was cancelled."""

    @executor(id="slow")
    async def slow(text: str) -> None:
        await asyncio.Event().wait()

    flow = WorkflowBuilder("slow", slow, observers=[sdk.observer()]).build()

    async def scenario() -> None:
        async with flow.run("x", stream=True) as stream:
            await anext(stream)

    asyncio.run(scenario())
    assert sdk.tree() == ["workflow.run CANCELLED", "  executor.process slow left"]
    assert {span.status.status_code for span in sdk.spans} == {StatusCode.UNSET}


def test_spans_of_the_handlers_own_libraries_stand_below_its_own(sdk: Sdk) -> None:
    """The span is current while a handler runs, in a thread too; the call itself stands below the caller's span."""
    tracer = sdk.tracers.get_tracer("a library")
    threads = set()

    @executor(id="asks")
    async def asks(text: str) -> str:
        with tracer.start_as_current_span("GET"):
            return text

    @executor(id="computes")
    def computes(text: str) -> str:
        threads.add(threading.get_ident())
        with tracer.start_as_current_span("SELECT"):
            return text

    flow = WorkflowBuilder("both", asks, observers=[sdk.observer()]).add_chain([asks, computes]).build()

    async def scenario() -> None:
        with tracer.start_as_current_span("POST /claims") as request:
            await flow.run("x")
            assert trace.get_current_span() is request

    asyncio.run(scenario())
    assert sdk.tree() == [
        "POST /claims",
        "  workflow.run IDLE",
        "    executor.process asks",
        "      GET",
        "      message.send asks computes",
        "    executor.process computes",
        "      SELECT",
    ]
    assert threads.isdisjoint({threading.get_ident()})


def test_steps_of_a_function_stand_below_its_pass(sdk: Sdk) -> None:
    """A pass that waits is paused; its steps have spans with their names, which are current while they run."""
    tracer = sdk.tracers.get_tracer("a library")

    @step(retry=Retry(attempts=2))
    async def price(item: str) -> int:
        with tracer.start_as_current_span("GET"):
            if not tried:
                tried.append(item)
                raise ConnectionError(item)
        return 5

    tried: list[str] = []

    @workflow(observers=[sdk.observer()], types=[bool])
    async def order(item: str, ctx: FunctionalContext) -> str:
        cost = await price(item)
        agreed = await ctx.request_info(f"{cost} for {item}?", response_type=bool)
        return "ordered" if agreed else "refused"

    async def scenario() -> None:
        paused = await order.run("piano")
        await order.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])

    run_virtually(scenario())
    assert sdk.tree() == [
        "workflow.run IDLE_WITH_PENDING_REQUESTS",
        "  executor.process order paused",
        "    step.process order price failed ConnectionError",
        "      GET",
        "    step.process order price",
        "      GET",
        "workflow.run IDLE",
        "  checkpoint.restore",
        "  executor.process order",
    ]


def test_what_a_service_and_a_worker_start_is_observed(sdk: Sdk) -> None:
    """Observers belong to the workflow, so that every way to run it is seen."""
    store = InMemoryCheckpointStorage(keep_events=True)
    service = Service(store, [payment(sdk.observer())])

    async def scenario() -> None:
        async with service.start("payment", Claim("a", 1), run_id="r") as stream:
            await stream.result()
        await service.offer("r", Claim("b", 1))
        assert await Worker(service).finish() == 1

    asyncio.run(scenario())
    roots = [span for span in sdk.named("workflow.run") if span.parent is None]
    assert [span.attributes["rehydrate.turn.number"] for span in roots] == [1, 2]
    assert roots[1].links[0].context.span_id == roots[0].context.span_id


def test_without_an_sdk_nothing_is_kept_in_the_run() -> None:
    """The API alone makes spans that are none, and no context of one comes into the record."""
    from rehydrate import OpenTelemetryObserver  # noqa: PLC0415  (here with the global providers, of which there are none)

    observed = payment(OpenTelemetryObserver())
    result = asyncio.run(observed.run(Claim("a", 1)))
    assert result.checkpoint.records.get("", "turn", "").trace == ""
