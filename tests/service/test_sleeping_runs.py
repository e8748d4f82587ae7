"""Runs that only wait for a time: they hold no place of a worker, and one that ends hands them on."""

import asyncio
from datetime import UTC, datetime
from typing import Never

import pytest

from rehydrate import (
    Executor,
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retry,
    RunFailedError,
    RunStream,
    Service,
    Status,
    Worker,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    check_health,
    drain,
    executor,
    handler,
    response_handler,
    step,
    workflow,
)
from rehydrate.errors import RunDrainedError
from rehydrate.runtime.clock import SystemClock
from rehydrate.testing import claim_turns_again, run_virtually

HOUR = 3600.0


async def passed(seconds: float) -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)


def sleeping(kind: str, done: list[str]) -> Workflow:
    """Return a workflow that does something, waits for an hour, and does something else."""

    @step
    async def first() -> None:
        done.append("first")

    @step(retry=Retry(attempts=2, delay=HOUR, max_delay=HOUR))
    async def unwell() -> None:
        done.append("unwell")
        if done.count("unwell") == 1:
            raise OSError("not yet")

    @workflow(name="timer")
    async def timer(text: str, ctx: FunctionalContext) -> str:
        await first()
        await ctx.sleep(HOUR)
        return text

    @workflow(name="timers")
    async def timers(text: str, ctx: FunctionalContext) -> str:
        await ctx.gather(first(), ctx.sleep(HOUR), ctx.sleep(2 * HOUR))
        return text

    @workflow(name="step")
    async def retried_step(text: str) -> str:
        await first()
        await unwell()
        return text

    @workflow(name="caller", calls=[timer])
    async def caller(text: str, ctx: FunctionalContext) -> str:
        return (await ctx.call(timer, text))[0]

    @executor(id="handler", retry=Retry(attempts=2, delay=HOUR, max_delay=HOUR))
    async def handler(text: str) -> str:
        done.append("first")
        if done.count("first") == 1:
            raise OSError("not yet")
        return text

    graph = WorkflowBuilder("handler", handler).build()
    return {"timer": timer, "timers": timers, "step": retried_step, "caller": caller, "handler": graph}[kind]


async def asleep(stream: RunStream) -> float:
    """Read a stream until its run only waits for a time, and return that."""
    async for _ in stream:
        await passed(0.001)
        if stream.sleeps_until is not None:
            return stream.sleeps_until
    raise AssertionError("it never sleeps")


async def orphaned(store: InMemoryCheckpointStorage) -> str:
    """Return what health says of turns that nobody drives."""
    report = await check_health(store, now=datetime.fromtimestamp(SystemClock().time(), UTC))
    found = next(finding for finding in report.findings if finding.about == "orphaned runs")
    return f"{found.level}: {found.text}"


