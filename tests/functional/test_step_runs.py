"""How a step runs: its attempts, timeouts and threads, and the key that it hands to systems outside."""

import asyncio
import threading

import pytest

from rehydrate import FunctionalContext, Retry, Status, current_step, step, workflow
from rehydrate.errors import EffectError, StepFailedError
from rehydrate.model.events import AttemptFailed
from rehydrate.testing import VirtualClock, run_virtually
from tests.functional.book import answers, failed, run, turns


class Flaky:
    """A step that fails some times; it notes when it was called, and with which key and attempt."""

    def __init__(self, clock, failures, **options):
        self.clock = clock
        self.failures = failures
        self.calls = []
        self.keys = []

        async def flaky(text: str) -> str:
            self.calls.append(clock.passed)
            self.keys.append((current_step().effect_key, current_step().attempt))
            if len(self.calls) <= self.failures:
                raise OSError(f"failure {len(self.calls)}")
            return text.upper()

        self.step = step(**options)(flaky)

    def flow(self, store, **options):
        @workflow(name="flow", checkpoint_storage=store, types=[str], **options)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            return await self.step(text)

        return flow


def test_a_step_is_tried_again_by_its_policy_with_one_key(store):
    """With its back-off; the key is the same for every attempt, and their number goes up."""
    clock = VirtualClock()
    flaky = Flaky(clock, 2, retry=Retry(attempts=3, delay=10, factor=3))

    async def scenario():
        return [event async for event in flaky.flow(store).run("a", run_id="r", stream=True)]

    events = run_virtually(scenario(), clock=clock)
    assert flaky.calls == [0, 10, 40]
    assert [attempt for _, attempt in flaky.keys] == [1, 2, 3]
    assert len({key for key, _ in flaky.keys}) == 1
    assert [event.again for event in events if isinstance(event, AttemptFailed)] == [10, 30]


def test_a_step_that_uses_up_its_attempts_fails_and_a_resume_tries_it_anew(store):
    """The failure names the step; continuing gives it a new budget."""
    clock = VirtualClock()
    flaky = Flaky(clock, 3, retry=Retry(attempts=2, delay=1))

    async def scenario():
        with pytest.raises(Exception, match="step 'flaky' of flow failed: OSError: failure 2"):
            await flaky.flow(store).run("a", run_id="r")
        return await flaky.flow(store).run(checkpoint="latest", run_id="r")

    result = run_virtually(scenario(), clock=clock)
    assert (result.status, result.output, len(flaky.calls)) == (Status.IDLE, "A", 4)
    assert len({key for key, _ in flaky.keys}) == 1


def test_only_what_a_policy_names_is_tried_again(store):
    """`on=` leaves other errors at their first attempt."""
    clock = VirtualClock()
    flaky = Flaky(clock, 1, retry=Retry(attempts=3, on=(LookupError,)))

    async def scenario():
        with pytest.raises(Exception, match="failure 1"):
            await flaky.flow(store).run("a", run_id="r")

    run_virtually(scenario(), clock=clock)
    assert flaky.calls == [0]


def test_the_time_of_the_next_attempt_survives_a_restore(store):
    """A run that was left in its back-off goes on at the time that was recorded, with the attempts that it had."""
    clock = VirtualClock()
    flaky = Flaky(clock, 1, retry=Retry(attempts=2, delay=60))

    async def scenario():
        stream = flaky.flow(store).run("a", run_id="r", stream=True)
        async for event in stream:
            if isinstance(event, AttemptFailed):
                break
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=20)
        await stream.cancel()
        clock.advance(15)
        return await flaky.flow(store).run(checkpoint="latest", run_id="r")

    result = run_virtually(scenario(), clock=clock)
    assert (result.output, flaky.calls) == ("A", [0, 60])
    assert [attempt for _, attempt in flaky.keys] == [1, 2]


