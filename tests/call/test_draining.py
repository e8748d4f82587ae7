"""Draining a process: its live turns are handed on, whatever they are doing, in the time that is given."""

import asyncio
import threading
from typing import Never

import pytest

from rehydrate import (
    DrainedRun,
    DrainSummary,
    SqliteCheckpointStorage,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    drain,
    executor,
)
from rehydrate.errors import ClosedContextError, DrainingError, RunDrainedError, SaveFailedError, WrongCallError
from rehydrate.testing import claim_turns_again, run_virtually
from tests.call.desk import Gate


@pytest.fixture(autouse=True)
def undrained():
    """Each test leaves a process that claims turns."""
    yield
    claim_turns_again()


class Hall:
    """A workflow of three executors in a row, the second of them one level down, and what happened in it."""

    def __init__(self, store=None, *, work=None, **options):
        self.ran = []
        self.seconds = 0.0
        self.entered = asyncio.Event()
        hall = self

        @executor(id="first")
        async def first(text: str) -> str:
            hall.ran.append("first")
            return text

        @executor(id="second")
        async def second(text: str, ctx: WorkflowContext[Never, str]) -> None:
            hall.ran.append("second")
            hall.entered.set()
            await hall.wait()
            ctx.yield_output(f"{text}, worked on")

        @executor(id="last")
        async def last(text: str) -> str:
            hall.ran.append("last")
            return f"{text}, done"

        below = WorkflowBuilder("below", work or second).build()
        builder = WorkflowBuilder("hall", first, checkpoint_storage=store, **options)
        self.workflow = builder.add_chain([first, WorkflowExecutor(below, id="below"), last]).build()

    async def wait(self):
        if self.seconds:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=self.seconds)

    async def begin(self, **options):
        """Begin a run and return its call once the second executor works."""
        call = asyncio.create_task(self.workflow.run("a", run_id="run", **options))
        await self.entered.wait()
        return call


async def drained(call):
    with pytest.raises(RunDrainedError) as raised:
        await call
    return raised.value


async def read(stream, told):
    async for event in stream:
        told.append(event)


async def head(store):
    return None if store is None else await store.head("run")


def test_a_turn_is_handed_on_when_the_handlers_that_run_have_finished(anywhere):
    """Nothing new starts, what they did is saved, nobody owns the run, and a call goes on with it as if nothing was."""

    async def scenario():
        hall = Hall(anywhere)
        hall.seconds = 4.0
        call = await hall.begin()
        summary = await drain(grace=10)
        passed = asyncio.get_running_loop().time()
        error = await drained(call)
        ran, stands = list(hall.ran), await head(anywhere)
        claim_turns_again()
        result = await hall.workflow.run(checkpoint=error.result if anywhere is None else "latest", run_id="run")
        return summary, passed, error, ran, stands, result, hall.ran

    summary, passed, error, ran, stands, result, all_ran = run_virtually(scenario())
    assert summary == DrainSummary((DrainedRun("run", "hall", error.checkpoint_id, "handed on"),))
    assert (passed, ran) == (4.0, ["first", "second"])
    assert (error.run_id, error.stored, error.result.status) == ("run", anywhere is not None, Status.RUNNING)
    if stands is not None:
        assert (stands.header.checkpoint_id, stands.header.status, stands.owner) == (
            error.checkpoint_id, Status.RUNNING, None,
        )  # fmt: skip
    assert (result.outputs, all_ran) == (["a, worked on, done"], ["first", "second", "last"])


def test_handlers_that_take_longer_are_stopped_and_run_again(anywhere):
    """They are cancelled when the time is over and leave no trace."""

    async def scenario():
        hall = Hall(anywhere)
        hall.seconds = 60.0
        call = await hall.begin()
        summary = await drain(grace=10)
        passed = asyncio.get_running_loop().time()
        error = await drained(call)
        claim_turns_again()
        hall.seconds = 0.0
        result = await hall.workflow.run(checkpoint=error.result if anywhere is None else "latest", run_id="run")
        return summary.of("cut off"), passed, result.outputs, hall.ran

    cut_off, passed, outputs, ran = run_virtually(scenario())
    assert (cut_off, passed, outputs) == (("run",), 10.0, ["a, worked on, done"])
    assert ran == ["first", "second", "second", "last"]


