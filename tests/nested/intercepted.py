"""Workflows whose parent answers what their sub-workflows ask, by itself or after asking the outside."""

from dataclasses import dataclass
from typing import Never

from rehydrate import (
    Executor,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)


@dataclass(frozen=True)
class Limit:
    """How much may this cost?"""

    what: str


class Clerk(Executor):
    """Asks for a limit, and yields what it was answered."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        for what in text.split():
            ctx.request_info(Limit(what), response_type=int)

    @response_handler
    async def on_limit(self, asked: Limit, limit: int, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{asked.what} up to {limit}")


def buying(depth: int = 1) -> Workflow:
    """A workflow that asks, this many levels down."""
    workflow = WorkflowBuilder("buying", Clerk("clerk")).build()
    for level in range(1, depth):
        workflow = WorkflowBuilder(f"around {level}", WorkflowExecutor(workflow, "inner")).build()
    return workflow


PRICES = {"tea": 5, "milk": 2}


class Policy(Executor):
    """Knows some limits, and asks the outside for the others; keeps the request until the answer comes."""

    @handler
    async def on_request(
        self, message: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
    ) -> None:
        asked = message.request.data
        assert isinstance(asked, Limit)
        if asked.what in PRICES:
            ctx.send_message(message.create_response(PRICES[asked.what]))
        else:
            ctx.request_info(message, response_type=int)

    @response_handler
    async def on_answer(
        self, message: SubWorkflowRequestMessage, answer: int, ctx: WorkflowContext[SubWorkflowResponseMessage]
    ) -> None:
        ctx.send_message(message.create_response(answer))


@executor(id="show")
async def show(text: str) -> str:
    """The last node."""
    return f"shown: {text}"


def policed(depth: int = 1) -> Workflow:
    """buying -> policy, which answers; what is bought is shown."""
    node = WorkflowExecutor(buying(depth), "buying", requests="intercept")
    builder = WorkflowBuilder("policed", node)
    return builder.add_fan_out_edges(node, [Policy("policy"), show]).build()
