"""A run that asks, pauses, and is resumed in one call from another store object: the smallest use of a store."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Never

from rehydrate import CheckpointStorage, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler


class Asks(Executor):
    """Asks for a number and yields it doubled, with the long text that it was asked about."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(text, response_type=int)

    @response_handler
    async def on_answer(self, text: str, number: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{2 * number} {len(text)}")


async def _scenario(store: Callable[[], CheckpointStorage], options: Mapping[str, Any]) -> None:
    workflow = WorkflowBuilder("asks", Asks("asks"), **options).build()
    first = store()
    paused = await workflow.run("x" * 100_000, run_id="r", checkpoint_storage=first)
    answer = {paused.pending_requests[0].request_id: 21}
    await first.close()
    second = store()
    result = await workflow.run(checkpoint="latest", run_id="r", responses=answer, checkpoint_storage=second)
    await second.close()
    assert result.outputs == ["42 100000"], result.outputs


def pause_and_resume(store: Callable[[], CheckpointStorage], **options: Any) -> None:
    """Do it with two objects for one place, each for one call; `options` are of the workflow."""
    asyncio.run(_scenario(store, options))
