"""Tasks that a function has made are not left behind when it ends or waits."""

import asyncio
import contextlib
import gc
import warnings

import pytest

from rehydrate import FunctionalContext, FunctionalWorkflow, RunFailedError, Status, step, workflow
from rehydrate.runtime.functional_pass import Pass
from rehydrate.testing import Crashes, run_virtually


@workflow(types=[str, bool])
async def first_of_two(text: str, ctx: FunctionalContext) -> str:
    """Tasks that only wait, for what the function itself has called."""
    question = asyncio.ensure_future(ctx.request_info("Buy it?", response_type=bool))
    other = asyncio.ensure_future(ctx.request_info(text, response_type=bool))
    await asyncio.wait({question, other}, return_when=asyncio.FIRST_COMPLETED)
    return f"{question.done()} {other.done()}"


@pytest.mark.parametrize(("which", "told"), [("Buy it?", "True False"), ("Sell it?", "False True")])
def test_a_task_that_waits_for_a_call_ends_with_the_function(which: str, told: str) -> None:
    """Where the function waits, and where it returns without having awaited the task."""

    async def run() -> None:
        paused = await first_of_two.run("Sell it?")
        await others_end()
        (request,) = (each for each in paused.pending_requests if each.data == which)
        result = await first_of_two.run(checkpoint=paused.checkpoint, responses=[request.answer(True)])
        await others_end()
        assert (result.outputs, result.status, result.pending_requests) == ([told], Status.IDLE, ())

    asyncio.run(run())


async def others_end() -> None:
    """Give tasks a few turns in which to end."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@step
async def one_more(number: int) -> int:
    return number + 1


def side_by_side() -> FunctionalWorkflow[int, int]:
    """A function with branches that a crash may end before they begin."""

    @workflow
    async def adding(number: int, ctx: FunctionalContext) -> int:
        asked = await ctx.request_info("How much?", response_type=int)
        return sum(await ctx.gather(one_more(number), one_more(asked)))

    return adding


def test_a_branch_that_has_not_begun_is_ended_without_a_word() -> None:
    """A process that ends at any command leaves no coroutine that nobody has awaited."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert run_virtually(Crashes(side_by_side, 1, answers={"adding": 5}).check()) > 10
        gc.collect()
    assert [str(each.message) for each in told] == []


def test_each_branch_of_a_function_that_is_left_may_clean_up() -> None:
    """However many there are, and though each makes one more call on its way out."""
    cleaned: list[int] = []

    @workflow
    async def asking(number: int, ctx: FunctionalContext) -> int:
        async def branch(at: int) -> None:
            try:
                await ctx.request_info(str(at), response_type=str)
            finally:
                try:
                    await one_more(at)
                finally:
                    await asyncio.sleep(0)
                    cleaned.append(at)

        await ctx.gather(*[branch(at) for at in range(number)])
        return number

    async def run() -> None:
        assert len((await asking.run(40)).pending_requests) == 40
        for _ in range(100):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert sorted(cleaned) == list(range(40))


def test_a_function_that_is_left_before_its_first_line_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run is cancelled in the turn of the loop in which its task was made."""
    begun: list[int] = []
    begin = Pass._begin

    @workflow
    async def flow(number: int) -> int:
        begun.append(number)
        return number

    def begin_and_leave(current: Pass) -> asyncio.Task[object]:
        task = begin(current)
        current.leave("was cancelled")
        running = asyncio.current_task()
        assert running is not None
        running.cancel()
        return task

    async def run() -> None:
        monkeypatch.setattr(Pass, "_begin", begin_and_leave)
        call = asyncio.ensure_future(flow.run(1))
        for _ in range(50):
            await asyncio.sleep(0)
        with contextlib.suppress(RunFailedError):  # nobody has cancelled the run itself
            await call

    asyncio.run(run())
    assert begun == []
