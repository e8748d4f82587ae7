"""The workflows that `benchmarks.stores` measures, beside those of `workflows`. Nothing here measures or stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, append, extend, handler, response_handler

KB = 1024


@dataclass
class Log:
    """A list between other fields."""

    name: str
    lines: list[str]
    closed: bool = False


def line(number: int) -> str:
    """One KB that no other number has."""
    return f"{number:08}" + "x" * (KB - 8)


#: Makes a value of the lines that there are.
Shape = Callable[[list[str]], object]

SHAPES: dict[str, Shape] = {
    "a list": lambda lines: lines,
    "a dict": lambda lines: {"name": "log", "lines": lines, "closed": False},
    "a dataclass": lambda lines: Log("log", lines),
}


class Whole(Executor):
    """Sets a value whole in each superstep: one line more, or one in its middle changed."""

    def __init__(self, lines: list[str], shape: Shape, *, edits: bool) -> None:
        super().__init__("whole")
        self.lines = lines
        self.shape = shape
        self.edits = edits

    @handler
    async def step(self, n: int, ctx: WorkflowContext[int, int | Log]) -> None:
        if self.edits:
            lines = list(self.lines)
            if n < len(lines):
                lines[(n * 7919) % len(lines)] = line(10**7 + n)
        else:
            lines = self.lines[: len(self.lines) - n]
        ctx.set_state("log", self.shape(lines))
        if n > 0:
            await ctx.send_message(n - 1)


class Extend(Executor):
    """Appends n times many lines at once."""

    def __init__(self, times: int, lines: list[str]) -> None:
        super().__init__("extend")
        self.times = times
        self.lines = lines

    @handler
    async def extend(self, n: int, ctx: WorkflowContext[int]) -> None:
        size = len(self.lines) // self.times
        ctx.update_state("log", self.lines[n * size : (n + 1) * size])
        if n + 1 < self.times:
            await ctx.send_message(n + 1)


class Pass(Executor):
    """Sends on what it gets."""

    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.send_message(n + 1)


class Last(Executor):
    """Yields what it gets."""

    @handler
    async def take(self, n: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(n)


class AskMany(Executor):
    """Asks n questions at once."""

    @handler
    async def ask(self, n: int, ctx: WorkflowContext) -> None:
        for number in range(n):
            ctx.request_info(number, response_type=int)

    @response_handler
    async def answered(self, asked: int, answer: int, ctx: WorkflowContext) -> None:
        ctx.set_state("answer", answer)


def whole(lines: list[str], shape: Shape, *, edits: bool = False, reducer: bool = False) -> Workflow:
    """A loop that sets a value whole."""
    node = Whole(lines, shape, edits=edits)
    reducers = {"log": append} if reducer else None
    return WorkflowBuilder("whole", node, reducers=reducers, max_supersteps=10**6).add_edge(node, node).build()


def extending(times: int, lines: list[str]) -> Workflow:
    """A loop that appends many lines at once."""
    node = Extend(times, lines)
    return WorkflowBuilder("loop", node, reducers={"log": extend}, max_supersteps=10**6).add_edge(node, node).build()


def pipeline(nodes: int) -> Workflow:
    """Nodes in a row."""
    row: list[Executor] = [*(Pass(f"node{number}") for number in range(nodes - 1)), Last("last")]
    return WorkflowBuilder("pipeline", row[0], max_supersteps=nodes + 1).add_chain(row).build()


def asking() -> Workflow:
    """One executor that asks many questions."""
    return WorkflowBuilder("asking", AskMany("ask")).build()
