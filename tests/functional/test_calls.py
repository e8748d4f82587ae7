"""A functional workflow has the whole call surface of a workflow, with the same meaning."""

import asyncio

import pytest

from rehydrate import (
    FunctionalContext,
    Retry,
    RunHistory,
    Runner,
    SqliteCheckpointStorage,
    Status,
    WorkflowBuilder,
    WorkflowExecutor,
    current_step,
    step,
    workflow,
)
from rehydrate.errors import (
    IdempotencyKeyError,
    MessageTypeError,
    MissingResourceError,
    RunExistsError,
    StaleCheckpointError,
    StepFailedError,
    WorkflowCheckpointException,
)
from rehydrate.model.events import (
    AttemptFailed,
    Emitted,
    OutputYielded,
    RequestOpened,
    StatusChanged,
    TurnStarted,
)
from tests.functional.book import Gate, answers, bounded, failed, ledger, run


def test_the_same_call_again_and_one_that_exists(book, store):
    """A run id that exists is an error; the same call with its key is the recorded result."""
    options = {"run_id": "r", "idempotency_key": "k"}
    first = run(ledger(book, store), "a", **options)
    again = run(ledger(book, store), "a", **options)
    assert (again.replayed, again.outputs, again.checkpoint_id) == (True, ["1: A"], first.checkpoint_id)
    with pytest.raises(IdempotencyKeyError):
        run(ledger(book, store), "b", **options)
    with pytest.raises(RunExistsError):
        run(ledger(book, store), "b", run_id="r")
    assert book.took() == ["note a"]


def test_a_paused_turn_is_replayed_with_its_question(book, store):
    """The result of a turn that waits is given again with the open question, and nothing runs."""
    first = run(ledger(book, store), "a?", idempotency_key="k")
    again = run(ledger(book, store), "a?", idempotency_key="k")
    assert (again.replayed, again.run_id) == (True, first.run_id)
    assert [r.request_id for r in again.pending_requests] == [r.request_id for r in first.pending_requests]
    assert book.took() == ["note a?"]


def test_answers_and_a_message_in_one_call(book, store):
    """Restore, answer and new turn in one commit: both outputs come in their order."""
    first = run(ledger(book, store), "a?", run_id="r")
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", responses=answers(first, "!"))
    assert (second.outputs, second.turn, second.pending_requests) == (["1: A?!", "2: B"], 2, ())
    third = run(ledger(book, store), "c", checkpoint=second)
    assert third.outputs == ["3: C"]


def test_an_old_checkpoint_is_stale_and_can_be_forked(book, store):
    """A fork goes its own way from there; the old request's answer is taken by both."""
    first = run(ledger(book, store), "a?", run_id="r")
    forked = run(ledger(book, store), checkpoint=first, fork=True, run_id="s", responses=answers(first, " fork"))
    own = run(ledger(book, store), responses=answers(first, " own"))
    assert (forked.run_id, forked.outputs, own.outputs) == ("s", ["1: A? fork"], ["1: A? own"])
    with pytest.raises(StaleCheckpointError):
        run(ledger(book, store), "b", checkpoint=first)
    assert book.took() == ["note a?"]


def test_two_calls_do_what_one_does(book, store):
    """First restore, then bring the message and the answer: nothing is computed in between."""
    run(ledger(book, store), "a?", run_id="r")
    book.took()
    made = ledger(book, store)
    restored = run(made, checkpoint="latest", run_id="r")
    assert book.took() == []
    second = run(made, "b", checkpoint=restored, responses=answers(restored, "!"))
    assert (second.outputs, book.took()) == (["1: A?!", "2: B"], ["note b"])


def test_a_session_supplies_run_and_checkpoint(book, store):
    """A chat of three messages, one of them answered through the session."""
    session = ledger(book, store).session("chat")
    first = asyncio.run(session.run("a"))
    second = asyncio.run(session.run("b?"))
    third = asyncio.run(session.run(responses=answers(second, "!")))
    later = asyncio.run(ledger(book, store).session("chat").resume("latest", "c"))
    assert [first.outputs, third.outputs, later.outputs] == [["1: A"], ["2: B?!"], ["3: C"]]


def test_without_a_store_the_checkpoint_object_goes_on(book):
    """Also twice, each independently, in other objects of the workflow."""
    first = run(ledger(book), "a?")
    for answer in ("one", "two"):
        assert (
            run(ledger(book), checkpoint=first.checkpoint, responses=answers(first, answer)).output == f"1: A?{answer}"
        )
    assert book.took() == ["note a?"]


def test_a_runner_captures_and_restores_a_waiting_function(book):
    """The object taken from one runner is put into another, which goes on with the answer."""

    async def scenario():
        runner = Runner(ledger(book))
        first = await runner.run("a?")
        taken = await runner.capture_checkpoint_object()
        other = Runner(ledger(book))
        await other.restore_from_checkpoint_object(taken)
        return await other.run(responses=answers(first, "!"))

    assert asyncio.run(scenario()).output == "1: A?!"
    assert book.took() == ["note a?"]


