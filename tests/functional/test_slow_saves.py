"""A store that takes its time changes nothing in how a function waits."""

import asyncio

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, step, workflow
from rehydrate.model.checkpoint import Commit
from tests.differential.harness import stored_checkpoints


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


def test_a_called_workflow_that_came_back_unheard_is_not_called_again() -> None:
    """A resumed caller comes to its call while the end of that is on its way into the store: it gets what came back."""
    runs: list[int] = []

    @workflow
    async def child(turns: int, ctx: FunctionalContext) -> int:
        runs.append(turns)
        return turns

    @workflow(calls=[child])
    async def parent(turns: int, ctx: FunctionalContext) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await ctx.call(child, turns)

    for turns in range(0, 600, 40):
        store = InMemoryCheckpointStorage()
        asyncio.run(parent.run(turns, run_id="run", checkpoint_storage=store))
        for checkpoint in asyncio.run(stored_checkpoints(store, "run")):
            if checkpoint.records.table("", "scope"):  # the child is at work
                runs.clear()
                resumed = parent.run(checkpoint=checkpoint, checkpoint_storage=SlowStorage())
                assert asyncio.run(resumed).outputs == [turns]
                assert runs == [turns]
