"""How a function is stopped from outside: concurrency, cancellation, drains and limits."""

import asyncio

import pytest

from rehydrate import FunctionalContext, Retry, Status, WorkflowBuilder, drain, executor, step, workflow
from rehydrate.errors import RunDrainedError
from rehydrate.model.events import AttemptFailed
from rehydrate.testing import VirtualClock, claim_turns_again, run_virtually
from tests.functional.book import answers, bounded, run, turns


@pytest.fixture
def undrained():
    """The test leaves a process that claims turns."""
    yield
    claim_turns_again()


def forever():
    return asyncio.get_running_loop().create_future()


async def until(condition):
    """Wait in virtual or real time until something holds."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.wait([forever()], timeout=0.001)
    raise AssertionError("it has not come to that")


@pytest.mark.parametrize("limit", [1, 2])
def test_concurrency_counts_steps_that_run_and_nothing_that_waits(book, limit):
    """Functions, branches, questions, timers and back-offs hold no slot; nested calls do not lock each other out."""
    running = most = 0

    @step
    async def counted(text: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await turns(5)
        running -= 1
        return text

    @executor(id="node")
    async def node(text: str) -> str:
        return await counted(text)

    @workflow(name="third")
    async def third(text: str) -> str:
        return await counted(text)

    graph = WorkflowBuilder("graph", node).build()

    @workflow(name="second", calls=[third, graph])
    async def second(text: str, ctx: FunctionalContext) -> str:
        parts = await ctx.gather(ctx.call(third, f"{text}3"), counted(f"{text}2"))
        (below,) = await ctx.call(graph, f"{text}g")
        return "".join(parts) + below

    @workflow(name="first", calls=[second], max_concurrency=limit)
    async def first(text: str, ctx: FunctionalContext) -> str:
        parts = await ctx.gather(*(ctx.call(second, text) for text in "abc"), counted("1"), ctx.sleep(0.01))
        return " ".join(part for part in parts if part)

    assert run(first, "x").output == "a3a2ag b3b2bg c3c2cg 1"
    assert most == limit


def test_a_back_off_holds_no_slot():
    """Another step runs while the first waits for its next attempt."""
    order = []

    @step(retry=Retry(attempts=2, delay=60))
    async def flaky() -> str:
        order.append("flaky")
        if order.count("flaky") == 1:
            raise OSError("once")
        return "done"

    @step
    async def other() -> str:
        order.append("other")
        return "other"

    @workflow(max_concurrency=1)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        return " ".join(await ctx.gather(flaky(), other()))

    async def scenario():
        return await flow.run("x")

    assert run_virtually(scenario()).output == "done other"
    assert order == ["flaky", "other", "flaky"]


def test_a_cancelled_run_is_over_within_five_seconds_and_goes_on_later(book, store):
    """Also with a step that swallows its cancellation; finished steps are kept, and what it does later is not seen."""
    note = book.step()
    stubborn_runs = []

    def flow():
        @step
        async def stubborn() -> str:
            stubborn_runs.append("begins")
            if len(stubborn_runs) > 1:
                return "at last"
            try:
                await forever()
            except asyncio.CancelledError:
                stubborn_runs.append("swallowed")
            await asyncio.wait([forever()], timeout=60)
            return "too late"

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            first = await note("first")
            return first + await stubborn()

        return flow

    async def scenario():
        stream = flow().run("x", run_id="r", stream=True)
        reading = asyncio.ensure_future(stream.result())
        await until(lambda: stubborn_runs)
        loop = asyncio.get_running_loop()
        before = loop.time()
        result = await stream.cancel()
        took = loop.time() - before
        await asyncio.wait([reading])
        reading.exception()
        return result.status, took, await flow().run(checkpoint="latest", run_id="r")

    status, took, second = run_virtually(scenario())
    assert status is Status.CANCELLED
    assert took <= 5
    assert (second.output, book.took()) == ("FIRSTat last", ["note first"])
    assert stubborn_runs == ["begins", "swallowed", "begins"]


def test_a_cancelled_call_reraises_after_it_is_saved(book, store):
    """The same for a cancelled `await`, while a step and a called workflow's step run."""
    begun, cleaned = [], []

    @step
    async def hangs(text: str) -> str:
        begun.append(text)
        try:
            await forever()
        finally:
            await turns(3)
            cleaned.append(text)
        return "never"

    @workflow(name="inner")
    async def inner(text: str) -> str:
        return await hangs("below")

    @workflow(name="outer", calls=[inner], checkpoint_storage=store)
    async def outer(text: str, ctx: FunctionalContext) -> str:
        return "".join(await ctx.gather(ctx.call(inner, text), hangs("here")))

    async def scenario():
        call = asyncio.create_task(outer.run("x", run_id="r"))
        await until(lambda: len(begun) == 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await turns(20)
        return (await store.head("r")).header.status

    assert bounded(scenario()) is Status.CANCELLED
    assert sorted(cleaned) == ["below", "here"]


def test_a_function_that_sleeps_for_a_day_does_not_hold_up_a_drain(book, store, undrained):
    """It is left at once, and another process goes on at the time that was recorded."""
    clock = VirtualClock()
    note = book.step()

    def flow():
        @workflow(name="sleepy", checkpoint_storage=store)
        async def sleepy(text: str, ctx: FunctionalContext) -> str:
            await note("before")
            await ctx.sleep(86_400)
            return await note(f"after {clock.passed}")

        return sleepy

    async def scenario():
        call = asyncio.create_task(flow().run("x", run_id="r"))
        await until(lambda: book.log)
        await asyncio.wait([forever()], timeout=100)
        before = clock.passed
        await drain(grace=3600)
        took = clock.passed - before
        with pytest.raises(RunDrainedError):
            await call
        claim_turns_again()
        return took, await flow().run(checkpoint="latest", run_id="r")

    took, second = run_virtually(scenario(), clock=clock)
    assert took < 1
    assert book.took()[0] == "note before"
    assert float(second.output.removeprefix("AFTER ")) == pytest.approx(86_400, abs=1)


def test_a_drain_lets_running_steps_finish_and_records_them(book, store, undrained):
    """No further step begins; what was finished in the grace is not done again."""
    note = book.step()

    class Slowly:
        async def wait(self):
            await asyncio.wait([forever()], timeout=5)
            book("slow ends")

    book.gates["slow"] = Slowly()

    def flow():
        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            parts = await ctx.gather(note("slow"), note("fast"))
            return "".join(parts) + await note("next")

        return flow

    async def scenario():
        call = asyncio.create_task(flow().run("x", run_id="r"))
        await until(lambda: len(book.log) == 2)
        await drain(grace=10)
        with pytest.raises(RunDrainedError):
            await call
        drained = book.took()
        claim_turns_again()
        return drained, await flow().run(checkpoint="latest", run_id="r")

    drained, second = run_virtually(scenario())
    assert drained == ["note slow", "note fast", "slow ends"]
    assert (second.output, book.took()) == ("SLOWFASTNEXT", ["note next"])


def test_a_drain_does_not_wait_for_a_back_off(store, undrained):
    """A step that waits for its next attempt is handed on with the time of that."""
    clock = VirtualClock()
    calls = []

    def flow():
        @step(retry=Retry(attempts=2, delay=600, max_delay=600))
        async def flaky() -> str:
            calls.append(clock.passed)
            if len(calls) == 1:
                raise OSError("once")
            return "done"

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str) -> str:
            return await flaky()

        return flow

    async def scenario():
        stream = flow().run("x", run_id="r", stream=True)
        async for event in stream:
            if isinstance(event, AttemptFailed):
                break
        reading = asyncio.ensure_future(stream.result())
        await drain(grace=3600)
        drained = clock.passed
        with pytest.raises(RunDrainedError):
            await reading
        claim_turns_again()
        return drained, await flow().run(checkpoint="latest", run_id="r")

    drained, second = run_virtually(scenario(), clock=clock)
    assert drained < 60
    assert (second.output, calls) == ("done", [0, 600])


def test_a_timer_waits_in_the_live_run_and_over_restores(book, store):
    """A sleep beside a question ends the call with the question; once its time is over the function goes on."""
    clock = VirtualClock()

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            async def reminder():
                await ctx.sleep(3600)
                return await note("remind")

            reminded, answer = await ctx.gather(reminder(), ctx.request_info(text, response_type=str))
            return reminded + answer

        return flow

    async def scenario():
        first = await flow().run("?", run_id="r")
        early = await flow().run(checkpoint="latest", run_id="r")
        before = book.took()
        clock.advance(4000)
        due = await flow().run(checkpoint="latest", run_id="r")
        after = book.took()
        last = await flow().run(responses=answers(first, "!"))
        return early.status, before, due.status, after, last.output

    early, before, due, after, output = run_virtually(scenario(), clock=clock)
    assert (early, due) == (Status.IDLE_WITH_PENDING_REQUESTS, Status.IDLE_WITH_PENDING_REQUESTS)
    assert (before, after, output) == ([], ["note remind"], "REMIND!")
