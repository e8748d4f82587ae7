"""An order whose items are decided two levels down, watched as a stream of events.

    python examples/nested_approval.py                     # what a frugal manager says
    python examples/nested_approval.py laptop=no desk=yes  # what you say

Each item runs in a scope of its own: the order's sub-workflow `department`, and for what is dear, inside it, `manager`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    RequestAnswer,
    RunStream,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunResult,
    executor,
    handler,
    response_handler,
)
from rehydrate.model.events import (
    Event,
    OutputYielded,
    RequestOpened,
    ScopeEnded,
    ScopeStarted,
    StatusChanged,
    TurnStarted,
)


@dataclass(frozen=True)
class Item:
    name: str
    price: int


@dataclass(frozen=True)
class Order:
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Approve:
    item: Item


@dataclass(frozen=True)
class Decision:
    item: Item
    approved: bool
    by: str


class Split(Executor):
    """Sends each item of an order on its way."""

    @handler
    async def on_order(self, order: Order, ctx: WorkflowContext[Item]) -> None:
        for item in order.items:
            ctx.send_message(item)


class Budget(Executor):
    """Decides what is cheap, and passes on what is not."""

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Item, Decision]) -> None:
        if item.price <= 100:
            ctx.yield_output(Decision(item, True, "the budget"))
        else:
            ctx.send_message(item)


class Manager(Executor):
    """Asks a person."""

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Never, Decision]) -> None:
        ctx.request_info(Approve(item), response_type=bool)

    @response_handler
    async def on_answer(self, asked: Approve, approved: bool, ctx: WorkflowContext[Never, Decision]) -> None:
        ctx.yield_output(Decision(asked.item, approved, "the manager"))


@executor(id="purchase")
async def purchase(decision: Decision) -> str:
    verb = "bought" if decision.approved else "not bought"
    return f"{decision.item.name} for {decision.item.price}: {verb}, says {decision.by}"


def build() -> Workflow:
    """Build the three workflows, the innermost first."""
    manager = WorkflowExecutor(WorkflowBuilder("manager", Manager("ask")).build(), "manager")
    budget = Budget("budget")
    department = WorkflowBuilder("department", budget).add_edge(budget, manager).build()
    split = Split("split")
    chain = [split, WorkflowExecutor(department, "department"), purchase]
    return WorkflowBuilder("order", split, checkpoint_storage=InMemoryCheckpointStorage()).add_chain(chain).build()


def line(event: Event) -> str | None:
    """Say an event in a line, or nothing of it."""
    match event:
        case TurnStarted(turn=turn):
            return f"turn {turn}"
        case ScopeStarted():
            return "begins"
        case ScopeEnded():
            return "ends"
        case RequestOpened(data=Approve(item=item)):
            return f"asks: {item.name} for {item.price}?"
        case OutputYielded(data=data):
            return f"-> {data}"
        case StatusChanged(status=status):
            return status.value
        case _:
            return None


async def watch(stream: RunStream) -> WorkflowRunResult:
    """Print events as they come, indented by their depth, and return the result."""
    async for event in stream:
        text = line(event)
        if text is not None:
            depth = event.path.count("/") + 1 if event.path else 0
            print(f"{event.sequence:3} {'    ' * depth}{event.path} {text}".rstrip())
    return await stream.result()


async def main(answers: Mapping[str, bool]) -> list[object]:
    """Order, answer what is asked, and return what came out."""
    workflow = build()
    order = Order((Item("laptop", 1800), Item("pens", 12), Item("desk", 450)))
    paused = await watch(workflow.run(order, run_id="order-1", stream=True))

    responses: list[RequestAnswer] = []
    for request in paused.pending_requests:
        assert isinstance(request.data, Approve)
        item = request.data.item
        responses.append(request.answer(answers.get(item.name, item.price < 1000)))
    result = await watch(workflow.run(checkpoint=paused, responses=responses, stream=True))
    return [*paused.outputs, *result.outputs]


def read(arguments: list[str]) -> dict[str, bool]:
    """Return the answers of a command line, or end with one line that says how they look."""
    answers: dict[str, bool] = {}
    for argument in arguments:
        name, _, word = argument.partition("=")
        if word not in {"yes", "no"}:
            sys.exit(f"{argument}: write name=yes or name=no")
        answers[name] = word == "yes"
    return answers


if __name__ == "__main__":
    given = read(sys.argv[1:])
    outputs = asyncio.run(main(given))
    assert len(outputs) == 3
    if not given:
        assert outputs == [
            "pens for 12: bought, says the budget",
            "laptop for 1800: not bought, says the manager",
            "desk for 450: bought, says the manager",
        ]
