"""Workflows to call: they write a diary of what ran, and can be told to fail, to wait or to end their process.

What a run does depends on its notes and on the world only, so that another process does the same.
"""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)


@dataclass(frozen=True)
class Note:
    """What a desk is told; `number` counts them."""

    text: str
    number: int = 0


@dataclass(frozen=True)
class Query:
    """What a desk asks."""

    text: str
    number: int = 0


class Fault(Exception):  # noqa: N818  (it is told to happen; nothing is wrong)
    """What a handler raises that was told to fail."""


class Gate:
    """Lets the first that comes wait until it is opened."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self) -> None:
        if not self.entered.is_set():
            self.entered.set()
            await self.opened.wait()


@dataclass
class World:
    """What is outside of every run: the diary, and the entries at which something happens to whoever writes them."""

    diary: list[str] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    gates: dict[str, Gate] = field(default_factory=dict)
    crashes: set[str] = field(default_factory=set)
    hangs: set[str] = field(default_factory=set)

    async def enter(self, entry: str) -> None:
        """Write an entry; then wait, raise, hang or end the process where that was asked for."""
        self.diary.append(entry)
        if entry in self.crashes:
            os._exit(9)
        if entry in self.hangs:
            sys.stdout.write("hanging\n")
            sys.stdout.flush()
            sys.stdin.read()
        if entry in self.gates:
            await self.gates[entry].wait()
        if entry in self.faults:
            raise Fault(entry)


class Intake(Executor):
    """Numbers the notes of a run and sends them on."""

    def __init__(self, id: str, world: World) -> None:
        super().__init__(id)
        self.world = world

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[Note]) -> None:
        await self.world.enter(f"intake {note.text}")
        number = ctx.get_state("heard", 0) + 1
        ctx.set_state("heard", number)
        ctx.send_message(Note(note.text, number))


class Clerk(Executor):
    """Asks about each part of a note that ends with `?` and yields the others."""

    def __init__(self, id: str, world: World) -> None:
        super().__init__(id)
        self.world = world

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[Never, str]) -> None:
        await self.world.enter(f"clerk {note.text}")
        ctx.set_state("seen", [*ctx.get_state("seen", []), note.text])
        for part in note.text.split(","):
            if part.endswith("?"):
                ctx.request_info(Query(part, note.number), response_type=bool)
            else:
                ctx.yield_output(f"{note.number}: {part}")

    @response_handler
    async def on_answer(self, query: Query, yes: bool, ctx: WorkflowContext[Never, str]) -> None:
        answer = "yes" if yes else "no"
        await self.world.enter(f"clerk {query.text} {answer}")
        ctx.yield_output(f"{query.number}: {query.text} {answer}")


class Worker(Executor):
    """Asks about a note that names it with a `?`, else sends it on."""

    def __init__(self, id: str, world: World) -> None:
        super().__init__(id)
        self.world = world

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[str]) -> None:
        await self.world.enter(f"{self.id} {note.text}")
        ctx.set_state(self.id, note.text)
        if f"{self.id}?" in note.text.split():
            ctx.request_info(Query(note.text), response_type=bool)
        else:
            ctx.send_message(f"{self.id} {note.text}")

    @response_handler
    async def on_answer(self, query: Query, yes: bool, ctx: WorkflowContext[str]) -> None:
        answer = "yes" if yes else "no"
        await self.world.enter(f"{self.id} {query.text} {answer}")
        ctx.send_message(f"{self.id} {query.text} {answer}")


def desk(
    world: World,
    store: CheckpointStorage | None = None,
    *,
    depth: int = 1,
    name: str = "desk",
    max_supersteps: int = 100,
    version: int = 1,
    resources: dict[str, type] | None = None,
) -> Workflow:
    """Make an intake and a clerk; with a depth above 1 the clerk sits in sub-workflows below the root."""
    target: Executor = Clerk("clerk", world)
    for level in range(depth, 1, -1):
        inner = WorkflowBuilder(name=f"level {level}", start_executor=target).build()
        target = WorkflowExecutor(inner, id="inner")
    intake = Intake("intake", world)
    builder = WorkflowBuilder(
        name=name,
        start_executor=intake,
        version=version,
        checkpoint_storage=store,
        resources=resources,
        max_supersteps=max_supersteps,
    )
    return builder.add_edge(intake, target).build()


def solo(world: World, store: CheckpointStorage | None = None) -> Workflow:
    """Make a clerk without an intake: answers and new notes come to the same executor."""
    return WorkflowBuilder(name="solo", start_executor=Clerk("clerk", world), checkpoint_storage=store).build()


def team(
    world: World, store: CheckpointStorage | None = None, *, depth: int = 1, max_supersteps: int = 100
) -> Workflow:
    """Make a fan-out to two workers and a join, at a depth; the limit is that of these three supersteps."""

    @executor(id="split")
    async def split(note: Note) -> Note:
        await world.enter(f"split {note.text}")
        return note

    @executor(id="join")
    async def join(parts: list[str]) -> str:
        await world.enter(f"join {len(parts)}")
        return " + ".join(parts)

    left, right = Worker("left", world), Worker("right", world)
    builder = WorkflowBuilder(
        name="team" if depth == 1 else f"team {depth}",
        start_executor=split,
        checkpoint_storage=store if depth == 1 else None,
        max_supersteps=max_supersteps,
    )
    inner = builder.add_fan_out_edges(split, [left, right]).add_fan_in_edges([left, right], join).build()
    for level in range(depth - 1, 0, -1):
        node = WorkflowExecutor(inner, id="inner")
        above = store if level == 1 else None
        name = "team" if level == 1 else f"team {level}"
        inner = WorkflowBuilder(name=name, start_executor=node, checkpoint_storage=above).build()
    return inner


def uneven(world: World, store: CheckpointStorage | None = None) -> Workflow:
    """Make a join of unequal branches: `left` goes to it at once, `right` by way of `late`."""

    @executor(id="split")
    async def split(note: Note) -> Note:
        return note

    @executor(id="late")
    async def late(text: str) -> str:
        await world.enter(f"late {text}")
        return text

    @executor(id="join")
    async def join(parts: list[str]) -> str:
        return " + ".join(parts)

    left, right = Worker("left", world), Worker("right", world)
    builder = WorkflowBuilder(name="uneven", start_executor=split, checkpoint_storage=store)
    builder.add_fan_out_edges(split, [left, right]).add_edge(right, late).add_fan_in_edges([left, late], join)
    return builder.build()


def panel(world: World, store: CheckpointStorage | None = None, *, depth: int = 2) -> Workflow:
    """Make a join of a helper and of a clerk that sits in sub-workflows below the root."""

    @executor(id="open")
    async def open_(note: Note) -> Note:
        return note

    @executor(id="helper")
    async def helper(note: Note) -> str:
        await world.enter(f"helper {note.text}")
        return f"helper {note.text}"

    @executor(id="join")
    async def join(parts: list[str]) -> str:
        return " + ".join(parts)

    target: Executor = Clerk("clerk", world)
    for level in range(depth, 1, -1):
        inner = WorkflowBuilder(name=f"level {level}", start_executor=target).build()
        target = WorkflowExecutor(inner, id="inner")
    builder = WorkflowBuilder(name="panel", start_executor=open_, checkpoint_storage=store)
    builder.add_fan_out_edges(open_, [target, helper]).add_fan_in_edges([target, helper], join)
    return builder.build()
