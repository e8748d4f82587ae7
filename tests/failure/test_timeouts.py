"""Timeouts of attempts: of async handlers, which are cancelled, and of plain ones, whose threads cannot be stopped."""

import asyncio
import contextlib
import gc
import threading
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Retry,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    errors,
    executor,
    handler,
)
from rehydrate.errors import ClosedContextError, InvocationTimeoutError, RunFailedError
from rehydrate.runtime import threads
from tests.failure.kit import Fault, Gate, Timed, failing, line, others, passing, path_of, until

run = asyncio.run
#: How long a test waits for a thread that has been told to go on, in seconds.
PATIENCE = 20


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Nothing is said on the log: no exception that was never retrieved, no task that was destroyed."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []


class Stuck:
    """A plain function's way to hang: each that comes waits until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.goes_on = threading.Event()
        self.left = threading.Semaphore(0)

    def hang(self) -> None:
        self.entered.release()
        assert self.goes_on.wait(PATIENCE)

    async def is_entered(self) -> None:
        await until(lambda: self.entered.acquire(blocking=False))


# async handlers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_handler_that_takes_too_long_is_cancelled_and_fails(world, time, anywhere, depth):
    """Not before its time; the error names path and seconds, and a call that goes on gives it its message again."""
    workflow = Timed(line(world, depth, timeout=5), time, anywhere)

    async def scenario():
        time.drive()
        gate = world.gates["two"] = Gate()
        running = asyncio.create_task(failing(workflow.run("x")))
        await gate.entered.wait()
        await time.move(4.5)
        assert not running.done()
        await time.move(1)
        error = await running
        world.gates.clear()
        return error, await workflow.run(checkpoint=error.result)

    error, result = run(scenario())
    cause = error.__cause__
    assert isinstance(cause, InvocationTimeoutError)
    assert isinstance(cause, TimeoutError)
    assert (cause.where, cause.seconds) == ("/".join(filter(None, (path_of(depth), "two"))), 5.0)
    assert (cause.code, "5 seconds" in str(cause)) == ("invocation-timeout", True)
    assert result.outputs == [" ".join(["x", *["into"] * depth, "one two three", *["out"] * depth])]
    assert [entry for entry in world.log if "two" in entry] == ["two 1", "two 2"]


def test_a_timed_out_attempt_is_tried_again_and_leaves_no_trace(world, time, anywhere):
    """A timeout is an error like others: `on` may name it, and each attempt has its own time."""
    closed = []

    @executor(timeout=5, retry=Retry(attempts=3, delay=1, on=TimeoutError))
    async def slow(text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("n", ctx.get_state("n", 0) + 1)
        ctx.yield_output(f"{text} {ctx.attempt} {ctx.get_state('n')}")
        world.log.append(f"slow {ctx.attempt}")
        if ctx.attempt < 3:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append(ctx.attempt)

    async def scenario():
        time.drive()
        running = asyncio.create_task(Timed(WorkflowBuilder("w", slow).build(), time, anywhere).run("x"))
        return await passing(time, running)

    result = run(scenario())
    assert result.outputs == ["x 3 1"]
    assert (world.log, closed) == (["slow 1", "slow 2", "slow 3"], [1, 2])


@pytest.mark.parametrize("then", ["returns", "raises", "goes on"])
def test_a_handler_that_swallows_its_timeout_goes_on_unseen(world, time, store, then):
    """Its context is closed, the run goes on at once, and what it raises or returns later is seen by nobody."""
    told, gate = [], []

    @executor(timeout=5, retry=Retry(attempts=2, delay=0))
    async def stubborn(text: str, ctx: WorkflowContext[Never, str]) -> str:
        if ctx.attempt == 2:
            return "second"
        try:
            await gate[0].opened.wait()
        except asyncio.CancelledError:
            told.append("swallowed")
        if then == "goes on":
            await gate[0].opened.wait()
        for call in (lambda: ctx.yield_output("late"), lambda: ctx.set_state("k", 1), lambda: ctx.emit(1)):
            with pytest.raises(ClosedContextError, match="had timed out"):
                call()
        told.append("late")
        if then == "raises":
            raise Fault("late")
        return "late"

    async def scenario():
        time.drive()
        gate.append(Gate())
        running = asyncio.create_task(Timed(WorkflowBuilder("w", stubborn).build(), time, store).run("x"))
        result = await passing(time, running)
        assert told == (["swallowed"] if then == "goes on" else ["swallowed", "late"])
        gate[0].opened.set()
        await others()
        return result

    result = run(scenario())
    assert (result.status, result.outputs) == (Status.IDLE, ["second"])
    assert told == ["swallowed", "late"]


@pytest.mark.parametrize("way", ["timeout", "cancel"])
def test_a_handler_that_was_left_is_not_taken_by_the_collector(time, anywhere, way):
    """It goes on unseen, and nobody is told that a task was destroyed, though nobody else knows what it awaits."""
    told = []

    @executor(timeout=5)
    async def stubborn(text: str) -> str:
        told.append("entered")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("swallowed")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            told.append("ended")
        return text

    workflow = Timed(WorkflowBuilder("w", stubborn).build(), time, anywhere)

    async def scenario():
        time.drive()
        stream = workflow.run("x", stream=True)
        reading = asyncio.create_task(stream.result())
        await until(lambda: told)
        if way == "timeout":
            with pytest.raises(RunFailedError):
                await passing(time, reading)
        else:
            assert (await stream.cancel()).status is Status.CANCELLED
            await asyncio.wait([reading])
        del stream, reading
        await others()
        gc.collect()
        assert told == ["entered", "swallowed"]

    run(scenario())
    assert told == ["entered", "swallowed", "ended"]


def test_waiting_for_a_slot_does_not_count(world, time, anywhere):
    """The time of an attempt starts with its handler: the second of two waits long and is not timed out."""

    @executor(id="a", timeout=5)
    async def a(text: str, ctx: WorkflowContext) -> str:
        await world.enter(ctx)
        return text

    @executor(id="b", timeout=5)
    async def b(text: str, ctx: WorkflowContext) -> str:
        await world.enter(ctx)
        return text

    @executor(id="start")
    async def begin(text: str) -> str:
        return text

    builder = WorkflowBuilder("w", begin, max_concurrency=1).add_fan_out_edges(begin, [a, b])

    async def scenario():
        time.drive()
        first, second = world.gates["a"], world.gates["b"] = Gate(), Gate()
        running = asyncio.create_task(Timed(builder.build(), time, anywhere).run("x"))
        await first.entered.wait()
        await time.move(4)
        first.opened.set()
        await second.entered.wait()
        await time.move(4)
        second.opened.set()
        return await running

    assert run(scenario()).outputs == ["x", "x"]


def test_a_timed_out_handler_gives_its_slot_back_at_once(world, time, anywhere):
    """With `max_concurrency=1` the next one runs although the first swallows its cancellation."""
    gate = []

    @executor(timeout=5)
    async def a(text: str, ctx: WorkflowContext) -> str:
        while not gate[0].opened.is_set():
            try:
                await gate[0].opened.wait()
            except asyncio.CancelledError:
                world.log.append("swallowed")
        return text

    @executor
    async def b(text: str) -> str:
        world.log.append("b")
        return text

    @executor
    async def begin(text: str) -> str:
        return text

    builder = WorkflowBuilder("w", begin, max_concurrency=1).add_fan_out_edges(begin, [a, b])

    async def scenario():
        time.drive()
        gate.append(Gate())
        running = asyncio.create_task(failing(Timed(builder.build(), time, anywhere).run("x")))
        error = await passing(time, running)
        gate[0].opened.set()
        await others()
        return error

    assert run(scenario()).where == "a"
    assert sorted(world.log) == ["b", "swallowed"]


def test_a_timeout_throws_the_instance_away(time, anywhere):
    """The next attempt has an instance as it was saved, though the first has changed its own."""
    seen, gate = [], []

    class Keeps(Executor):
        def __init__(self, id, **policies):
            super().__init__(id, **policies)
            self.count = 0

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, int]) -> None:
            self.count += 1
            seen.append(self.count)
            if ctx.attempt == 1:
                await gate[0].opened.wait()
            ctx.yield_output(self.count)

        def on_checkpoint_save(self):
            return {"count": self.count}

        def on_checkpoint_restore(self, state):
            self.count = state["count"]

    keeps = Keeps("keeps", timeout=5, retry=Retry(delay=0))

    async def scenario():
        time.drive()
        gate.append(Gate())
        running = asyncio.create_task(Timed(WorkflowBuilder("w", keeps).build(), time, anywhere).run("x"))
        return await passing(time, running)

    assert run(scenario()).outputs == [1]
    assert seen == [1, 1]


def test_an_attempt_in_time_is_not_touched_later(world, time, anywhere):
    """The deadline goes with the attempt: long after it nothing of it fires."""
    workflow = Timed(line(world, timeout=5), time, anywhere)

    async def scenario():
        time.drive()
        gate = world.gates["three"] = Gate()
        running = asyncio.create_task(workflow.run("x"))
        await gate.entered.wait()
        await time.move(4)
        gate.opened.set()
        result = await running
        await time.move(100)
        return result

    assert run(scenario()).outputs == ["x one two three"]


# plain handlers --------------------------------------------------------------------------------------------------


def threaded(world, stuck, *, limit=None, **policies):
    """start → (plain, beside): `plain` hangs in its first attempt and then uses its context, `beside` is async."""

    @executor
    async def start(text: str) -> str:
        return text

    @executor(id="plain", **policies)
    def plain(text: str, ctx: WorkflowContext[Never, str]) -> None:
        attempt = ctx.attempt
        world.log.append(f"plain {attempt}")
        ctx.set_state("n", ctx.get_state("n", 0) + 1)
        ctx.yield_output(f"{text} {attempt}")
        if attempt == 1:
            stuck.hang()
            try:
                ctx.yield_output("late")
            except ClosedContextError as error:
                world.log.append(f"closed {error.problem.rsplit(' ', 2)[-2]}")
            finally:
                stuck.left.release()
            raise Fault("late")
        ctx.yield_output(f"state {ctx.get_state('n')}")

    @executor
    async def beside(text: str) -> str:
        world.log.append("beside")
        return text

    builder = WorkflowBuilder("w", start, max_concurrency=limit).add_fan_out_edges(start, [plain, beside])
    return builder.build()


def test_case_63_the_retry_of_a_thread_starts_when_it_is_back_and_clean(world, time, anywhere):
    """What the first attempt does after its timeout is not seen; meanwhile it holds no slot, and its retry waits."""
    stuck = Stuck()
    workflow = threaded(world, stuck, limit=1, timeout=5, retry=Retry(attempts=2, delay=1))

    async def scenario():
        time.drive()
        running = asyncio.create_task(Timed(workflow, time, anywhere).run("x"))
        await stuck.is_entered()
        await others()
        await time.move(5)
        await until(lambda: "beside" in world.log)
        for _ in range(20):
            await time.move(10)
        assert sorted(world.log) == ["beside", "plain 1"]
        stuck.goes_on.set()
        return await running

    result = run(scenario())
    assert (result.status, result.outputs) == (Status.IDLE, ["x", "x 2", "state 1"])
    assert sorted(world.log) == ["beside", "closed timed", "plain 1", "plain 2"]


def test_a_run_fails_without_waiting_for_its_thread(world, time, anywhere):
    """A thread that hangs keeps the run from nothing but another attempt of its own."""
    stuck = Stuck()
    workflow = Timed(threaded(world, stuck, timeout=5), time, anywhere)

    async def scenario():
        time.drive()
        running = asyncio.create_task(failing(workflow.run("x")))
        await stuck.is_entered()
        await others()
        await time.move(5)
        error = await running
        again = asyncio.create_task(workflow.run(checkpoint=error.result))
        await others()
        await time.move(1)
        assert not again.done()
        assert "plain 2" not in world.log
        stuck.goes_on.set()
        return error, await again

    error, result = run(scenario())
    assert isinstance(error.__cause__, InvocationTimeoutError)
    assert result.outputs == ["x", "x 2", "state 1"]


@pytest.mark.parametrize("way", ["task", "stream"])
def test_a_run_is_cancelled_without_waiting_for_its_thread(world, anywhere, way):
    """`CANCELLED` comes at once; a resume in this process waits until the thread is back."""
    stuck = Stuck()
    workflow = threaded(world, stuck)

    async def scenario():
        stream = workflow.run("x", stream=True, checkpoint_storage=anywhere)
        reading = asyncio.create_task(stream.result())
        await stuck.is_entered()
        if way == "task":
            reading.cancel()
            await asyncio.wait([reading])
            result = await stream.cancel()
        else:
            result = await stream.cancel()
            await asyncio.wait([reading])
        again = asyncio.create_task(workflow.run(checkpoint=result, checkpoint_storage=anywhere))
        await others()
        assert "plain 2" not in world.log
        stuck.goes_on.set()
        return result, await again

    result, again = run(scenario())
    assert result.status is Status.CANCELLED
    assert again.outputs == ["x", "x 2", "state 1"]
    assert "closed was" in world.log


def test_a_resume_in_another_event_loop_waits_for_the_thread_too(world):
    """The thread belongs to the process: a second `asyncio.run` does not run the same invocation beside it."""
    stuck = Stuck()
    workflow = threaded(world, stuck)

    async def first():
        stream = workflow.run("x", stream=True)
        await anext(stream)
        await stuck.is_entered()
        return await stream.cancel()

    async def second(stopped):
        again = asyncio.create_task(workflow.run(checkpoint=stopped))
        await others()
        assert "plain 2" not in world.log
        stuck.goes_on.set()
        return await again

    assert run(second(run(first()))).outputs == ["x", "x 2", "state 1"]


def test_waiting_for_a_thread_does_not_count(world, time, anywhere, monkeypatch):
    """The time of a plain handler starts when a thread has taken it up, however long all of them were busy."""
    monkeypatch.setattr(threads._POOLS, "pool", threads._Pool())
    monkeypatch.setattr(threads, "MAX_THREADS", 1)
    stuck = Stuck()
    begun = []

    @executor
    async def start(text: str) -> str:
        return text

    @executor
    def first(text: str) -> str:
        stuck.hang()
        return f"{text} first"

    @executor(timeout=5)
    def second(text: str) -> str:
        begun.append(text)
        return f"{text} second"

    graph = WorkflowBuilder("w", start).add_fan_out_edges(start, [first, second]).build()

    async def scenario():
        time.drive()
        running = asyncio.create_task(Timed(graph, time, anywhere).run("x"))
        await stuck.is_entered()
        await time.move(60)
        assert begun == []
        stuck.goes_on.set()
        return await running

    assert run(scenario()).outputs == ["x first", "x second"]


def test_a_thread_that_was_left_takes_no_room_from_others(world, time, anywhere, monkeypatch):
    """With one thread allowed another plain handler runs while the first hangs beyond its timeout."""
    monkeypatch.setattr(threads._POOLS, "pool", threads._Pool())
    monkeypatch.setattr(threads, "MAX_THREADS", 1)
    stuck = Stuck()

    @executor
    async def start(text: str) -> str:
        return text

    @executor(timeout=5)
    def first(text: str) -> str:
        stuck.hang()
        stuck.left.release()
        return f"{text} first"

    @executor
    def second(text: str) -> str:
        world.log.append("second")
        return f"{text} second"

    graph = WorkflowBuilder("w", start).add_fan_out_edges(start, [first, second]).build()

    async def scenario():
        time.drive()
        running = asyncio.create_task(failing(Timed(graph, time, anywhere).run("x")))
        await stuck.is_entered()
        await others()
        assert world.log == []
        await time.move(5)
        error = await running
        stuck.goes_on.set()
        return error

    assert run(scenario()).where == "first"
    assert world.log == ["second"]
    assert stuck.left.acquire(timeout=PATIENCE)


def test_a_plain_handler_with_instance_state_gets_a_new_instance_after_its_timeout(time, anywhere):
    """What the thread that was left still does to its instance is not seen by the next attempt."""
    stuck = Stuck()

    class Keeps(Executor):
        def __init__(self, id, **policies):
            super().__init__(id, **policies)
            self.texts = []

        @handler
        def on_text(self, text: str, ctx: WorkflowContext[Never, list[str]]) -> None:
            attempt = ctx.attempt
            self.texts.append(f"{text} {attempt}")
            if text == "x" and attempt == 1:
                stuck.hang()
                self.texts.append("late")
            ctx.yield_output(list(self.texts))

        def on_checkpoint_save(self):
            return {"texts": self.texts}

        def on_checkpoint_restore(self, state):
            self.texts = state["texts"]

    keeps = Keeps("keeps", timeout=5, retry=Retry(delay=0))
    workflow = Timed(WorkflowBuilder("w", keeps).build(), time, anywhere)

    async def scenario():
        time.drive()
        running = asyncio.create_task(workflow.run("x"))
        await stuck.is_entered()
        await others()
        await time.move(5)
        stuck.goes_on.set()
        first = await running
        return await workflow.run("y", checkpoint=first)

    result = run(scenario())
    assert result.outputs == [["x 2", "y 1"]]


def test_a_sub_workflow_without_a_timeout_may_take_long(world, time, anywhere):
    """Timeouts are of one attempt of one executor: neither its scope nor the executors around it have one."""
    workflow = Timed(line(world, 2, timeout=5, retry=Retry(attempts=4, delay=10)), time, anywhere)
    world.fails["two"] = 3

    async def scenario():
        time.drive()
        running = asyncio.create_task(workflow.run("x"))
        return await passing(time, running, 1)

    assert run(scenario()).outputs == ["x into into one two three out out"]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            "",
            "a handler of a/b did not end within 2.5 seconds. The attempt left no trace: continue the run, or give the"
            " executor a longer timeout= or a retry=.",
        ),
        (
            "c",
            "step 'c' of a/b did not end within 2.5 seconds. The attempt left no trace: continue the run, or give the"
            " step a longer timeout= or a retry=.",
        ),
    ],
)
def test_the_error_of_a_timeout_says_what_took_too_long_and_can_be_copied(step, text):
    """It survives being sent to another process, as all errors of the library do."""
    error = InvocationTimeoutError("a/b", 2.5, step)
    assert str(error) == text
    kind, fields = error.__reduce__()
    assert str(kind(*fields)) == str(error)
    assert issubclass(kind, errors.RunError)