def test_a_runner_captures_nothing_of_a_function_that_runs(book):
    """Quiescent only by default: a step that runs is work in flight; asked for, it is captured with what is done."""

    async def scenario():
        gate = book.gates["b"] = Gate()
        note = book.step()

        @workflow(name="two")
        async def two(text: str) -> str:
            return await note("a") + await note("b")

        runner = Runner(two)
        call = asyncio.create_task(runner.run("x"))
        await gate.entered.wait()
        with pytest.raises(WorkflowCheckpointException):
            await runner.capture_checkpoint_object()
        taken = await runner.capture_checkpoint_object(in_flight=True)
        gate.opened.set()
        await call
        return await two.run(checkpoint=taken)

    assert asyncio.run(scenario()).output == "AB"
    assert book.took() == ["note a", "note b", "note b"]


def test_a_stream_answers_in_the_turn_that_asks(book, store):
    """The answer comes while another branch works; it is part of the turn, and events come as they happen."""

    async def scenario():
        gate = book.gates["slow"] = Gate()
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def below(text: str, ctx: FunctionalContext) -> str:
            return await ctx.request_info(text, response_type=str)

        @workflow(name="above", checkpoint_storage=store, calls=[below])
        async def above(text: str, ctx: FunctionalContext) -> str:
            return " ".join(await ctx.gather(ctx.call(below, text), note("slow")))

        stream = above.run("Pay?", run_id="r", stream=True)
        async for event in stream:
            if isinstance(event, RequestOpened):
                await stream.answer({event.request_id: "yes"})
                gate.opened.set()
        return await stream.result()

    result = asyncio.run(scenario())
    assert (result.output, result.turn, result.status) == ("yes SLOW", 1, Status.IDLE)


def test_the_events_of_a_stream_tell_what_happens(book, store):
    """Progress, failed attempts, questions, outputs and statuses, in order; a replay tells no progress again."""

    def flow():
        failures = iter([OSError("once")])

        @step(retry=Retry(attempts=2, delay=0.0))
        async def risky() -> str:
            for failure in failures:
                raise failure
            return "done"

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            ctx.emit("begins")
            found = await risky()
            ctx.emit("asks")
            found += await ctx.request_info(text, response_type=str)
            ctx.emit("ends")
            return found

        return flow

    async def told(*arguments, **options):
        return [event async for event in flow().run(*arguments, stream=True, **options)]

    kinds = (TurnStarted, Emitted, AttemptFailed, RequestOpened, OutputYielded, StatusChanged)
    first = [event for event in asyncio.run(told("?", run_id="r")) if isinstance(event, kinds)]
    assert [type(event).__name__ for event in first if not isinstance(event, StatusChanged)] == [
        "TurnStarted",
        "Emitted",
        "AttemptFailed",
        "Emitted",
        "RequestOpened",
    ]
    (attempt,) = [event for event in first if isinstance(event, AttemptFailed)]
    assert (attempt.step, attempt.attempt, attempt.failure.text, attempt.live) == ("risky", 1, "once", True)
    (asked,) = [event for event in first if isinstance(event, RequestOpened)]
    second = asyncio.run(told(responses={asked.request_id: "!"}))
    assert [event.data for event in second if isinstance(event, Emitted | OutputYielded)] == ["ends", "done!"]


def test_run_arguments_and_resources_reach_function_steps_and_called_workflows(book, store):
    """On the first call and on the one that answers; a resource that was not brought is an error at its line."""

    def flow():
        @workflow(name="below", types=[str])
        async def below(text: str, ctx: FunctionalContext) -> str:
            answer = await ctx.request_info(text, response_type=str)
            return f"{answer} {ctx.run_args} {ctx.resources['tool']}"

        @workflow(name="above", calls=[below], checkpoint_storage=store)
        async def above(text: str, ctx: FunctionalContext) -> str:
            return f"{ctx.run_args} {await ctx.call(below, text)}"

        return above

    first = run(flow(), "?", run_id="r", run_args={"user": 1}, resources={"tool": "hammer"})
    error = failed(flow(), responses=answers(first, "yes"))
    assert isinstance(error.__cause__, MissingResourceError)
    second = run(flow(), checkpoint="latest", run_id="r", resources={"tool": "saw"})
    assert second.output == "{'user': 1} yes {'user': 1} saw"


