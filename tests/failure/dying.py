"""Processes, one after the other, that make a call each and may be killed by the handlers that they run.

Its arguments: the file of the store, and for each process what its handlers do to it. It has loaded everything and done
nothing when it forks them, and says as JSON what became of each: exit code, end of the call, and attempts made.
"""

import asyncio
import json
import os
import signal
import sys

from rehydrate import Retry, SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import RunFailedError
from tests.failure.kit import Fault

#: Where a child tells.
TOLD = 3


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
        os.write(TOLD, f"{ctx.attempt} {ctx.effect_key}\n".encode())
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


def in_child(file, deed):
    """Make the call in a forked process; return its exit code, what it said at its end, and its attempts."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writes, TOLD)
        os.write(TOLD, json.dumps(asyncio.run(call(file, deed))).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as told:
        lines = told.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = json.loads(lines.pop()) if code == 0 else None
    return {"code": code, "said": said, "attempts": [line.split() for line in lines]}


if __name__ == "__main__":
    json.dump([in_child(sys.argv[1], deed) for deed in sys.argv[2:]], sys.stdout)
