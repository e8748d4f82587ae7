"""The work of the lines about functional workflows: recording steps, running over remembered ones, beginning anew.

Only the public calls are used. Bounds and floors are in `lines`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Stopwatch, Work
from rehydrate import FunctionalContext, SqliteCheckpointStorage, step, workflow


@step
async def one_more(n: int) -> int:
    return n + 1


@workflow
async def counting(count: int) -> int:
    """One small step after the other."""
    n = 0
    while n < count:
        n = await one_more(n)
    return n


@workflow(types=[bool])
async def asking(count: int, ctx: FunctionalContext) -> int:
    """The same, and a question at the end."""
    n = 0
    while n < count:
        n = await one_more(n)
    return n if await ctx.request_info(n, response_type=bool) else 0


@workflow(max_supersteps=1_000_000)
async def renewing(count: int, ctx: FunctionalContext) -> int:
    """One small step for each time that it begins anew."""
    if count:
        await ctx.continue_as_new(await one_more(count - 2))
    return count


def steps(count: int) -> Work:
    """Steps one after the other, without a store."""

    async def work(place: Path, watch: Stopwatch) -> None:
        with watch:
            result = await counting.run(count)
        assert result.outputs == [count]

    return work


def durable_steps(count: int) -> Work:
    """The same, each committed before its result is given to the function."""

    async def work(place: Path, watch: Stopwatch) -> None:
        async with SqliteCheckpointStorage(place / "runs.db") as store:
            await store.runs()
            with watch:
                result = await counting.run(count, checkpoint_storage=store)
        assert result.outputs == [count]

    return work


def replay(count: int) -> Work:
    """An answer to a function that has made so many steps before: restored, run over all of them, ended."""

    async def work(place: Path, watch: Stopwatch) -> None:
        paused = await asking.run(count)
        answer = paused.pending_requests[0].answer(True)
        with watch:
            result = await asking.run(checkpoint=paused.checkpoint, responses=[answer])
        assert result.outputs == [count]

    return work


def renewals(count: int) -> Work:
    """A function that makes one step and begins anew, without a store."""

    async def work(place: Path, watch: Stopwatch) -> None:
        with watch:
            result = await renewing.run(count)
        assert result.outputs == [0]

    return work
