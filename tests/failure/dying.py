"""A process that makes one call and may be killed by the handlers that it runs; says as JSON what became of it.

Its arguments: the file of the store, and what its handlers do to it.
"""

import asyncio
import json
import os
import signal
import sys

from rehydrate import Retry, SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import RunFailedError
from tests.failure.kit import Fault


def workflow(store, deed):
    """start → (before → deadly in a sub-workflow, beside): `deadly` does the deed when `beside` has finished."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="before")
    async def before(text: str) -> str:
        return text

    @executor(id="deadly", retry=Retry(attempts=2, delay=0))
    async def deadly(text: str, ctx: WorkflowContext) -> str:
        sys.stderr.write(f"deadly {ctx.attempt} {ctx.effect_key}\n")
        sys.stderr.flush()
        if deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if deed == "fail":
            raise Fault(text)
        return f"{text} done"

    @executor(id="beside")
    async def beside(text: str) -> str:
        return f"{text} beside"

    inner = WorkflowExecutor(WorkflowBuilder("inner", before).add_edge(before, deadly).build(), id="inner")
    builder = WorkflowBuilder("dying", start, checkpoint_storage=store).add_fan_out_edges(start, [inner, beside])
    return builder.build()


async def call(file, deed):
    """Start the run, or go on with it."""
    async with SqliteCheckpointStorage(file) as store:
        known = await store.head("r") is not None
        options = {"checkpoint": "latest"} if known else {"message": "x"}
        try:
            result = await workflow(store, deed).run(run_id="r", **options)
        except RunFailedError as error:
            return {"status": "FAILED", "where": error.where, "reason": error.reason, "outputs": error.result.outputs}
        return {"status": result.status.value, "outputs": result.outputs}


if __name__ == "__main__":
    json.dump(asyncio.run(call(*sys.argv[1:])), sys.stdout)
