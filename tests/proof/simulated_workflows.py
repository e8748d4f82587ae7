"""The workflows of the simulation: small and nested. What is lost, doubled or half there shows in an output.

`desk` fans out to two nested branches that ask, and joins them; `press` maps a list over a worker that is tried again;
`clerk` is a function with steps, branches and questions, and `office` a graph with that function in it. What handlers
meet is told by `tools`, a resource of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Never, Protocol

from rehydrate import (
    Executor,
    FunctionalContext,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    add,
    append,
    current_step,
    executor,
    handler,
    response_handler,
    step,
    workflow,
)

#: How long the innermost scope of a desk may take, in seconds.
LEAF_SECONDS = 50.0


class TroubleError(Exception):
    """The outside world fails."""


class Tools(Protocol):
    """What handlers are given."""

    async def at(self, ctx: Any, what: object) -> None:
        """Take effect outside, once for an effect key; may wait, or raise `TroubleError`."""


async def at(ctx: Any, what: object) -> None:
    """Take effect outside."""
    await ctx.resources["tools"].at(ctx, what)


@dataclass(frozen=True)
class Order:
    number: int


@dataclass(frozen=True)
class Part:
    number: int
    side: str


@dataclass(frozen=True)
class Question:
    text: str


class Counting(Executor):
    """Keeps in itself how many messages it has handled."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.count: Any = 0

    def counted(self) -> int:
        self.count += 1
        return self.count

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = state["count"]


class Plan(Counting):
    """Takes an order apart."""

    @handler
    async def on_order(self, order: Order, ctx: WorkflowContext[Part]) -> None:
        await at(ctx, order.number)
        ctx.set_state("orders", ctx.get_state("orders", 0) * 3 + self.counted())
        ctx.send_message(Part(order.number, "left"), target_id="left")
        if order.number % 3:
            ctx.send_message(Part(order.number, "quick"), target_id="quick")


class Ask(Counting):
    """Asks; with the answer it tells what all of its scope has counted, twice around."""

    @handler
    async def on_part(self, part: Part, ctx: WorkflowContext[Part, str]) -> None:
        await at(ctx, part.side)
        if self.counted() == 1 and part.number % 2:
            ctx.send_message(part)
            return
        ctx.set_state("asked", self.count)
        ctx.request_info(Question(f"{part.side} {part.number}"), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Part, str]) -> None:
        await at(ctx, answer)
        ctx.yield_output(f"{question.text} {answer} {ctx.get_state('asked')}/{self.counted()}")


@executor(id="quick")
async def quick(part: Part, ctx: WorkflowContext[str]) -> str:
    await at(ctx, part.number)
    return f"{part.side} {part.number}"


class File(Counting):
    """Files what the branches of an order gave."""

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        await at(ctx, len(texts))
        for text in texts:
            ctx.update_state("filed", text)
        ctx.yield_output(f"{self.counted()}: {texts}; {len(ctx.get_state('filed'))} filed {ctx.get_state('orders')}")


def desk() -> Workflow:
    ask = Ask("ask")
    leaf = WorkflowBuilder(name="leaf", start_executor=ask).add_edge(ask, ask).build()
    node = WorkflowExecutor(leaf, id="leaf", timeout=LEAF_SECONDS)
    branch = WorkflowBuilder(name="branch", start_executor=node).build()
    plan, file = Plan("plan"), File("file")
    sides = [WorkflowExecutor(branch, id="left"), quick]
    builder = WorkflowBuilder(name="desk", start_executor=plan, reducers={"filed": append})
    for side in sides:
        builder.add_edge(plan, side)
    return builder.add_fan_in_edges(sides, file).build()


@executor(id="split")
async def split(order: Order, ctx: WorkflowContext[list[Part]]) -> list[Part]:
    await at(ctx, order.number)
    ctx.update_state("sum", order.number)
    return [Part(order.number, side) for side in "abc"[: 1 + order.number % 3]]


