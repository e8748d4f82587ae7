"""Cancellation at every depth, at every moment, in every way: it stops at once, is saved, and can be gone on with."""

import asyncio
import gc
import threading

import pytest

from rehydrate import (
    InMemoryCheckpointStorage,
    Retry,
    SqliteCheckpointStorage,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
)
from rehydrate.model.events import StatusChanged
from tests.failure.kit import Gate, Timed, World, facts, line, others, until

run = asyncio.run
WAYS = ("task", "result", "stream", "async with", "dropped")


class Gated:
    """A store in which one commit waits, before or after it is made."""

    gated: int | None = None
    place = "before"
    commits = 0
    gate: Gate

    async def commit(self, commit):
        self.commits += 1
        if self.gated == self.commits and self.place == "before":
            await self._wait()
        await super().commit(commit)
        if self.gated == self.commits and self.place == "after":
            await self._wait()

    async def _wait(self):
        self.gate.entered.set()
        await self.gate.opened.wait()


class GatedMemory(Gated, InMemoryCheckpointStorage):
    pass


class GatedSqlite(Gated, SqliteCheckpointStorage):
    pass


@pytest.fixture(params=["memory", "sqlite"])
def gated(request, tmp_path):
    """A store of each kind in which a commit can be held up."""
    store = GatedMemory() if request.param == "memory" else GatedSqlite(tmp_path / "gated.db")
    yield store
    run(store.close())


class Caller:
    """Makes a call and cancels it in one way, at a moment that the test waits for."""

    def __init__(self, workflow, way):
        self.workflow = workflow
        self.way = way
        self.stream = None
        self.work = None

    def start(self, message="x", **options):
        """Begin the call."""
        if self.way == "task":
            self.work = asyncio.create_task(self.workflow.run(message, **options))
            return
        stream = self.workflow.run(message, stream=True, **options)
        if self.way == "result":
            self.work = asyncio.create_task(stream.result())
            return
        self.stream = stream
        self.work = asyncio.create_task(self._enter() if self.way == "async with" else anext(stream))

    async def _enter(self):
        await self.stream.__aenter__()

    async def cancel(self):
        """Cancel it; afterwards nothing of it runs."""
        if self.way in ("task", "result"):
            self.work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await self.work
            return
        await asyncio.wait([self.work])
        if self.way == "stream":
            assert (await self.stream.cancel()).status is Status.CANCELLED
        elif self.way == "async with":
            await self.stream.__aexit__(None, None, None)
        self.work = self.stream = None
        gc.collect()

    async def head(self, store, run_id="r"):
        """Wait until nobody drives the run and return its head."""
        for _ in range(100_000):
            head = await store.head(run_id)
            if head is not None and head.owner is None:
                return head
            await asyncio.sleep(0)
        raise AssertionError("the run goes on")


def uninterrupted(depth, **options):
    """What a run without any interruption comes to."""
    return facts(run(line(World(), depth, **options).run("x")))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [0, 1, pytest.param(2, marks=pytest.mark.proof), 3])
@pytest.mark.parametrize("where", ["one", "two", "three"])
def test_case_34_a_run_is_cancelled_in_any_executor_at_any_depth(world, store, where, depth, way):
    """It stops there, `CANCELLED` is saved with no owner, nothing later ran, and a resume ends as if it were not."""
    workflow = line(world, depth)

    async def scenario():
        gate = world.gates[where] = Gate()
        caller = Caller(workflow, way)
        caller.start(run_id="r", checkpoint_storage=store)
        await gate.entered.wait()
        await caller.cancel()
        head = await caller.head(store)
        ran = list(world.log)
        gate.opened.set()
        await others()
        assert world.log == ran
        world.gates.clear()
        return head, ran, await workflow.run(checkpoint="latest", run_id="r", checkpoint_storage=store)

    head, ran, result = run(scenario())
    assert head.header.status is Status.CANCELLED
    before = ["one", "two", "three"][: ["one", "two", "three"].index(where) + 1]
    assert ran == ["into 1"] * depth + [f"{name} 1" for name in before]
    assert [entry for entry in world.log if entry.startswith(where)] == [f"{where} 1", f"{where} 2"]
    assert facts(result) == uninterrupted(depth)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_without_a_store_a_cancelled_run_goes_on_from_its_result(world, depth):
    """The result of `cancel()` stands for its checkpoint."""
    workflow = line(world, depth)

    async def scenario():
        gate = world.gates["two"] = Gate()
        stream = workflow.run("x", stream=True)
        await anext(stream)
        await gate.entered.wait()
        stopped = await stream.cancel()
        world.gates.clear()
        return stopped, await workflow.run(checkpoint=stopped)

    stopped, result = run(scenario())
    assert stopped.status is Status.CANCELLED
    assert facts(result) == uninterrupted(depth)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_commit_on_its_way_is_waited_for(world, gated, number, place, way):
    """A run that is cancelled during any commit but its claim's ends in `CANCELLED`, with that commit made."""
    depth = 1
    workflow = line(world, depth)

    async def scenario():
        gate = gated.gate = Gate()
        gated.gated, gated.place = number, place
        caller = Caller(workflow, way)
        caller.start(run_id="r", checkpoint_storage=gated)
        await gate.entered.wait()
        ran = list(world.log)
        cancelling = asyncio.create_task(caller.cancel())
        await others()
        assert world.log == ran
        gate.opened.set()
        await cancelling
        head = await caller.head(gated)
        assert world.log == ran
        return head, await workflow.run(checkpoint="latest", run_id="r", checkpoint_storage=gated)

    head, result = run(scenario())
    assert (head.header.status, head.header.seq) == (Status.CANCELLED, number)
    assert facts(result) == uninterrupted(depth)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [0, *(pytest.param(depth, marks=pytest.mark.proof) for depth in (1, 2)), 3])
