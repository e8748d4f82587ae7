"""Ways in which a turn stops before it is done, each leaving a run that can be taken up again."""

import asyncio

import pytest

from rehydrate import Status, Workflow, WorkflowRunResult
from rehydrate.errors import RunFailedError, SaveFailedError
from tests.call.desk import Gate, World


def failed(world: World, workflow: Workflow, entry: str, message: object = None, **call: object) -> WorkflowRunResult:
    """Make a call that fails where `entry` is written; afterwards the cause is repaired."""
    world.faults.add(entry)
    with pytest.raises(RunFailedError) as error:
        asyncio.run(workflow.run(message, **call))
    world.faults.clear()
    assert error.value.result.status is Status.FAILED
    return error.value.result


def cancelled(
    world: World, workflow: Workflow, entry: str, message: object = None, **call: object
) -> WorkflowRunResult:
    """Make a call that is cancelled while the handler waits that wrote `entry`."""

    async def scenario() -> WorkflowRunResult:
        gate = world.gates[entry] = Gate()
        stream = workflow.run(message, stream=True, **call)
        reading = asyncio.create_task(stream.result())
        await gate.entered.wait()
        result = await stream.cancel()
        await asyncio.wait([reading])
        return result

    result = asyncio.run(scenario())
    world.gates.clear()
    assert result.status is Status.CANCELLED
    return result


def interrupted(store: object, saves: int, workflow: Workflow, message: object = None, **call: object) -> str:
    """Make a call whose run ends with the disk full after some saves, as a lost process ends it; return its run id."""
    store.saves_left = saves
    with pytest.raises(SaveFailedError) as error:
        asyncio.run(workflow.run(message, **call))
    store.saves_left = None
    return error.value.run_id
