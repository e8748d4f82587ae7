"""A conversation with a function: each order asks two things side by side, one of them in a workflow that it calls.

What it has filed is in its state, and what was asked and looked up is remembered, so that whatever is lost, doubled or
half there shows in an output.
"""

from rehydrate import (
    CheckpointStorage,
    FunctionalContext,
    FunctionalWorkflow,
    WorkflowBuilder,
    append,
    step,
    workflow,
)
from tests.processes.conversation import Ask, Order, Part, Question


@step
async def price(side: str, number: int) -> str:
    """Look something up."""
    return f"{side} {number} costs {number * len(side)}"


@step
async def noted(text: str) -> str:
    """Do something with what was heard."""
    return f"{text}, noted"


def interview(store: CheckpointStorage | None = None) -> FunctionalWorkflow:
    """Make the workflow."""
    leaf = WorkflowBuilder(name="leaf", start_executor=Ask("ask")).build()

    @workflow(
        name="interview", types=[Question, Part], calls=[leaf], reducers={"filed": append}, checkpoint_storage=store
    )
    async def talk(order: Order, ctx: FunctionalContext) -> str:
        async def left() -> str:
            text = await price("left", order.number)
            answer = await ctx.request_info(Question(text), response_type=str)
            return await noted(f"{text} {answer}")

        async def right() -> str:
            (text,) = await ctx.call(leaf, Part(order.number, "right"))
            return await noted(text)

        parts = [*await ctx.gather(left(), right(), price("quick", order.number))]
        if order.number % 3 == 0:
            parts.append(await ctx.request_info(Question(f"again {order.number}"), response_type=str))
        filed = [*ctx.state.get("filed", []), *parts]
        for part in parts:
            ctx.state.update("filed", part)
        return f"{len(filed)} filed: {', '.join(parts)}"

    return talk
