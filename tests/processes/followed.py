"""A program that runs three steps on a store that keeps events; each step waits for a line. And who follows it.

Its arguments are a SQLite file, or the URL and the schema of a PostgreSQL store.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Never

from rehydrate import (
    CheckpointStorage,
    PostgresCheckpointStorage,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)
from rehydrate.model.events import OutputYielded

ROOT = Path(__file__).resolve().parents[2]


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


def follow(store: CheckpointStorage, *arguments: str) -> list[object]:
    """Let the program run in a process of its own; follow it by a store, and give it a line for each output."""
    command = [sys.executable, "-m", "tests.processes.followed", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        outputs = asyncio.run(_follow(store, other))
    assert other.returncode == 0
    return outputs


async def _follow(store: CheckpointStorage, other: subprocess.Popen[str]) -> list[object]:
    outputs: list[object] = []
    words = iter(("first", "second", "third"))
    assert other.stdout is not None
    async with store:
        assert (await asyncio.to_thread(other.stdout.readline)).strip() == "begun"
        print(next(words), file=other.stdin, flush=True)
        async for event in steps(store).events("run"):
            if isinstance(event, OutputYielded):
                outputs.append(event.data)
                for word in words:  # the other process is gone once it has had the last one
                    print(word, file=other.stdin, flush=True)
                    break
    return outputs


async def main(place: str, schema: str = "") -> None:
    store = PostgresCheckpointStorage(place, schema=schema, keep_events=True) if schema else None
    async with store or SqliteCheckpointStorage(place, keep_events=True) as kept:
        await steps(kept).run("go", run_id="run")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
