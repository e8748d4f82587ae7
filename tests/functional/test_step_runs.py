"""How a step runs: its attempts, timeouts and threads, and the key that it hands to systems outside."""

import asyncio
import threading

import pytest

from rehydrate import FunctionalContext, Retry, Status, current_step, step, workflow
from rehydrate.errors import EffectError, ExecutorDefinitionError, PolicyError, StepFailedError, WorkflowBuildError
from rehydrate.model.events import AttemptFailed, Emitted
from rehydrate.testing import VirtualClock, run_virtually
from tests.functional.book import failed, run


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


@pytest.mark.parametrize("given", [{"retry": 3}, {"timeout": 0}], ids=str)
def test_a_policy_of_a_step_that_makes_no_sense_is_refused(given):
    """The error names the step, and no executor."""
    (name,) = given
    with pytest.raises(PolicyError, match=rf"^{name}={given[name]} of step 'fetch'"):

        @step(name="fetch", **given)
        async def look(text: str) -> str:
            return text


async def words(text: str):
    yield text


async def nothing_is_said_of(message) -> str:
    return message


@pytest.mark.parametrize(
    ("decorator", "function", "text"),
    [
        (step(name="look"), print, "step 'look': @step was put on something that is not a plain function."),
        (step, words, "step 'words': a step is no generator."),
        (workflow, print, "function 'print': @workflow was put on something that is not an async function."),
    ],
)
def test_a_step_or_function_that_is_declared_wrongly_is_named_by_what_it_is(decorator, function, text):
    """Neither is called an executor."""
    with pytest.raises(ExecutorDefinitionError) as caught:
        decorator(function)
    assert str(caught.value).startswith(text)


def test_a_function_whose_signature_says_too_little_is_named_as_a_function():
    """Among the problems of the workflow."""
    with pytest.raises(
        WorkflowBuildError, match="function 'nothing_is_said_of': parameter 'message' has no annotation"
    ):
        workflow(nothing_is_said_of)


def test_a_step_tells_progress_which_a_run_that_remembers_it_does_not(store):
    """From a coroutine and from a thread; where the step's result is given again, nothing is told."""

    @step
    async def count(number: int) -> int:
        current_step().emit({"half": number})
        return number

    @step
    def count_in_a_thread(number: int) -> int:
        current_step().emit({"whole": number})
        return number

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(number: int, ctx: FunctionalContext) -> bool:
        await count_in_a_thread(await count(number))
        return await ctx.request_info("go on?", response_type=bool)

    async def told(*args, **options):
        stream = flow.run(*args, stream=True, **options)
        return [event.data async for event in stream if isinstance(event, Emitted)], await stream.result()

    async def scenario():
        progress, paused = await told(3, run_id="r")
        assert progress == [{"half": 3}, {"whole": 3}]
        progress, _ = await told(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])
        assert progress == []

    asyncio.run(scenario())
