"""A sub-workflow that took too long is over for its run, whatever its handlers still do."""

import asyncio
import contextlib
from typing import Never

import pytest

from rehydrate import InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import RunFailedError
from rehydrate.testing import run_virtually


async def pass_by(seconds: float) -> None:
    """Wait for nothing until virtual time has passed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


@executor(id="stubborn", timeout=5.0)
async def stubborn(text: str, ctx: WorkflowContext[Never, str]) -> None:
    """Goes on although it is cancelled."""
    for _ in range(10):
        try:
            await pass_by(2)
        except asyncio.CancelledError:
            continue


@executor(id="start")
async def start(text: str) -> str:
    return text


@executor(id="slow")
async def slow(text: str) -> str:
    await pass_by(30)
    return text


def test_a_handler_in_a_stopped_scope_does_not_fail_a_second_time() -> None:
    """Its own time runs out while it goes on unseen; the run knows of the scope's failure only."""
    child = WorkflowExecutor(WorkflowBuilder("child", stubborn).build(), "child", timeout=3.0)
    workflow = WorkflowBuilder("parent", start).add_fan_out_edges(start, [child, slow]).build()

    async def scenario() -> dict[str, str]:
        with pytest.raises(RunFailedError) as caught:
            await workflow.run("x", checkpoint_storage=InMemoryCheckpointStorage())
        failures = caught.value.result.checkpoint.records.table("child#1", "failure")
        return {name: record.failure.kind for name, record in failures.items()}

    assert run_virtually(scenario()) == {"": "timeout"}