def test_a_run_that_waits_for_its_next_attempt_is_cancelled_at_once(world, time, store, depth, way):
    """No time passes; gone on with before the attempt is due it waits for the rest, and then all is as without."""
    workflow = Timed(line(world, depth, retry=Retry(delay=60)), time, store)
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        caller = Caller(workflow, way)
        caller.start(run_id="r")
        await until(lambda: "two 1" in world.log)
        await saved_attempt(store)
        await caller.cancel()
        head = await caller.head(store)
        await time.move(30)
        again = asyncio.create_task(workflow.run(checkpoint="latest", run_id="r"))
        for _ in range(100_000):
            if (await store.head("r")).header.status is not Status.CANCELLED:
                break
        await others()
        await time.move(29.5)
        assert world.log[-1] == "two 1"
        await time.move(1)
        return head, await again

    head, result = run(scenario())
    assert head.header.status is Status.CANCELLED
    assert [entry for entry in world.log if "two" in entry] == ["two 1", "two 2"]
    assert facts(result) == uninterrupted(depth)


async def saved_attempt(store):
    """Let others run until the due time of an attempt is saved and is being waited for."""
    for _ in range(100_000):
        head = await store.head("r")
        stored = await store.load(head.header.checkpoint_id) if head is not None else None
        if stored is not None and any("attempt" in key for key in stored.records):
            break
        await asyncio.sleep(0)
    await others()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [0, 2])
def test_a_run_with_executors_that_wait_for_a_slot_is_cancelled(world, store, depth, way):
    """What waits never begins; the others are as above, and a resume runs each once."""
    workflow = crowd(world, depth)

    async def scenario():
        gate = world.gates["a"] = Gate()
        caller = Caller(workflow, way)
        caller.start(run_id="r", checkpoint_storage=store)
        await gate.entered.wait()
        await others()
        assert world.log == ["a 1"]
        await caller.cancel()
        head = await caller.head(store)
        world.gates.clear()
        return head, await workflow.run(checkpoint="latest", run_id="r", checkpoint_storage=store)

    head, result = run(scenario())
    assert head.header.status is Status.CANCELLED
    assert [entry.split()[0] for entry in world.log] == ["a", "a", "b", "c"]
    assert facts(result) == facts(run(crowd(World(), depth).run("x")))


