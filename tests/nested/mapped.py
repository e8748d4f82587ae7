"""Workflows that hand state to their sub-workflows and take state back."""

from typing import Never

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


@executor(id="desk")
async def desk(text: str, ctx: WorkflowContext[str]) -> None:
    """Write what the children are to have, and something that they are not to have."""
    ctx.set_state("customer", text)
    ctx.set_state("secret", "of the parent")
    ctx.update_state("log", f"desk {text}")
    ctx.send_message(text)


class Review(Executor):
    """Shows what it was given, asks, and leaves a verdict."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        given = [ctx.get_state(key) for key in ("name", "secret", "missing", "notes")]
        ctx.update_state("notes", f"review {text}")
        ctx.set_state("verdict", "none yet")
        ctx.yield_output(f"given {given}")
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("verdict", answer)
        ctx.yield_output(f"answered {ctx.get_state('notes')}")


INPUTS = {"customer": "name", "nothing": "missing", "log": "notes"}
OUTPUTS = {"verdict": "verdict", "notes": "log", "never set": "never"}


def mapped() -> Workflow:
    """desk -> review, which gets the customer and the log and gives back a verdict and the log."""
    child = WorkflowBuilder("review", Review("ask"), reducers={"notes": append}).build()
    node = WorkflowExecutor(child, "review", inputs=INPUTS, outputs=OUTPUTS)
    return WorkflowBuilder("mapped", desk, reducers={"log": append}).add_edge(desk, node).build()
