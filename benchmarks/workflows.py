"""The workflows that are measured, as a user would write them with the public names.

Nothing here measures or stores.
"""

from __future__ import annotations

from typing import Never

from benchmarks.measure import Stopwatch
from rehydrate import (
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
    handler,
    response_handler,
)

KB = 1024
#: MB of state in the lines that name no other size.
BIG_KEYS = 10


class Count(Executor):
    """Sends n - 1 to itself and writes one small key."""

    @handler
    async def count(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.set_state("left", n)
        if n > 1:
            await ctx.send_message(n - 1)
        else:
            await ctx.yield_output(n)


class Emit(Executor):
    """Tells of its progress n times, with the clock running."""

    def __init__(self, watch: Stopwatch) -> None:
        super().__init__("emit")
        self.watch = watch

    @handler
    async def emit(self, n: int, ctx: WorkflowContext[Never, int]) -> None:
        with self.watch:
            for number in range(n):
                ctx.emit({"done": number, "of": n})
        ctx.yield_output(n)


class Grow(Executor):
    """Sends n - 1 to itself and appends 1 KB to a list."""

    @handler
    async def grow(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.update_state("log", f"{n:08}" + "x" * (KB - 8))
        if n > 1:
            await ctx.send_message(n - 1)
        else:
            await ctx.yield_output(n)


class Hold(Executor):
    """Writes 10 MB once, then a small key in each superstep; starts the clock of the saves after the 10 MB."""

    def __init__(self, values: list[list[str]], watch: Stopwatch | None = None) -> None:
        super().__init__("hold")
        self.values = values
        self.watch = watch

    @handler
    async def hold(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        if ctx.superstep == 1:
            for number, value in enumerate(self.values):
                ctx.set_state(f"big{number}", value)
        else:
            if ctx.superstep == 2 and self.watch is not None:
                self.watch.start()
            ctx.set_state("left", n)
        if n:
            await ctx.send_message(n - 1)
        else:
            await ctx.yield_output(n)


class Recall(Executor):
    """Keeps the 10 MB of its first message's run, and later says how many keys of it it has read."""

    def __init__(self, values: list[list[str]]) -> None:
        super().__init__("recall")
        self.values = values

    @handler
    async def recall(self, keys: int, ctx: WorkflowContext[Never, int]) -> None:
        if keys < 0:
            for number, value in enumerate(self.values):
                ctx.set_state(f"big{number}", value)
            return
        read = sum(len(ctx.get_state(f"big{number}")) for number in range(keys))
        await ctx.yield_output(read)


class Ask(Executor):
    """Asks, and yields the answer."""

    @handler
    async def ask(self, n: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.request_info(n, response_type=int)

    @response_handler
    async def answered(self, n: int, answer: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(answer)


class AskAgain(Executor):
    """Asks, and asks again after each answer."""

    @handler
    async def ask(self, n: int, ctx: WorkflowContext) -> None:
        await ctx.request_info(n, response_type=int)

    @response_handler
    async def answered(self, n: int, answer: int, ctx: WorkflowContext) -> None:
        ctx.set_state("answer", answer)
        await ctx.request_info(n + 1, response_type=int)


class Spread(Executor):
    """Sends the numbers below n, one message each."""

    @handler
    async def spread(self, n: int, ctx: WorkflowContext[int]) -> None:
        for number in range(n):
            await ctx.send_message(number)


class Tally(Executor):
    """Counts its messages in its state."""

    @handler
    async def tally(self, n: int, ctx: WorkflowContext[Never, int]) -> None:
        seen = ctx.get_state("seen", 0) + 1
        ctx.set_state("seen", seen)


class Target(Executor):
    """Sends on what it gets."""

    @handler
    async def take(self, n: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(n)


@executor(id="join")
async def join(numbers: list[int]) -> int:
    """The sum of what all targets sent."""
    return sum(numbers)


@executor(id="start")
async def start(n: int) -> int:
    """Send the number on."""
    return n


@executor(id="double")
async def double(n: int) -> int:
    """The output of a child scope."""
    return 2 * n


def loop_of(node: Executor, supersteps: int) -> Workflow:
    """One executor with an edge to itself."""
    builder = WorkflowBuilder("loop", node, reducers={"log": append}, max_supersteps=supersteps + 1)
    return builder.add_edge(node, node).build()


def alone(node: Executor) -> Workflow:
    """One executor without edges."""
    return WorkflowBuilder("alone", node).build()


def fan_out(targets: int) -> Workflow:
    """A start, `targets` executors that get the same message, and their join."""
    nodes = [Target(f"target{number}") for number in range(targets)]
    builder = WorkflowBuilder("fan-out", start).add_fan_out_edges(start, nodes).add_fan_in_edges(nodes, join)
    return builder.build()


def nested(depth: int) -> Workflow:
    """A question in a workflow below `depth` others."""
    flow = WorkflowBuilder(f"level{depth}", Ask("ask")).build()
    for level in reversed(range(depth)):
        flow = WorkflowBuilder(f"level{level}", WorkflowExecutor(flow, id="inner")).build()
    return flow


def children() -> Workflow:
    """A start that sends many messages to a sub-workflow, each of which starts a scope."""
    spread = Spread("spread")
    child = WorkflowExecutor(alone(double), id="child")
    return WorkflowBuilder("children", spread).add_edge(spread, child).build()


def messages() -> Workflow:
    """A start that sends many messages to one executor."""
    spread, tally = Spread("spread"), Tally("tally")
    return WorkflowBuilder("messages", spread).add_edge(spread, tally).build()


def values_of_a_megabyte(count: int = BIG_KEYS) -> list[list[str]]:
    """Values of 1 MB, lists of a thousand texts of 1 KB of which no two are equal."""
    return [[f"{key:04}{item:04}" + "x" * (KB - 8) for item in range(KB)] for key in range(count)]
