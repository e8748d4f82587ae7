"""Tasks that a function has made are not left behind when it ends or waits."""

import asyncio

import pytest

from rehydrate import FunctionalContext, Status, workflow


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
