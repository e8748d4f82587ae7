"""Branches that are cancelled before they have begun."""

import asyncio
import gc
import warnings

from rehydrate import FunctionalContext, workflow


def test_a_branch_that_is_cancelled_before_it_begins_leaves_no_warning() -> None:
    """A timeout that is over at once cancels the gather; nobody is told that a coroutine was never awaited."""

    async def branch(number: int) -> int:
        return number

    @workflow
    async def hurried(word: str, ctx: FunctionalContext) -> str:
        try:
            async with asyncio.timeout(0):
                await ctx.gather(branch(1), branch(2))
        except TimeoutError:
            return "too late"
        return "in time"

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert asyncio.run(hurried.run("a")).outputs == ["too late"]
        gc.collect()
    assert [str(warning.message) for warning in seen] == []
