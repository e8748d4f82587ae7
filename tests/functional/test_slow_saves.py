"""A store that takes its time changes nothing in how a function waits."""

import asyncio

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, step, workflow
from rehydrate.model.checkpoint import Commit


class SlowStorage(InMemoryCheckpointStorage):
    """A store whose commits take many turns of the event loop."""

    async def commit(self, commit: Commit) -> None:
        await super().commit(commit)
        for _ in range(200):
            await asyncio.sleep(0)


def test_a_function_does_not_wait_for_what_came_back_and_is_being_saved() -> None:
    """While the end of a called workflow is on its way into the store, its caller is not taken for one that waits."""

    @step
    async def quick(turns: int) -> int:
        return -turns

    @workflow
    async def child(turns: int, ctx: FunctionalContext) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return turns

    @workflow(calls=[child])
    async def parent(turns: int, ctx: FunctionalContext) -> int:
        called, stepped = await ctx.gather(ctx.call(child, turns), quick(turns))
        return called + stepped

    for turns in range(180, 220, 4):
        assert asyncio.run(parent.run(turns, checkpoint_storage=SlowStorage())).outputs == [0]
