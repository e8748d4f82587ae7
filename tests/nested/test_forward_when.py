"""When what a scope yields goes on: whenever it is at rest, or once it has ended."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)


class Slow(Executor):
    """Yields, asks, and yields what it is told."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"first of {text}")
        ctx.request_info("the rest?", response_type=str)

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(answer)


@executor(id="early")
async def early(text: str) -> str:
    return f"early {text}"


@executor(id="late")
async def late(text: str) -> str:
    return f"late {text}"


def build() -> Workflow:
    """One edge forwards at rest, the other at the end."""
    slow = WorkflowExecutor(WorkflowBuilder("slow", Slow("slow")).build(), "slow")
    builder = WorkflowBuilder("forwarding", slow).add_edge(slow, early, forward_when="rest")
    return builder.add_edge(slow, late, forward_when="finished").build()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_each_edge_forwards_when_it_says(kind, tmp_path) -> None:
    """What waits for the end waits in the record: it is there after a restore, and goes on once."""
    memory = InMemoryCheckpointStorage()

    def store():
        return memory if kind == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")

    async def call(**options):
        opened = store()
        try:
            return await build().run(run_id="r", checkpoint_storage=opened, **options)
        finally:
            if kind == "sqlite":
                await opened.close()

    first = asyncio.run(call(message="a"))
    assert (first.status, first.outputs) == (Status.IDLE_WITH_PENDING_REQUESTS, ["early first of a"])
    answers = [first.pending_requests[0].answer("the end")]
    second = asyncio.run(call(checkpoint=first.checkpoint_id, responses=answers))
    assert second.outputs == ["early the end", "late first of a", "late the end"]
