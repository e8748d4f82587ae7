"""A tree of workflows in which every level counts, asks, tallies and waits, with two siblings on each level.

The scopes are numbered like a heap: the root is 1, the two below `n` are `2 * n` and `2 * n + 1`; every number that a
scope keeps hangs on its own, so that state of one scope that shows up in another is seen.
"""

import asyncio
from dataclasses import dataclass
from typing import Never

from rehydrate import (
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
class Branch:
    number: int


@dataclass(frozen=True)
class Tick:
    number: int


@dataclass(frozen=True)
class Question:
    number: int
    kept: int


@dataclass(frozen=True)
class Counted:
    number: int
    kept: int
    shared: int


@dataclass(frozen=True)
class Report:
    """What a scope has at its end: its instance states (`kept`, `seen`) and its shared states (`shared`, `waited`)."""

    path: str
    number: int
    kept: int
    shared: int
    waited: int
    seen: int


class Gate:
    """Holds everyone who comes until it is opened; `full` is set when as many as expected stand before it.

    `tallied` has the number of each scope whose tally worked while this gate was there.
    """

    def __init__(self, expected: int = 0, *, is_open: bool = False) -> None:
        self.expected = expected
        self.waiting = 0
        self.tallied: list[int] = []
        self.full = asyncio.Event()
        self.opened = asyncio.Event()
        if is_open:
            self.opened.set()

    async def pass_through(self) -> None:
        self.waiting += 1
        if self.waiting == self.expected:
            self.full.set()
        await self.opened.wait()


class Count(Executor):
    """Counts to twice the number in itself and in the scope's state, then asks; starts what is below."""

    def __init__(self, id: str, below: bool) -> None:
        super().__init__(id)
        self.below = below
        self.kept = 0

    @handler
    async def on_branch(self, branch: Branch, ctx: WorkflowContext[Tick | Branch]) -> None:
        self.kept += branch.number
        ctx.set_state("shared", ctx.get_state("shared", 0) + branch.number)
        ctx.send_message(Tick(branch.number), target_id="count")

    @handler
    async def on_tick(self, tick: Tick, ctx: WorkflowContext[Tick | Branch]) -> None:
        self.kept += tick.number
        ctx.set_state("shared", ctx.get_state("shared", 0) + tick.number)
        ctx.request_info(Question(tick.number, self.kept), response_type=int)
        ctx.send_message(tick, target_id="tally")
        ctx.send_message(tick, target_id="wait")
        if self.below:
            ctx.send_message(Branch(2 * tick.number), target_id="left")
            ctx.send_message(Branch(2 * tick.number + 1), target_id="right")

    @response_handler
    async def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Counted]) -> None:
        self.kept += answer
        shared = ctx.get_state("shared", 0) + answer
        ctx.set_state("shared", shared)
        ctx.send_message(Counted(question.number, self.kept, shared))

    async def on_checkpoint_save(self) -> dict[str, object]:
        return {"kept": self.kept}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.kept = state["kept"]


class Tally(Executor):
    """Finishes beside an executor that waits, so that what it has is neither nothing nor merged."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.seen = 0

    @handler
    async def on_tick(self, tick: Tick, ctx: WorkflowContext[Never]) -> None:
        self.seen += tick.number
        ctx.resources["gate"].tallied.append(tick.number)

    @handler
    async def on_counted(self, counted: Counted, ctx: WorkflowContext[Never, Report]) -> None:
        self.seen += 1
        waited = ctx.get_state("waited", 0)
        ctx.yield_output(Report(ctx.path, counted.number, counted.kept, counted.shared, waited, self.seen))

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"seen": self.seen}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.seen = state["seen"]


@executor(id="wait")
async def wait(tick: Tick, ctx: WorkflowContext[Never]) -> None:
    await ctx.resources["gate"].pass_through()
    ctx.set_state("waited", ctx.get_state("waited", 0) + tick.number)


def tree(depth: int, **settings: object) -> Workflow:
    """Build a new workflow with `depth` levels of sub-workflows, two siblings on each."""
    count, tally = Count("count", below=depth > 0), Tally("tally")
    builder = WorkflowBuilder(f"level {depth}", count, **settings)
    builder.add_edge(count, count).add_edge(count, tally).add_edge(count, wait)
    if depth:
        child = tree(depth - 1)
        builder.add_edge(count, WorkflowExecutor(child, "left")).add_edge(count, WorkflowExecutor(child, "right"))
    return builder.build()


def size(depth: int) -> int:
    """Return the number of scopes of a tree."""
    return 2 ** (depth + 1) - 1


def paths(depth: int, number: int = 1, path: str = "") -> dict[int, str]:
    """Return the path of every scope by its number, each after those below it."""
    found: dict[int, str] = {}
    if depth:
        inside = f"{path}/" if path else ""
        found |= paths(depth - 1, 2 * number, f"{inside}left#1")
        found |= paths(depth - 1, 2 * number + 1, f"{inside}right#1")
    return {**found, number: path}


def answer_to(number: int) -> int:
    return 1000 + number


def answers(pending) -> dict[str, int]:
    """Return an answer to every question of a paused tree."""
    return {request.request_id: answer_to(request.data.number) for request in pending}


def reports(depth: int) -> list[Report]:
    """Return what a tree reports when each level went on from where it was, in canonical order: below comes first."""
    return [
        Report(path, number, kept=1000 + 3 * number, shared=1000 + 3 * number, waited=number, seen=number + 1)
        for number, path in paths(depth).items()
    ]
