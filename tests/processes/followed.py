"""A program that runs three steps on a SQLite store that keeps events; each step waits for a line."""

import asyncio
import sys
from pathlib import Path
from typing import Never

from rehydrate import CheckpointStorage, SqliteCheckpointStorage, Workflow, WorkflowBuilder, WorkflowContext, executor


async def said(name: str) -> str:
    """Wait for a line."""
    line = await asyncio.to_thread(sys.stdin.readline)
    return f"{name} {line.strip()}"


@executor(id="a")
async def a(text: str, ctx: WorkflowContext[str, str]) -> None:
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    ctx.yield_output(await said("a"))
    ctx.send_message(text)


@executor(id="b")
async def b(text: str, ctx: WorkflowContext[str, str]) -> None:
    ctx.yield_output(await said("b"))
    ctx.send_message(text)


@executor(id="c")
async def c(text: str, ctx: WorkflowContext[Never, str]) -> None:
    ctx.yield_output(await said("c"))


def steps(store: CheckpointStorage) -> Workflow:
    """A workflow of three nodes that say their names and what they were told."""
    return WorkflowBuilder("steps", a, checkpoint_storage=store).add_chain([a, b, c]).build()


async def main(path: Path) -> None:
    async with SqliteCheckpointStorage(path, keep_events=True) as store:
        await steps(store).run("go", run_id="run")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
