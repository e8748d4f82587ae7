"""A program that reads a stream in a process of its own, with warnings as errors.

`one_by_one`: prints each event of a handler that goes on only when the line `go` comes on standard input.
`dropped`: leaves a stream with `break`, drops it, and makes another run; prints how both ended.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Never

from rehydrate import SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, executor
from rehydrate.model.events import Emitted

PATH = Path("runs.db")


def say(told: object) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


@executor(id="steps")
async def steps(count: int, ctx: WorkflowContext[Never, str]) -> None:
    for number in range(count):
        ctx.emit(number)
        await asyncio.to_thread(sys.stdin.readline)
    ctx.yield_output("done")


async def one_by_one() -> None:
    async with SqliteCheckpointStorage(PATH) as store:
        async for event in WorkflowBuilder("steps", steps, checkpoint_storage=store).build().run(3, stream=True):
            say([type(event).__name__, event.data if isinstance(event, Emitted) else None])


@executor(id="waits")
async def waits(text: str, ctx: WorkflowContext[Never, str]) -> str:
    ctx.emit("started")
    if text == "old":
        await asyncio.Event().wait()
    return text


async def dropped() -> None:
    async with SqliteCheckpointStorage(PATH) as store:
        workflow = WorkflowBuilder("waits", waits, checkpoint_storage=store).build()
        stream = workflow.run("old", run_id="old", stream=True)
        async for event in stream:
            if isinstance(event, Emitted):
                break
        del stream
        new = await workflow.run("new", run_id="new")
        head = await store.head("old")
        while head is not None and head.owner is not None:
            head = await store.head("old")
        assert head is not None
        say([new.status.value, new.outputs, head.header.status.value])


if __name__ == "__main__":
    asyncio.run({"one_by_one": one_by_one, "dropped": dropped}[sys.argv[1]]())