def test_keys_are_the_same_after_a_restore_and_others_in_a_fork_and_for_other_calls(store):
    """An unfinished step has its key again; each call, each message and each fork has its own."""
    keys = []

    def flow(broken=False):
        @step
        async def pay(text: str) -> str:
            keys.append(current_step().effect_key)
            if broken:
                raise OSError("no network")
            return text

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> list[str]:
            return [*await ctx.gather(pay(text), pay(text)), await pay(text)]

        return flow

    error = failed(flow(broken=True), "a", run_id="r")
    assert len(set(keys)) == 2
    unfinished = keys.copy()
    forked = run(flow(), checkpoint=error.result, fork=True, run_id="s")
    in_fork = keys[2:].copy()
    run(flow(), checkpoint="latest", run_id="r")
    restored = keys[5:].copy()
    assert forked.run_id == "s"
    assert restored[:2] == unfinished
    assert len({*in_fork, *restored}) == 6


def test_current_step_is_known_in_steps_only():
    """Also in a thread; outside of a step it is an error that says so."""

    @step(name="in thread")
    def threaded() -> str:
        return current_step().name

    @workflow
    async def flow(text: str) -> str:
        with pytest.raises(EffectError):
            current_step()
        return await threaded()

    assert run(flow, "x").output == "in thread"


def test_a_step_that_takes_too_long_is_left(store):
    """Its attempt is over after its time, also where it swallows its cancellation; the next one may do better."""
    clock = VirtualClock()
    calls = []

    @step(timeout=5, retry=Retry(attempts=2, delay=1))
    async def slow() -> str:
        calls.append(clock.passed)
        if len(calls) > 1:
            return "done"
        for _ in range(2):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                calls.append("swallowed")
        return "too late"

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str) -> str:
        return await slow()

    async def scenario():
        call = asyncio.create_task(flow.run("x", run_id="r"))
        await asyncio.wait([call], timeout=60)
        return call.result()

    result = run_virtually(scenario(), clock=clock)
    assert result.output == "done"
    assert calls[0] == 0
    assert calls[1] == "swallowed"
    assert calls[2] == 6


def test_a_timeout_is_a_failure_that_can_be_caught(store):
    """Without another attempt the function is told which step took too long."""

    @step(timeout=5)
    async def slow() -> str:
        await asyncio.get_running_loop().create_future()
        return "never"

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str) -> str:
        try:
            return await slow()
        except StepFailedError as error:
            return f"{error.step}: {error.type}"

    async def scenario():
        return await flow.run("x", run_id="r")

    assert run_virtually(scenario()).output == "slow: InvocationTimeoutError"


def test_a_thread_that_takes_too_long_is_left_and_its_retry_waits_for_it(store):
    """What it returns later is not seen; the next attempt begins when the thread is back."""
    clock = VirtualClock()
    go_on = threading.Event()
    calls = []

    @step(timeout=5, retry=Retry(attempts=2, delay=0))
    def blocking() -> str:
        calls.append(current_step().attempt)
        if len(calls) == 1:
            assert go_on.wait(20)
            calls.append("late")
            return "too late"
        return "in time"

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str) -> str:
        return await blocking()

    async def scenario():
        stream = flow.run("x", run_id="r", stream=True)
        async for event in stream:
            if isinstance(event, AttemptFailed):
                calls.append("timed out")
                go_on.set()
        return await stream.result()

    result = run_virtually(scenario(), clock=clock, patience=0.2)
    assert result.output == "in time"
    assert calls == [1, "timed out", "late", 2]


def test_a_step_in_a_thread_that_fails_is_a_failed_step():
    """With the type and the text of what it raised."""

    @step
    def fails() -> str:
        raise LookupError("nothing there")

    @workflow
    async def flow(text: str) -> str:
        return await fails()

    error = failed(flow, "x")
    assert isinstance(error.__cause__, StepFailedError)
    assert (error.__cause__.type, error.__cause__.reason) == ("LookupError", "nothing there")


