"""A workflow whose executors say that they run, to a file that all processes append to, before they do anything.

What they meet there is told in `tools`, a resource of the call: they may have to wait, fail, or die.
"""

from dataclasses import dataclass
from typing import Never, Protocol

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


class Tools(Protocol):
    """What the executors of a call are given."""

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        """Note that an executor runs; may wait, raise or end the process."""


@dataclass(frozen=True)
class Order:
    """What the shop is told; it asks about one that ends with `?`."""

    text: str


@dataclass(frozen=True)
class Question:
    text: str


@executor(id="take")
async def take(order: Order, ctx: WorkflowContext[Order]) -> None:
    await ctx.resources["tools"].at(ctx, "take")
    ctx.set_state("taken", ctx.get_state("taken", 0) + 1)
    ctx.send_message(order)


class Clerk(Executor):
    """Asks about an order, or lets it pass."""

    @handler
    async def on_order(self, order: Order, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.resources["tools"].at(ctx, "clerk")
        if order.text.endswith("?"):
            ctx.request_info(Question(order.text), response_type=str)
        else:
            ctx.yield_output(order.text)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.resources["tools"].at(ctx, "answer")
        ctx.yield_output(f"{question.text} {answer}")


@executor(id="ship")
async def ship(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.resources["tools"].at(ctx, "ship")
    number = ctx.get_state("shipped", 0) + 1
    ctx.set_state("shipped", number)
    ctx.yield_output(f"{number} of {ctx.get_state('taken')}: {text}")


def shop(store: CheckpointStorage | None = None) -> Workflow:
    """Make a shop whose clerk sits two levels down."""
    inner = WorkflowBuilder(name="counter", start_executor=Clerk("clerk")).build()
    outer = WorkflowBuilder(name="hall", start_executor=WorkflowExecutor(inner, id="counter")).build()
    hall = WorkflowExecutor(outer, id="hall")
    builder = WorkflowBuilder(name="shop", start_executor=take, checkpoint_storage=store)
    return builder.add_chain([take, hall, ship]).build()
