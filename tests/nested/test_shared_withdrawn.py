"""A shared scope whose requests are withdrawn by the very call whose message it takes."""

import asyncio
from typing import Never

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)


class Ask(Executor):
    """Asks about each text."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(f"{text}?", response_type=str)

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question} {answer}")


def test_every_checkpoint_of_such_a_call_can_be_gone_on_with() -> None:
    """Withdrawing marks the scope to be looked at as one at rest; taking the message ends that."""
    inner = WorkflowBuilder("inner", Ask("ask")).build()
    workflow = WorkflowBuilder("outer", WorkflowExecutor(inner, "node", isolation="shared")).build()
    store = InMemoryCheckpointStorage()

    async def scenario() -> list[list[str]]:
        first = await workflow.run("a", run_id="r", checkpoint_storage=store)
        second = await workflow.run("b", checkpoint=first, on_pending="cancel", checkpoint_storage=store)
        assert second.status is Status.IDLE_WITH_PENDING_REQUESTS
        found = []
        for header in await store.history("r"):
            again = await workflow.run(checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=store)
            found.append([request.data for request in again.pending_requests])
        return found

    assert asyncio.run(scenario()) == [["b?"], ["b?"], ["a?"], ["a?"]]