def test_a_step_has_the_live_objects_of_the_call(store):
    """Plain and async, in the call that brings them; without them it fails at its line and a resume has them."""

    @step
    def plain(text: str) -> str:
        return f"{text} {current_step().resources['tool']}"

    @step
    async def later(text: str) -> str:
        return f"{text} {current_step().resources['tool']}"

    @workflow(name="tools", checkpoint_storage=store)
    async def tools(text: str) -> str:
        return await later(await plain(text))

    error = failed(tools, "a", run_id="r")
    assert isinstance(error.__cause__, StepFailedError)
    assert error.__cause__.type == "MissingResourceError"
    assert run(tools, checkpoint="latest", run_id="r", resources={"tool": "saw"}).output == "a saw saw"


def test_a_declared_resource_that_is_missing_is_an_error_before_the_claim(book, store):
    """Nothing has run, and the stored run is where it was."""
    made = ledger(book, store, resources={"tool": str})
    with pytest.raises(MissingResourceError):
        run(made, "a", run_id="r")
    first = run(made, "a?", run_id="r", resources={"tool": "hammer"})
    book.took()
    with pytest.raises(MissingResourceError):
        run(made, responses=answers(first, "!"))
    assert run(made, responses=answers(first, "!"), resources={"tool": "saw"}).output == "1: A?!"
    assert book.took() == []


def test_a_message_of_another_type_is_refused(book, store):
    """Before anything is saved."""
    with pytest.raises(MessageTypeError):
        run(ledger(book, store), 5, run_id="r")
    assert asyncio.run(store.head("r")) is None


@pytest.mark.parametrize("durability", ["superstep", "turn", "off"])
def test_weaker_durability_is_asked_for_by_name(book, store, durability):
    """With fewer saves the run and its result are the same; a pause is saved unless saving is off."""
    first = run(ledger(book, store), "a?", run_id="r", durability=durability)
    assert [request.data for request in first.pending_requests] == ["a?"]
    second = run(ledger(book, store), checkpoint=first, responses=answers(first, "!"), durability=durability)
    assert (second.output, book.took()) == ("1: A?!", ["note a?"])


def test_history_inspection_and_differences_know_passes(book, store):
    """What waits is read without the workflow; two checkpoints tell what has changed between them."""
    first = run(ledger(book, store), "a?", run_id="r")
    shown = asyncio.run(store.inspect(first.checkpoint_id))
    (request,) = shown.requests
    assert (shown.header.status, request.request_id) == (
        Status.IDLE_WITH_PENDING_REQUESTS,
        first.pending_requests[0].request_id,
    )
    second = run(ledger(book, store), responses=answers(first, "!"))
    assert asyncio.run(store.inspect(second.checkpoint_id)).requests == ()
    headers = asyncio.run(store.history("r"))
    assert headers[0].checkpoint_id == second.checkpoint_id
    assert len({header.checkpoint_id for header in headers}) == len(headers)


def test_kept_events_tell_what_was_committed(book, tmp_path):
    """A store that keeps events has those of a function too: questions and outputs, no progress and no attempts."""

    async def scenario():
        store = SqliteCheckpointStorage(tmp_path / "kept.db", keep_events=True)
        made = ledger(book, store)
        first = await made.run("a?", run_id="r")
        await made.run(responses=answers(first, "!"))
        told = [event async for event in made.events("r")]
        await store.close()
        return told

    told = bounded(scenario())
    assert [event.sequence for event in told] == list(range(1, len(told) + 1))
    assert [event.data for event in told if isinstance(event, RequestOpened | OutputYielded)] == ["a?", "1: A?!"]


def test_two_checkpoints_of_a_waiting_function_are_compared(book, store):
    """What a step has found between them is told, and what was asked."""
    first = run(ledger(book, store), "a?", run_id="r")
    second = run(ledger(book, store), responses=answers(first, "!"))
    changes = asyncio.run(RunHistory(store, "r").diff(first.checkpoint_id, second.checkpoint_id))
    told = str(changes)
    assert "- request" in told
    assert "note" in told
    assert "1: A?!" in told


def test_state_can_be_edited_while_a_pass_waits(book, store):
    """The waiting pass reads what it has read before; the next one reads the edit."""
    first = run(ledger(book, store), "a?", run_id="r")
    asyncio.run(ledger(book, store).edit(first, {"count": 10}, reason="a test"))
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", responses=answers(first, "!"))
    assert second.outputs[0] == "1: A?!"
    assert second.outputs[1] in {"11: B", "2: B"}


def test_a_function_as_a_node_has_the_same_surface(book, store):
    """In a graph its question surfaces with its path, and the answer goes back to it."""

    def graph():
        node = WorkflowExecutor(ledger(book), id="ledger")
        return WorkflowBuilder("graph", node, checkpoint_storage=store).build()

    first = run(graph(), "a?", run_id="r")
    assert [(request.path, request.data) for request in first.pending_requests] == [("ledger#1", "a?")]
    second = run(graph(), "b", checkpoint=first, responses=answers(first, "!"))
    assert (sorted(second.outputs), book.took()) == (["1: A?!", "1: B"], ["note a?", "note b"])