def test_a_turn_that_ends_in_time_ends_as_always(store):
    """Its call returns, and the summary says that it finished."""

    async def scenario():
        gate = Gate()

        @executor(id="only")
        async def only(text: str) -> str:
            await gate.wait()
            return text

        workflow = WorkflowBuilder("one", only, checkpoint_storage=store).build()
        call = asyncio.create_task(workflow.run("a", run_id="run"))
        await gate.entered.wait()
        draining = asyncio.create_task(drain(10))
        await asyncio.sleep(0)
        gate.opened.set()
        return await draining, await call

    summary, result = run_virtually(scenario())
    assert summary.of("finished") == ("run",)
    assert (result.status, result.outputs) == (Status.IDLE, ["a"])


def test_a_drained_process_claims_nothing(store):
    """A call is refused before anything has changed; one that has nothing to do is answered."""

    async def scenario():
        hall = Hall(store)
        done = await hall.workflow.run("a", run_id="run", idempotency_key="key")
        hall.ran.clear()
        assert await drain() == DrainSummary(())
        with pytest.raises(DrainingError) as new:
            await hall.workflow.run("b", run_id="other")
        with pytest.raises(DrainingError):
            await hall.workflow.run("b", checkpoint="latest", run_id="run")
        with pytest.raises(DrainingError):
            await anext(hall.workflow.run("b", stream=True))
        look = await hall.workflow.run(checkpoint="latest", run_id="run")
        again = await hall.workflow.run("a", run_id="run", idempotency_key="key")
        return new.value, await store.head("other"), look, again, done, hall.ran

    error, other, look, again, done, ran = run_virtually(scenario())
    assert (error.run_id, error.code, other, ran) == ("other", "draining", None, [])
    assert look.checkpoint_id == again.checkpoint_id == done.checkpoint_id
    assert again.replayed


def test_the_reader_of_a_stream_gets_what_was_committed_and_then_the_error(anywhere):
    """No status tells of an end, so the iteration does not end as if there was one; a slow reader holds nothing up."""

    async def scenario():
        hall = Hall(anywhere)
        hall.seconds = 1.0
        stream = hall.workflow.run("a", run_id="run", stream=True)
        told = [await anext(stream)]
        await hall.entered.wait()
        summary = await drain(10)
        with pytest.raises(RunDrainedError):
            await read(stream, told)
        with pytest.raises(RunDrainedError):
            await stream.result()
        return summary, [type(event).__name__ for event in told if not event.live]

    summary, told = run_virtually(scenario())
    assert summary.of("handed on") == ("run",)
    assert told[0] == "TurnStarted"
    assert "StatusChanged" not in told


def test_what_waits_for_a_slot_never_starts(store):
    """The turn does not wait for invocations that have not begun."""

    async def scenario():
        ran, entered = [], asyncio.Event()

        @executor(id="start")
        async def start(text: str) -> str:
            return text

        def worker(name):
            @executor(id=name)
            async def work(text: str) -> str:
                ran.append(name)
                entered.set()
                await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=3)
                return f"{name} {text}"

            return work

        workflow = (
            WorkflowBuilder("slots", start, checkpoint_storage=store, max_concurrency=1)
            .add_fan_out_edges(start, [worker("left"), worker("right")])
            .build()
        )
        call = asyncio.create_task(workflow.run("a", run_id="run"))
        await entered.wait()
        summary = await drain(10)
        await drained(call)
        before, passed = list(ran), asyncio.get_running_loop().time()
        claim_turns_again()
        result = await workflow.run(checkpoint="latest", run_id="run")
        return summary.of("handed on"), before, passed, result.outputs, ran

    handed_on, before, passed, outputs, ran = run_virtually(scenario())
    assert (handed_on, before, passed) == (("run",), ["left"], 3.0)
    assert (outputs, ran) == (["left a", "right a"], ["left", "right"])


