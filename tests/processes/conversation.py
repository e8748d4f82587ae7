"""A conversation over a nested workflow: each order goes to two branches, each of which asks two levels further down.

Numbers are kept in a key of the root, in a list that grows, in instances of the root and of both levels below, so that
whatever is lost, doubled or half there shows in an output.
"""

from dataclasses import dataclass
from typing import Never

from rehydrate import (
    CheckpointStorage,
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
        self.count = 0

    def counted(self) -> int:
        self.count += 1
        return self.count

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = state["count"]


class Plan(Counting):
    """Takes an order apart; every third one has but one side to ask."""

    @handler
    async def on_order(self, order: Order, ctx: WorkflowContext[Part]) -> None:
        ctx.set_state("orders", ctx.get_state("orders", 0) + self.counted())
        ctx.send_message(Part(order.number, "left"), target_id="left")
        if order.number % 3:
            ctx.send_message(Part(order.number, "right"), target_id="right")
        ctx.send_message(Part(order.number, "quick"), target_id="quick")


@executor(id="quick")
async def quick(part: Part) -> str:
    return f"{part.side} {part.number}"


class Halve(Counting):
    """Passes a part on twice, to itself and then down."""

    @handler
    async def on_part(self, part: Part, ctx: WorkflowContext[Part]) -> None:
        twice = self.counted() == 2
        ctx.set_state("halved", ctx.get_state("halved", 0) + 1)
        ctx.send_message(part, target_id="leaf" if twice else self.id)


class Ask(Counting):
    """Asks; with the answer it tells what all of its scope has counted."""

    @handler
    async def on_part(self, part: Part, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("asked", self.counted())
        ctx.request_info(Question(f"{part.side} {part.number}"), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.text} {answer} {ctx.get_state('asked')}/{self.counted()}")


@executor(id="sum")
async def sum_(text: str, ctx: WorkflowContext[Never, str]) -> str:
    return f"{text} halved {ctx.get_state('halved')}"


class File(Counting):
    """Files what the branches of an order gave."""

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        for text in texts:
            ctx.update_state("filed", text)
        filed, number = ctx.get_state("filed"), self.counted()
        ctx.yield_output(f"{number}: {', '.join(texts)}; {len(filed)} filed, {ctx.get_state('orders')} ordered")


def conversation(store: CheckpointStorage | None = None) -> Workflow:
    """Make the workflow."""
    leaf = WorkflowBuilder(name="leaf", start_executor=Ask("ask")).build()
    halve, down = Halve("halve"), WorkflowExecutor(leaf, id="leaf")
    builder = WorkflowBuilder(name="branch", start_executor=halve).add_edge(halve, halve)
    branch = builder.add_edge(halve, down).add_edge(down, sum_).build()
    plan, file = Plan("plan"), File("file")
    sides = [WorkflowExecutor(branch, id="left"), WorkflowExecutor(branch, id="right"), quick]
    builder = WorkflowBuilder(
        name="conversation", start_executor=plan, checkpoint_storage=store, reducers={"filed": append}
    )
    for side in sides:
        builder.add_edge(plan, side)
    return builder.add_fan_in_edges(sides, file).build()