@pytest.mark.parametrize("catch", [True, False])
def test_a_failed_step_cancels_its_siblings_in_a_ctx_gather(book, store, catch):
    """The first that raises ends the gather; what the others had not finished is not remembered."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            try:
                await ctx.gather(note("bad"), note("slow"))
            except StepFailedError:
                if not catch:
                    raise
            return await note("after") + await ctx.request_info("?", response_type=str)

        return flow

    class Never:
        async def wait(self):
            await asyncio.get_running_loop().create_future()

    book.gates["slow"] = Never()
    book.faults["note bad"] = OSError("no network")
    if not catch:
        error = failed(flow(), "x", run_id="r")
        book.faults.clear()
        book.gates.clear()
        book.took()
        first = run(flow(), checkpoint=error.result)
        assert sorted(book.took()) == ["note after", "note bad", "note slow"]
        assert run(flow(), responses=answers(first, "!")).output == "AFTER!"
        return
    first = run(flow(), "x", run_id="r")
    assert book.took() == ["note bad", "note slow", "note after"]
    assert run(flow(), responses=answers(first, "!")).output == "AFTER!"
    assert book.took() == []


class Turns:
    """Where a step goes on after the others."""

    def __init__(self, book, entry):
        self.book = book
        self.entry = entry

    async def wait(self):
        await turns(100)
        self.book(self.entry)


def test_steps_that_run_when_their_function_fails_are_finished_and_recorded(book, store):
    """Case 32 with a plain `asyncio.gather`: one of four fails at once; a resume makes that one alone."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str) -> str:
            return "".join(await asyncio.gather(*(note(name) for name in ("a", "bad", "c", "d"))))

        return flow

    book.gates["c"] = Turns(book, "c ends")
    book.faults["note bad"] = OSError("no network")
    error = failed(flow(), "x", run_id="r")
    assert sorted(book.took()) == ["c ends", "note a", "note bad", "note c", "note d"]
    book.faults.clear()
    second = run(flow(), checkpoint=error.result)
    assert (second.output, book.took()) == ("ABADCD", ["note bad"])


@pytest.mark.parametrize("gather", ["ctx.gather", "asyncio.gather"])
def test_all_that_failed_side_by_side_is_tried_again_by_one_resume(book, store, gather):
    """Two of three fail; what the function never saw of the second failure does not fail the resume."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            side_by_side = ctx.gather if gather == "ctx.gather" else asyncio.gather
            return "".join(await side_by_side(note("a"), note("b"), note("c")))

        return flow

    book.faults |= {"note a": OSError("no network"), "note b": OSError("no network")}
    failed(flow(), "x", run_id="r")
    book.took()
    book.faults.clear()
    second = run(flow(), checkpoint="latest", run_id="r")
    assert (second.output, set(book.took()) - {"note c"}) == ("ABC", {"note a", "note b"})


def test_a_failure_that_was_caught_stays_where_something_came_of_it(book, store):
    """A fallback was called because of it; a resume after a later failure takes the same way."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str) -> str:
            try:
                found = await note("first")
            except StepFailedError:
                found = await note("fallback")
            return found + await note("last")

        return flow

    book.faults |= {"note first": OSError("no network"), "note last": OSError("no network")}
    failed(flow(), "x", run_id="r")
    book.faults.clear()
    book.took()
    second = run(flow(), checkpoint="latest", run_id="r")
    assert (second.output, book.took()) == ("FALLBACKLAST", ["note last"])


def test_a_step_that_still_runs_when_its_function_returns_is_cancelled(book, store):
    """What the function does not wait for is not waited for, and does not go on behind the run's back."""

    @step
    async def loser() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            book("cancelled")
            await asyncio.sleep(0)
            book("cleaned up")
        return "never"

    note = book.step()

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str) -> str:
        tasks = [asyncio.ensure_future(loser()), asyncio.ensure_future(note("winner"))]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    async def scenario():
        result = await flow.run("x", run_id="r")
        await turns()
        return result

    assert asyncio.run(scenario()).output == "WINNER"
    assert book.took() == ["note winner", "cancelled", "cleaned up"]
