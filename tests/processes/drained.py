"""Programs that are told by SIGTERM to end while their runs are in the middle of their work.

Every executor writes who it is to a file before it does anything. The work of a run is named by its message: `polite`
ends as soon as its process is drained, `stuck` and `thread` never end, and `swift` does at once.
"""

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Never

from rehydrate import (
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    drain_on_sigterm,
    executor,
)
from rehydrate.errors import RunDrainedError
from rehydrate.runtime.owner import is_draining
from tests.processes.line import Line


class Journal:
    """The file, and a line on which the entries of workers are told, where there is one."""

    def __init__(self, path: str | Path, line: Line | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.line = line

    def note(self, ctx: WorkflowContext, entry: str) -> None:
        os.write(self._file, f"{ctx.run_id} {entry}\n".encode())
        if self.line is not None and entry == "work":
            self.line.send(ctx.run_id)


async def work_on(kind: str, journal: Journal) -> None:
    """Do the work of a kind, in a process that is to be drained."""
    while kind in {"polite", "stuck"} and not is_draining():  # noqa: ASYNC110  (no event tells of it)
        await asyncio.sleep(0)
    if kind == "stuck":
        journal.line.send("draining")
        await asyncio.Event().wait()


def flow(file: str | Path, journal: Journal, *, waits: bool) -> Workflow:
    """Make a workflow that works a level below its root, side by side with something short, and joins both."""

    @executor(id="begin")
    async def begin(kind: str, ctx: WorkflowContext[str]) -> None:
        journal.note(ctx, "begin")
        ctx.set_state("kind", kind)
        ctx.send_message(kind)

    @executor(id="work")
    async def work(kind: str, ctx: WorkflowContext[str]) -> None:
        if kind != "thread":
            journal.note(ctx, "work")
            if waits:
                await work_on(kind, journal)
        ctx.send_message(kind)

    @executor(id="plain")
    def plain(kind: str, ctx: WorkflowContext[Never, str]) -> None:
        if kind == "thread":
            journal.note(ctx, "work")
            if waits:
                threading.Event().wait()
        ctx.yield_output(f"worked on {kind}")

    @executor(id="short")
    async def short(kind: str, ctx: WorkflowContext[str]) -> None:
        journal.note(ctx, "short")
        ctx.send_message(f"looked at {kind}")

    @executor(id="end")
    async def end(parts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        journal.note(ctx, "end")
        ctx.yield_output(f"{ctx.get_state('kind')}: {', '.join(parts)}")

    below = WorkflowBuilder("below", work).add_edge(work, plain).build()
    deep = WorkflowExecutor(below, id="deep")
    builder = WorkflowBuilder("flow", begin, checkpoint_storage=SqliteCheckpointStorage(file))
    return builder.add_fan_out_edges(begin, [deep, short]).add_fan_in_edges([deep, short], end).build()


def drained(line: Line, told: dict[str, object]) -> None:
    """Be a program whose runs, one for each kind, are drained; with one kind it uses `run_sync`."""
    workflow = flow(str(told["file"]), Journal(str(told["journal"]), line), waits=True)
    kinds = [str(kind) for kind in told["kinds"]]
    drain_on_sigterm(float(told["grace"]))
    if told["sync"]:
        (kind,) = kinds
        workflow.run_sync(kind, run_id=kind)
        return

    async def program() -> None:
        async with asyncio.TaskGroup() as calls:
            for kind in kinds:
                calls.create_task(workflow.run(kind, run_id=kind))

    asyncio.run(program())


def chained(line: Line, told: dict[str, object]) -> None:
    """Be a program that had a handler for SIGTERM before; its calls are told that they were drained."""
    workflow = flow(str(told["file"]), Journal(str(told["journal"]), line), waits=True)
    signal.signal(signal.SIGTERM, lambda number, frame: line.send("former handler"))
    with drain_on_sigterm(float(told["grace"])):
        try:
            workflow.run_sync("polite", run_id="polite")
        except RunDrainedError as error:
            line.send(error.code)


def forking(line: Line, told: dict[str, object]) -> None:
    """Be a program with the hook whose child is told by SIGTERM to end."""
    drain_on_sigterm(float(told["grace"]))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"1")
        signal.pause()
        os._exit(0)
    os.read(reading, 1)
    os.kill(child, signal.SIGTERM)
    line.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    line.send(is_draining())


def ending(line: Line, told: dict[str, object]) -> None:
    """Be a program that comes to its own end as soon as it is drained; its errors go to a file."""
    os.dup2(os.open(str(told["errors"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)

    @executor(id="last")
    async def last(text: str) -> str:
        line.send(text)
        while not is_draining():  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        return text

    drain_on_sigterm(float(told["grace"]))
    WorkflowBuilder("short", last, checkpoint_storage=SqliteCheckpointStorage(str(told["file"]))).build().run_sync("a")