class Print(Executor):
    """Prints a part; what fails is tried again."""

    def __init__(self, id: str) -> None:
        super().__init__(id, retry=Retry(attempts=2, delay=5.0, on=(TroubleError,)), timeout=40.0)

    @handler
    async def on_part(self, part: Part, ctx: WorkflowContext[Never, str]) -> None:
        await at(ctx, part.side)
        ctx.set_state("printed", ctx.get_state("printed", "") + part.side)
        if part.side == "b":
            ctx.request_info(Question(f"print {part.number}"), response_type=str)
        else:
            ctx.yield_output(f"{part.side}{part.number} {ctx.get_state('printed')}")

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await at(ctx, answer)
        ctx.yield_output(f"{question.text} {answer} {ctx.get_state('printed')}")


@executor(id="bind")
async def bind(pages: list[str], ctx: WorkflowContext[Never, str]) -> str:
    await at(ctx, len(pages))
    ctx.update_state("bound", len(pages))
    return f"{pages} {ctx.get_state('sum')} {ctx.get_state('bound')}"


def press() -> Workflow:
    worker = WorkflowExecutor(WorkflowBuilder(name="printing", start_executor=Print("print")).build(), id="worker")
    builder = WorkflowBuilder(name="press", start_executor=split, reducers={"sum": add, "bound": add})
    return builder.add_map_edge(split, worker, into=bind).build()


@step(retry=Retry(attempts=2, delay=4.0, on=(TroubleError,)), timeout=45.0)
async def stamp(text: str) -> str:
    run = current_step()
    await run.resources["tools"].at(run, text)
    return f"<{text}>"


def clerk() -> Workflow:
    async def body(order: Order, ctx: FunctionalContext) -> str:
        first = await stamp(f"first {order.number}")
        ctx.state.update("log", first)
        pair = await ctx.gather(stamp(f"left {order.number}"), stamp(f"right {order.number}"))
        if order.number % 2:
            answer = await ctx.request_info(Question(f"clerk {order.number}"), response_type=str)
            ctx.state.update("log", await stamp(f"answered {answer}"))
        return f"{first} {pair} {ctx.state.get('log')}"

    made = workflow(name="clerk", types=[Question, str], returns=str, message=Order, reducers={"log": append})
    return made(body)


def office() -> Workflow:
    @executor(id="enter")
    async def enter(order: Order, ctx: WorkflowContext[Order]) -> Order:
        await at(ctx, order.number)
        ctx.set_state("entered", ctx.get_state("entered", 0) + 1)
        return order

    @executor(id="leave")
    async def leave(texts: list[str], ctx: WorkflowContext[Never, str]) -> str:
        await at(ctx, len(texts))
        return f"{texts} {ctx.get_state('entered')}"

    nodes = [WorkflowExecutor(clerk(), id="one"), WorkflowExecutor(press(), id="two")]
    builder = WorkflowBuilder(name="office", start_executor=enter)
    builder.add_fan_out_edges(enter, nodes)
    return builder.add_fan_in_edges(nodes, leave).build()


class Weigh(Counting):
    """Weighs what comes, in one scope for all of it."""

    @handler
    async def on_part(self, part: Part, ctx: WorkflowContext[Part, str]) -> None:
        await at(ctx, (part.number, part.side))
        if part.side == "once":
            ctx.send_message(Part(part.number, "twice"))
        else:
            ctx.yield_output(f"{part.number} {self.counted()}")


def tally() -> Workflow:
    """Adds up what many clients bring, each once."""

    @executor(id="take")
    async def take(order: Order, ctx: WorkflowContext[Part]) -> Part:
        await at(ctx, order.number)
        ctx.update_state("sum", order.number)
        return Part(order.number, "once")

    @executor(id="book")
    async def book(text: str, ctx: WorkflowContext[Never, str]) -> str:
        await at(ctx, text.partition(" ")[0])
        ctx.update_state("log", text)
        return text

    weigh = Weigh("weigh")
    scale = WorkflowBuilder(name="scale", start_executor=weigh).add_edge(weigh, weigh).build()
    node = WorkflowExecutor(scale, id="scale", isolation="shared")
    builder = WorkflowBuilder(name="tally", start_executor=take, reducers={"sum": add, "log": append})
    return builder.add_chain([take, node, book]).build()


#: What conversations are about.
WORKFLOWS: dict[str, Callable[[], Workflow]] = {"desk": desk, "press": press, "clerk": clerk, "office": office}
#: What a crowd brings its orders to.
TALLY = "tally"
CROWD = "crowd"
