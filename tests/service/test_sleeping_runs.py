"""Runs that only wait for a time: they hold no place of a worker, and one that ends hands them on."""

import asyncio

import pytest

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retry,
    RunStream,
    Service,
    Status,
    Worker,
    Workflow,
    WorkflowBuilder,
    executor,
    step,
    workflow,
)
from rehydrate.errors import RunDrainedError
from rehydrate.runtime.clock import SystemClock
from rehydrate.testing import run_virtually

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
        await asleep(stream)
        before = list(done)
        await stream.hand_on()
        with pytest.raises(RunDrainedError):
            await stream.result()
        head = await store.head("run")
        assert (head.header.status, head.owner) == (Status.RUNNING, None)
        result = await sleeping(kind, done).run(checkpoint="latest", run_id="run", checkpoint_storage=store)
        assert result.outputs == ["a"]
        assert done[: len(before)] == before
        assert done.count("first") == (2 if kind == "handler" else 1)

    run_virtually(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_runs_that_sleep_hold_no_place_of_a_worker(kind: str) -> None:
    """A worker with one place takes up two runs that sleep, and then one that something was offered to."""

    @workflow(name="quick")
    async def quick(text: str) -> str:
        return text

    async def scenario() -> list[str]:
        store = InMemoryCheckpointStorage()
        for name in ("a", "b"):
            stream = sleeping(kind, []).run(name, stream=True, run_id=name, checkpoint_storage=store)
            await asleep(stream)
            await stream.hand_on()
        await quick.run("c", run_id="c", checkpoint_storage=store)
        await quick.offer("c", "again", checkpoint_storage=store)
        ends, told = asyncio.Event(), list[str]()

        def hear(run_id: str, end: object) -> None:
            told.append(run_id)
            ends.set()

        worker = Worker(Service(store, [sleeping(kind, []), quick]), concurrency=1, told=hear)
        working = asyncio.ensure_future(worker.run())
        await asyncio.wait_for(ends.wait(), 30)
        working.cancel()
        await asyncio.wait([working])
        return told

    assert run_virtually(scenario())[0] == "c"


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_takes_up_what_can_go_on_now_leaves_what_sleeps(kind: str) -> None:
    """It ends at once, and the run is nobody's: the next one goes on with it."""

    done: list[str] = []

    async def scenario() -> None:
        store, clock = InMemoryCheckpointStorage(), asyncio.get_running_loop().time
        stream = sleeping(kind, done).run("a", stream=True, run_id="a", checkpoint_storage=store)
        await asleep(stream)
        await stream.hand_on()
        begun = clock()
        worker = Worker(Service(store, [sleeping(kind, done)]))
        assert await worker.finish() == 1
        assert clock() - begun < 10
        head = await store.head("a")
        assert (head.header.status, head.owner) == (Status.RUNNING, None)
        result = await sleeping(kind, done).run(checkpoint="latest", run_id="a", checkpoint_storage=store)
        assert result.outputs == ["a"]

    run_virtually(scenario())


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