def crowd(world, depth):
    """start → (a, b, c) at a depth, with one slot for all."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    def worker(name):
        @executor(id=name)
        async def work(text: str, ctx: WorkflowContext) -> str:
            await world.enter(ctx)
            return f"{text} {name}"

        return work

    workers = [worker(name) for name in "abc"]
    inner = WorkflowBuilder("crowd", start, max_concurrency=1).add_fan_out_edges(start, workers).build()
    for level in range(depth):
        node = WorkflowExecutor(inner, id="inner")
        inner = WorkflowBuilder(f"crowd in {level + 1}", node, max_concurrency=1).build()
    return inner


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [0, 2])
def test_a_run_is_cancelled_while_a_timeout_is_being_swallowed(world, time, store, depth, way):
    """The handler that was left goes on unseen, also beyond the run; the attempt that waits is cancelled with it."""
    left = []

    class Stubborn(World):
        async def enter(self, ctx):
            try:
                await super().enter(ctx)
            except asyncio.CancelledError:
                left.append("swallowed")
                await self.late.opened.wait()
                left.append("late")

    stubborn = Stubborn()
    workflow = Timed(line(stubborn, depth, timeout=5, retry=Retry(delay=60)), time, store)

    async def scenario():
        time.drive()
        gate = stubborn.gates["two"] = Gate()
        stubborn.late = Gate()
        caller = Caller(workflow, way)
        caller.start(run_id="r")
        await gate.entered.wait()
        await time.move(5)
        await until(lambda: left == ["swallowed"])
        await saved_attempt(store)
        await caller.cancel()
        head = await caller.head(store)
        stubborn.gates.clear()
        stubborn.late.opened.set()
        await others()
        await time.move(60)
        return head, await workflow.run(checkpoint="latest", run_id="r")

    head, result = run(scenario())
    assert head.header.status is Status.CANCELLED
    assert left == ["swallowed", "late"]
    assert facts(result) == uninterrupted(depth)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_run_is_cancelled_in_a_plain_handler_without_waiting_for_it(store, depth):
    """`CANCELLED` is saved while the thread hangs; a resume waits for the thread and is as if nothing had been."""
    entered, goes_on, calls = threading.Semaphore(0), threading.Event(), []

    def made(hangs):
        @executor(id="plain")
        def plain(text: str, ctx: WorkflowContext) -> str:
            ctx.set_state("n", ctx.get_state("n", 0) + 1)
            if hangs and ctx.attempt == 1:
                entered.release()
                assert goes_on.wait(20)
            calls.append(ctx.attempt)
            return f"{text} {ctx.get_state('n')}" if not hangs or ctx.attempt > 1 else text

        inner = WorkflowBuilder("plain", plain).build()
        for level in range(depth):
            inner = WorkflowBuilder(f"plain in {level + 1}", WorkflowExecutor(inner, id="inner")).build()
        return inner

    workflow = made(True)

    async def scenario():
        stream = workflow.run("x", stream=True, run_id="r", checkpoint_storage=store)
        events = [await anext(stream)]
        await until(lambda: entered.acquire(blocking=False))
        stopped = await stream.cancel()
        events += [event async for event in stream]
        again = asyncio.create_task(workflow.run(checkpoint=stopped, checkpoint_storage=store))
        await others()
        assert calls == []
        goes_on.set()
        return events, await again

    events, result = run(scenario())
    assert isinstance(events[-1], StatusChanged)
    assert events[-1].status is Status.CANCELLED
    assert calls == [1, 2]
    assert facts(result) == facts(run(made(False).run("x")))


@pytest.mark.parametrize("times", [1, 3])
def test_a_run_may_be_cancelled_again_and_again(world, store, times):
    """Each resume stops at once when it is cancelled, and the last one ends as if there had been none."""
    workflow = line(world, 2)

    async def scenario():
        given = {"message": "x"}
        for where in ("one", "two", "three")[:times]:
            gate = world.gates[where] = Gate()
            caller = Caller(workflow, "task")
            caller.start(**given, run_id="r", checkpoint_storage=store)
            await gate.entered.wait()
            await caller.cancel()
            world.gates.clear()
            given = {"message": None, "checkpoint": "latest"}
        return await workflow.run(checkpoint="latest", run_id="r", checkpoint_storage=store)

    assert facts(run(scenario())) == uninterrupted(2)


@pytest.mark.parametrize("moment", ["back-off", "handler"])
def test_a_cancelled_run_leaves_no_timer_behind(world, time, store, moment):
    """Nothing keeps the run in memory until an attempt would have been due, or timed out."""
    workflow = Timed(line(world, retry=Retry(delay=60), timeout=100), time, store)

    async def scenario():
        time.drive()
        gate = world.gates["three"] = Gate()
        world.fails["two"] = 1 if moment == "back-off" else 0
        caller = Caller(workflow, "task")
        caller.start(run_id="r")
        await (saved_attempt(store) if moment == "back-off" else gate.entered.wait())
        assert left() != []
        await caller.cancel()
        await caller.head(store)
        await others()
        return left()

    def left():
        timers = [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]
        return [timer for timer in timers if "Crew" in repr(timer)]

    assert run(scenario()) == []
