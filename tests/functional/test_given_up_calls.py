"""Calls that a function gives up while they are under way: remembered as that, so that it goes the same way again."""

import asyncio

from rehydrate import FunctionalContext, Status, step, workflow
from rehydrate.errors import StepFailedError
from rehydrate.testing import VirtualClock, run_virtually
from tests.functional.book import answers, failed, run


def forever():
    return asyncio.get_running_loop().create_future()


def test_a_step_that_a_timeout_of_the_function_has_cancelled_is_not_run_again(book, store):
    """It takes the other way again, also where the step would be quick now."""
    note = book.step()

    def flow(quick):
        @step
        async def slow() -> str:
            book("slow")
            if not quick:
                await forever()
            return "in time"

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            try:
                async with asyncio.timeout(60):
                    found = await slow()
            except TimeoutError:
                found = await note("other way")
            return found + await ctx.request_info("?", response_type=str)

        return flow

    async def scenario():
        first = await flow(quick=False).run("x", run_id="r")
        return first, await flow(quick=True).run(responses=answers(first, "!"))

    first, second = run_virtually(scenario())
    assert (first.status, second.output) == (Status.IDLE_WITH_PENDING_REQUESTS, "OTHER WAY!")
    assert book.took() == ["slow", "note other way"]


def test_a_timer_that_was_given_up_is_not_up_later(book, store):
    """The process comes back when its time is long over: it still never came."""
    clock = VirtualClock()
    note = book.step()

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            try:
                async with asyncio.timeout(60):
                    await ctx.sleep(3600)
                found = "slept"
            except TimeoutError:
                found = await note("woken")
            return found + await ctx.request_info("?", response_type=str)

        return flow

    async def scenario():
        first = await flow().run("x", run_id="r")
        clock.advance(7200)
        return await flow().run(responses=answers(first, "!"))

    assert run_virtually(scenario(), clock=clock).output == "WOKEN!"
    assert book.took() == ["note woken"]


def test_the_loser_of_a_race_is_not_run_again(book, store):
    """The first of two steps wins, the other one is cancelled; after a restore the same one wins, at no cost."""
    note = book.step()

    class Never:
        async def wait(self):
            await forever()

    book.gates["loser"] = Never()

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            tasks = [asyncio.ensure_future(note("loser")), asyncio.ensure_future(note("winner"))]
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await asyncio.wait(pending)
            return done.pop().result() + await ctx.request_info("?", response_type=str)

        return flow

    first = run(flow(), "x", run_id="r")
    book.gates.clear()
    second = run(flow(), responses=answers(first, "!"))
    assert (second.output, book.took()) == ("WINNER!", ["note loser", "note winner"])


def test_a_called_workflow_that_was_given_up_never_comes_back(book, store):
    """What it would have given is of no use to a function that has gone another way; it ends with its caller."""
    note = book.step()

    @workflow
    async def inner(text: str, ctx: FunctionalContext) -> str:
        await ctx.sleep(3600)
        return await note("inner")

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str], calls=[inner])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            try:
                async with asyncio.timeout(60):
                    found = await ctx.call(inner, text)
            except TimeoutError:
                found = await note("other way")
            return found + await ctx.request_info("?", response_type=str)

        return flow

    async def scenario():
        first = await flow().run("x", run_id="r")
        second = await flow().run(responses=answers(first, "!"))
        return second, {key[1] for key, _ in second.checkpoint.records.records()}

    second, kinds = run_virtually(scenario())
    assert (second.status, second.output) == (Status.IDLE, "OTHER WAY!")
    assert kinds & {"pass", "call", "calls"} == set()


def test_what_was_given_up_by_a_function_that_failed_is_tried_again(book, store):
    """A gather that fails cancels the others and the run fails with it: a resume runs them all."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            return "".join(await ctx.gather(note("bad"), note("slow")))

        return flow

    class Never:
        async def wait(self):
            await forever()

    book.gates["slow"] = Never()
    book.faults["note bad"] = OSError("no network")
    error = failed(flow(), "x", run_id="r")
    assert isinstance(error.__cause__, StepFailedError)
    book.faults.clear()
    book.gates.clear()
    assert run(flow(), checkpoint=error.result).output == "BADSLOW"