KINDS = ["timer", "timers", "step", "caller", "handler"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_tells_until_when_its_run_sleeps(kind: str) -> None:
    """Before its beginning, while it does something and after its end it tells nothing."""

    async def scenario() -> None:
        begun = SystemClock().time()
        stream = sleeping(kind, []).run("a", stream=True, checkpoint_storage=InMemoryCheckpointStorage())
        assert stream.sleeps_until is None
        assert await asleep(stream) == pytest.approx(begun + HOUR, abs=HOUR / 2)
        result = await stream.result()
        assert (result.outputs, stream.sleeps_until) == (["a"], None)

    run_virtually(scenario())


def test_a_stream_of_a_run_that_does_something_does_not_sleep() -> None:
    """A step that runs beside a timer keeps the run awake."""
    entered, opened = asyncio.Event(), asyncio.Event()

    @step
    async def long() -> None:
        entered.set()
        await opened.wait()

    @workflow
    async def both(text: str, ctx: FunctionalContext) -> str:
        await ctx.gather(long(), ctx.sleep(HOUR))
        return text

    async def scenario() -> None:
        stream = both.run("a", stream=True)
        reading = asyncio.ensure_future(stream.result())
        await entered.wait()
        await passed(5)
        assert stream.sleeps_until is None
        opened.set()
        await passed(5)
        assert stream.sleeps_until is not None
        assert (await reading).outputs == ["a"]

    run_virtually(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_handed_on_goes_on_in_another_call(kind: str) -> None:
    """What was done is not done again; the reader of the first call is told."""
    done: list[str] = []

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        stream = sleeping(kind, done).run("a", stream=True, run_id="run", checkpoint_storage=store)
        until = await asleep(stream)
        before = list(done)
        await stream.hand_on()
        with pytest.raises(RunDrainedError):
            await stream.result()
        head = await store.head("run")
        assert (head.header.status, head.owner, head.header.due) == (Status.RUNNING, None, until)
        result = await sleeping(kind, done).run(checkpoint="latest", run_id="run", checkpoint_storage=store)
        assert result.outputs == ["a"]
        assert done[: len(before)] == before
        assert done.count("first") == (2 if kind == "handler" else 1)

    run_virtually(scenario())


async def killed(store: InMemoryCheckpointStorage, flow: Workflow, run_id: str) -> None:
    """Leave a run as a process leaves it that dies while the run sleeps: with no time in its header."""
    stream = flow.run(run_id, stream=True, run_id=run_id, checkpoint_storage=store)
    await asleep(stream)
    stream._turn.actor.break_off(ConnectionError("gone"))
    with pytest.raises(ConnectionError):
        await stream.result()
    await passed(60)  # its lease has ended


@pytest.mark.parametrize("kind", KINDS)
def test_runs_that_sleep_hold_no_place_of_a_worker(kind: str) -> None:
    """A worker with one place takes up two runs that sleep, hands them on, takes up one that something was offered to,
    and each of the two once more, when its time has come."""
    done: dict[str, list[str]] = {"a": [], "b": []}

    @workflow(name="quick")
    async def quick(text: str) -> str:
        return text

    async def scenario() -> tuple[list[str], list[int]]:
        store = InMemoryCheckpointStorage()
        for name, found in done.items():
            await killed(store, sleeping(kind, found), name)
        await quick.run("c", run_id="c", checkpoint_storage=store)
        await quick.offer("c", "again", checkpoint_storage=store)
        told, ended = list[str](), asyncio.Event()

        def hear(run_id: str, end: object) -> None:
            told.append(run_id)
            if len(told) == 3:
                ended.set()

        flow = sleeping(kind, done["a"])  # what is done from here on is only counted
        worker = Worker(Service(store, [flow, quick]), concurrency=1, told=hear)
        working = asyncio.ensure_future(worker.run())
        await passed(600)
        kept = [len(await store.history(name)) for name in ("a", "b")]
        await passed(600)
        assert [len(await store.history(name)) for name in ("a", "b")] == kept
        await asyncio.wait_for(ended.wait(), 3 * HOUR)
        working.cancel()
        await asyncio.wait([working])
        return told, [(await store.head(name)).header.turn for name in ("a", "b")]

    told, turns = run_virtually(scenario())
    assert (told[0], sorted(told[1:]), turns) == ("c", ["a", "b"], [1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_takes_up_what_can_go_on_now_leaves_what_sleeps(kind: str) -> None:
    """It hands it on with its time; from then on nobody takes it up before that, and nothing is written meanwhile."""
    done: list[str] = []

    async def scenario() -> None:
        store, clock = InMemoryCheckpointStorage(), asyncio.get_running_loop().time
        await killed(store, sleeping(kind, done), "a")
        begun, service = clock(), Service(store, [sleeping(kind, done)])
        assert (await orphaned(store)).startswith("problem: nobody drives 1 run whose process is gone")
        assert await Worker(service).finish() == 1
        assert clock() - begun < 10
        head = await store.head("a")
        assert (head.header.status, head.owner) == (Status.RUNNING, None)
        living = "every turn that has begun is driven by a living process"
        assert await orphaned(store) == f"ok: {living}; handed on until a time: 1 run."
        assert await Worker(service).finish() == 0
        assert (await store.head("a")).header == head.header
        await passed(3 * HOUR)
        ends: list[list[object]] = []
        assert await Worker(service, told=lambda run_id, end: ends.append(end.outputs)).finish() >= 1
        assert ends == [["a"]]

    run_virtually(scenario())


def test_a_drained_process_leaves_a_run_that_sleeps_with_its_time() -> None:
    """Another process need not take it up before."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        stream = sleeping("timer", []).run("a", stream=True, run_id="a", checkpoint_storage=store)
        until = await asleep(stream)
        assert (await drain(10)).of("handed on") == ("a",)
        assert (await store.head("a")).header.due == until

    try:
        run_virtually(scenario())
    finally:
        claim_turns_again()


def test_a_run_that_is_answered_while_it_is_handed_on_has_no_time() -> None:
    """It has something to do now, so the next worker takes it up at once."""

    class Asks(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.request_info(text, response_type=str)

        @response_handler
        async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output(answer)

    @executor(id="begin")
    async def begin(text: str) -> str:
        return text

    @executor(id="unwell", retry=Retry(attempts=2, delay=HOUR, max_delay=HOUR))
    async def unwell(text: str) -> None:
        raise OSError("not yet")

    asks = WorkflowExecutor(WorkflowBuilder("asks", Asks("asks")).build(), "inner")
    flow = WorkflowBuilder("both", begin).add_fan_out_edges(begin, [asks, unwell]).build()

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        stream = flow.run("a", stream=True, run_id="a", checkpoint_storage=store)
        until = await asleep(stream)
        (row,) = await store.requests()
        handing = asyncio.ensure_future(stream.hand_on())
        answered = await asyncio.gather(stream.answer({row.request_id: "yes"}), return_exceptions=True)
        await handing
        head = await store.head("a")
        assert head.header.due == (None if answered == [None] else until)

    run_virtually(scenario())


def test_a_run_whose_time_is_limited_is_not_handed_on() -> None:
    """The limit of a sub-workflow runs only while somebody drives it, so a sleep in it is no reason to let go."""

    async def scenario() -> tuple[list[object], float]:
        store = InMemoryCheckpointStorage()
        outer = WorkflowBuilder("outer", WorkflowExecutor(sleeping("timer", []), "inner", timeout=600.0)).build()
        stream = outer.run("a", stream=True, run_id="a", checkpoint_storage=store)
        await anext(stream)
        await passed(5)
        assert stream.sleeps_until is None
        stream._turn.actor.break_off(ConnectionError("gone"))
        await asyncio.wait([asyncio.ensure_future(stream.result())])
        await passed(60)  # its lease has ended
        begun, ends = SystemClock().time(), list[object]()
        await Worker(Service(store, [outer]), told=lambda run_id, end: ends.append(type(end))).finish()
        return ends, SystemClock().time() - begun

    ends, seconds = run_virtually(scenario())
    assert (ends, round(seconds)) == ([RunFailedError], 600)


def test_a_worker_that_takes_up_what_can_go_on_now_waits_for_a_short_time() -> None:
    """A back-off of some seconds is no reason to leave a run unfinished."""

    @step(retry=Retry(attempts=3, delay=2.0))
    async def unwell(tries: int) -> int:
        done.append("unwell")
        if len(done) < 3:
            raise OSError("not yet")
        return tries

    @workflow
    async def short(tries: int) -> int:
        return await unwell(tries)

    done: list[str] = []

    async def scenario() -> list[object]:
        store = InMemoryCheckpointStorage()
        await short.run(0, run_id="a", checkpoint_storage=store)
        done.clear()
        await short.offer("a", 5, checkpoint_storage=store)
        ends: list[list[object]] = []
        worker = Worker(Service(store, [short]), told=lambda run_id, end: ends.append(end.outputs))
        assert await worker.finish() == 1
        return ends

    assert run_virtually(scenario()) == [[5]]