def test_a_drain_waits_for_nothing_at_any_turn_of_the_loop(store):
    """Also an invocation that was to start just now, and has not taken its first step, is not waited for."""

    async def drained_after(turns):
        ran = []

        def link(name):
            @executor(id=name)
            async def work(text: str) -> str:
                ran.append(name)
                return text

            return work

        workflow = WorkflowBuilder("chain", first := link("a"), checkpoint_storage=store).add_chain(
            [first, *map(link, "bcdef")]
        )
        call = asyncio.create_task(workflow.build().run("x", run_id=f"run {turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        summary = await drain(10)
        await asyncio.wait([call])
        claim_turns_again()
        assert isinstance(call.exception(), RunDrainedError if summary.runs else DrainingError)
        assert len(ran) < 6
        return [run.ended for run in summary.runs]

    async def scenario():
        ends = [await drained_after(turns) for turns in range(12)]
        return sorted({end for runs in ends for end in runs}), asyncio.get_running_loop().time()

    ends, seconds = run_virtually(scenario())
    # Its thread may leave a call on SQLite no further than its claim in any number of turns.
    assert ends == ["handed on"] or (ends == [] and isinstance(store, SqliteCheckpointStorage))
    assert seconds == 0.0


def test_weaker_durability_is_saved_when_the_turn_is_handed_on(store):
    """`durability="turn"` saves pauses and ends; a drain is a pause."""

    async def scenario():
        hall = Hall(store)
        hall.seconds = 1.0
        call = await hall.begin(durability="turn")
        await drain(10)
        await drained(call)
        claim_turns_again()
        return (await hall.workflow.run(checkpoint="latest", run_id="run")).outputs, hall.ran

    assert run_virtually(scenario()) == (["a, worked on, done"], ["first", "second", "last"])


def test_a_handler_that_swallows_its_cancellation_is_not_waited_for(store):
    """Its context is closed, what it still does is not seen, and the drain takes no longer than its grace."""

    async def scenario():
        said, finish = [], asyncio.Event()
        entered = asyncio.Event()

        @executor(id="stubborn")
        async def stubborn(text: str, ctx: WorkflowContext[Never, str]) -> None:
            entered.set()
            while not finish.is_set():
                try:
                    await finish.wait()
                except asyncio.CancelledError:
                    said.append("swallowed")
            try:
                ctx.yield_output("late")
            except ClosedContextError:
                said.append("closed")

        workflow = WorkflowBuilder("stubborn", stubborn, checkpoint_storage=store).build()
        call = asyncio.create_task(workflow.run("a", run_id="run"))
        await entered.wait()
        summary = await drain(2)
        passed = asyncio.get_running_loop().time()
        error = await drained(call)
        finish.set()
        for _ in range(3):
            await asyncio.sleep(0)
        newest = (await store.head("run")).header.checkpoint_id
        return summary.of("cut off"), passed, said, newest == error.checkpoint_id

    cut_off, passed, said, is_newest = run_virtually(scenario())
    assert (cut_off, passed, is_newest) == (("run",), 2.0, True)
    assert (said[0], said[-1]) == ("swallowed", "closed")


def test_a_thread_that_does_not_come_back_is_not_waited_for(store):
    """A plain handler cannot be stopped; the turn is handed on without it."""
    entered, freed = threading.Event(), threading.Event()

    @executor(id="plain")
    def plain(text: str) -> str:
        entered.set()
        freed.wait(30)
        return text

    async def scenario():
        workflow = WorkflowBuilder("plain", plain, checkpoint_storage=store).build()
        call = asyncio.create_task(workflow.run("a", run_id="run"))
        await asyncio.to_thread(entered.wait, 10)
        summary = await drain(2)
        await drained(call)
        return summary.of("cut off"), asyncio.get_running_loop().time()

    assert run_virtually(scenario(), patience=1) == (("run",), 2.0)
    freed.set()


@pytest.mark.parametrize("opens", [True, False])
def test_a_last_commit_is_waited_for_five_seconds_and_no_longer(store, opens):
    """A store that does not answer keeps no process alive; the caller is told that it was not saved."""

    async def scenario():
        hall = Hall(store)
        hall.seconds = 1.0
        call = await hall.begin()
        store.gated_commit, store.commit_gate = 1, Gate()
        if opens:
            asyncio.get_running_loop().call_later(5.5, store.commit_gate.opened.set)
        summary = await drain(2)
        passed = asyncio.get_running_loop().time()
        with pytest.raises(RunDrainedError if opens else SaveFailedError):
            await call
        store.commit_gate.opened.set()
        claim_turns_again()
        result = await hall.workflow.run(checkpoint="latest", run_id="run")
        return summary.runs[0].ended, passed, result.outputs

    expected = ("handed on", 5.5) if opens else ("not saved", 7.0)
    assert run_virtually(scenario()) == (*expected, ["a, worked on, done"])


def test_a_claim_on_its_way_is_saved_and_nothing_of_it_starts(store):
    """The input is in the store, for whoever goes on."""

    async def scenario():
        hall = Hall(store)
        store.gated_commit, store.commit_gate = 1, Gate()
        call = asyncio.create_task(hall.workflow.run("a", run_id="run"))
        await store.commit_gate.entered.wait()
        draining = asyncio.create_task(drain(10))
        await asyncio.sleep(0)
        store.commit_gate.opened.set()
        summary = await draining
        await drained(call)
        ran = list(hall.ran)
        claim_turns_again()
        return summary.of("handed on"), ran, (await hall.workflow.run("a", run_id="run")).outputs

    assert run_virtually(scenario()) == (("run",), [], ["a, worked on, done"])


def test_attempts_that_a_drain_cut_off_are_not_counted_as_lost(store):
    """A handler that is longer than any grace is stopped by six drains, and does not fail for it."""

    async def scenario():
        hall = Hall(store)
        hall.seconds = 60.0
        call = await hall.begin()
        for _ in range(6):
            assert (await drain(1)).of("cut off") == ("run",)
            await drained(call)
            claim_turns_again()
            hall.entered.clear()
            call = asyncio.create_task(hall.workflow.run(checkpoint="latest", run_id="run"))
            await hall.entered.wait()
        return (await call).outputs

    assert run_virtually(scenario()) == ["a, worked on, done"]


def test_all_runs_of_all_event_loops_are_drained():
    """A run that `run_sync` drives in a thread is one of them."""
    entered, ended = threading.Event(), []

    def program():
        hall = Hall()
        hall.entered.set = entered.set
        hall.seconds = 20.0
        try:
            hall.workflow.run_sync("a", run_id="in a thread")
        except RunDrainedError as error:
            ended.append(error.run_id)

    async def scenario():
        hall = Hall()
        hall.seconds = 20.0
        call = await hall.begin()
        summary = await drain(0)
        await drained(call)
        return [(run.run_id, run.ended) for run in summary.runs]

    thread = threading.Thread(target=program)
    thread.start()
    assert entered.wait(20)
    assert asyncio.run(scenario()) == [("in a thread", "cut off"), ("run", "cut off")]
    thread.join(20)
    assert ended == ["in a thread"]


def test_two_drains_at_once_end_together(store):
    """Both tell of the same runs."""

    async def scenario():
        hall = Hall(store)
        hall.seconds = 1.0
        call = await hall.begin()
        one, other = await asyncio.gather(drain(10), drain(10))
        await drained(call)
        return one == other, one.runs[0].ended

    assert run_virtually(scenario()) == (True, "handed on")


@pytest.mark.parametrize("grace", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(grace):
    """Nothing is drained by it."""

    async def scenario():
        with pytest.raises(WrongCallError):
            await drain(grace)
        return (await Hall().workflow.run("a")).outputs

    assert run_virtually(scenario()) == ["a, worked on, done"]
