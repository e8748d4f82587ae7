"""A process that dies in the middle of a tree's work: when all scopes wait, it kills itself.

`python -m tests.nested.killed FILE RUN_ID DEPTH`; its exit code is that of a killed process.
"""

import asyncio
import os
import signal
import sys

from rehydrate import SqliteCheckpointStorage
from tests.nested.tree import Branch, Gate, size, tree


async def die(file: str, run_id: str, depth: int) -> None:
    gate = Gate(size(depth))
    stream = tree(depth).run(
        Branch(1),
        run_id=run_id,
        stream=True,
        resources={"gate": gate},
        checkpoint_storage=SqliteCheckpointStorage(file),
    )
    async with stream:
        await gate.full.wait()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(die(sys.argv[1], sys.argv[2], int(sys.argv[3])))
