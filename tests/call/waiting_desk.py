"""A desk whose clerk never comes to an end with note `a`, in a process of its own.

It works in the folder in which it stands; it says `waiting` when its clerk waits, and how the turn ended.
"""

import asyncio
import sys

from rehydrate import SqliteCheckpointStorage
from tests.call.desk import Gate, Note, World, desk


async def main() -> None:
    world = World()
    gate = world.gates["clerk a"] = Gate()
    async with SqliteCheckpointStorage("runs.db") as store:
        turn = asyncio.create_task(desk(world, store).run(Note("a"), run_id="run", stream=True).result())
        await gate.entered.wait()
        sys.stdout.write("waiting\n")
        sys.stdout.flush()
        sys.stdout.write((await turn).status)


if __name__ == "__main__":
    asyncio.run(main())
