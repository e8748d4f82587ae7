"""Steps that run beside one that fails, or beside a function that ends: what is recorded, and what is tried again."""

import asyncio

import pytest

from rehydrate import FunctionalContext, step, workflow
from rehydrate.errors import StepFailedError
from tests.functional.book import answers, failed, run, turns


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
