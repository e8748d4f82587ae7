"""A fleet: a process with many runs in flight, which SIGTERM drains in the middle of their work, at every depth.

A tour goes round and round; in each round three branches work side by side, one of them three levels down and one in a
function, and a join waits for all. Where a run stops, and in which way, follows from its name and its place.
"""

from __future__ import annotations

import asyncio
import os
import threading
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    FunctionalContext,
    FunctionalWorkflow,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    drain_on_sigterm,
    executor,
    handler,
    step,
    workflow,
)
from rehydrate.runtime.owner import is_draining
from rehydrate.runtime.threads import MAX_THREADS
from rehydrate.testing.store_contract import ManualClock
from tests.processes.line import Line
from tests.proof.broken_drains import break_drain

#: How a station waits for the drain: it ends once it sees it, swallows that it is stopped, never ends, or goes on.
MODES = ("polite", "stubborn", "stuck", "swift", "swift")
#: In a thread.
THREADED = ("polite", "stuck", "swift")


@dataclass(frozen=True)
class Leg:
    """One round of a tour, of which so many are left."""

    name: str
    number: int
    left: int


class Journal:
    """What stations have begun and ended, in all processes of one fleet; with a line they wait for a drain.

    `gentle`: there is so much time that all that wait end when they see that drain.
    """

    def __init__(self, path: Path, line: Line | None = None, *, gentle: bool = False) -> None:
        self.line = line
        self.gentle = gentle
        lines = path.read_text().splitlines() if path.exists() else []
        self.begun = Counter(text[6:] for text in lines if text.startswith("begin "))
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._threads = 0
        self.drained = threading.Event()
        self._drained_too = asyncio.Event()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell all stations of the drain: no event of the library does, and hundreds would look."""
        while not is_draining():
            self.drained.wait(0.002)
        self.drained.set()
        loop.call_soon_threadsafe(self._drained_too.set)

    async def until_drained(self) -> None:
        await self._drained_too.wait()

    def begin(self, place: str, modes: tuple[str, ...]) -> str:
        """Note that a station begins, and return how it waits: most do so at the first attempt only, some more often
        than an invocation may be lost with its process."""
        chance = zlib.crc32(place.encode())
        with self._lock:
            again = self.begun[place]
            self.begun[place] += 1
            self._write(f"begin {place}")
            mode = modes[chance % len(modes)]
            if self.line is None or mode == "swift" or again > (6 if chance % 31 == 0 else 0):
                return "swift"
            if modes is THREADED:
                if self._threads == MAX_THREADS - 1:
                    return "swift"  # else others would have to wait for a thread
                self._threads += 1
            self.tell(place.partition(" ")[0])
        return "polite" if self.gentle else mode

    def end(self, place: str, *, heard: bool = True) -> None:
        """Note that a station has done all that it does, and whether that must have been heard."""
        self._write(f"{'end' if heard else 'may end'} {place}")

    def tell(self, name: str) -> None:
        """Say that a run waits, or has ended."""
        assert self.line is not None
        self.line.send(name)

    def _write(self, text: str) -> None:
        os.write(self._file, f"{text}\n".encode())


async def visit(journal: Journal, place: str) -> None:
    """Be a station."""
    mode = journal.begin(place, MODES)
    if mode in {"stuck", "stubborn"}:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if mode == "stuck":
                raise
            await asyncio.Event().wait()
    if mode == "polite":
        await journal.until_drained()
    journal.end(place)


def visit_in_thread(journal: Journal, place: str) -> None:
    """Be a station in a thread."""
    mode = journal.begin(place, THREADED)
    if mode == "stuck":
        threading.Event().wait()
    if mode == "polite":
        journal.drained.wait()
    # Nobody can stop a thread: it may come to its end later than anyone listens.
    journal.end(place, heard=journal.gentle or journal.line is None)


class Room(Executor):
    """Three levels down; counts in itself."""

    def __init__(self, id: str, journal: Journal) -> None:
        super().__init__(id)
        self.journal = journal
        self.count = 0

    @handler
    async def on_leg(self, leg: Leg, ctx: WorkflowContext[Never, str]) -> None:
        await visit(self.journal, f"{leg.name} {leg.number} room")
        self.count += 1
        ctx.set_state("seen", ctx.get_state("seen", 0) + 1)
        ctx.yield_output(f"room {self.count} {ctx.get_state('seen')}")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = state["count"]


def errand(journal: Journal) -> FunctionalWorkflow:
    """Make a function that does two things side by side and then a third."""

    @step
    async def go(name: str, number: int, what: str) -> str:
        await visit(journal, f"{name} {number} {what}")
        return f"{what} {number}"

    @step
    def fetch(name: str, number: int) -> str:
        visit_in_thread(journal, f"{name} {number} fetch")
        return f"fetch {number}"

    @workflow(name="errand", message=Leg, returns=str, reducers={"done": append})
    async def run_errand(leg: Leg, ctx: FunctionalContext) -> str:
        both = await ctx.gather(go(leg.name, leg.number, "go"), fetch(leg.name, leg.number))
        last = await go(leg.name, leg.number, "come back")
        ctx.state.update("done", leg.number)
        return f"{', '.join(both)}, {last}, {len(ctx.state.get('done'))} done"

    return run_errand


def tours(journal: Journal, store: CheckpointStorage | None = None) -> Workflow:
    """Make the workflow."""

    @executor(id="set out")
    async def set_out(leg: Leg, ctx: WorkflowContext[Leg]) -> None:
        await visit(journal, f"{leg.name} {leg.number} set out")
        ctx.set_state("leg", leg)
        ctx.send_message(leg)

    @executor(id="climb")
    async def climb(leg: Leg) -> Leg:
        await visit(journal, f"{leg.name} {leg.number} climb")
        return leg

    @executor(id="look")
    def look(leg: Leg) -> str:
        visit_in_thread(journal, f"{leg.name} {leg.number} look")
        return f"look {leg.number}"

    @executor(id="meet")
    async def meet(texts: list[str], ctx: WorkflowContext[Leg, str]) -> None:
        leg: Leg = ctx.get_state("leg")
        await visit(journal, f"{leg.name} {leg.number} meet")
        ctx.yield_output(f"{leg.number}: {', '.join(texts)}")
        if leg.left:
            ctx.send_message(Leg(leg.name, leg.number + 1, leg.left - 1))

    room = WorkflowBuilder("room", Room("room", journal)).build()
    floor = WorkflowBuilder("floor", climb).add_edge(climb, WorkflowExecutor(room, id="room")).build()
    house = WorkflowBuilder("house", WorkflowExecutor(floor, id="floor")).build()
    branches = [WorkflowExecutor(house, id="house"), WorkflowExecutor(errand(journal), id="errand"), look]
    builder = WorkflowBuilder("tours", set_out, checkpoint_storage=store)
    builder.add_fan_out_edges(set_out, branches).add_fan_in_edges(branches, meet)
    return builder.add_edge(meet, set_out).build()


def fleet(line: Line, told: dict[str, object]) -> None:
    """Be a process of a fleet: go on with all tours that are told, as far as they come."""
    break_drain(str(told["broken"]))
    drain_on_sigterm(float(told["grace"]))

    async def program() -> None:
        journal = Journal(Path(str(told["journal"])), line, gentle=bool(told["gentle"]))
        loop = asyncio.get_running_loop()
        threading.Thread(target=journal.watch, args=[loop], daemon=True).start()
        # A clock that stands still: no lease ever ends.
        workflow = tours(journal, SqliteCheckpointStorage(str(told["file"]), clock=ManualClock(1_000_000.0)))

        async def go_on(name: str, call: str) -> None:
            if call == "latest":
                await workflow.run(checkpoint="latest", run_id=name)
            else:
                await workflow.run(Leg(name, 1, int(told["legs"])), run_id=name)
            journal.tell(f"{name} ended")

        async with asyncio.TaskGroup() as calls:
            for name, call in dict(told["tours"]).items():
                calls.create_task(go_on(name, call))

    asyncio.run(program())
