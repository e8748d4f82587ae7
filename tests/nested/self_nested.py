"""A workflow that nests itself: a function makes one level around what it makes for the next."""

from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler, response_handler


class Ask(Executor):
    """The bottom: asks, and says how many levels its answer has come up through."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{text}: {answer}, up through 0 levels")


class Pass(Executor):
    """Passes down and counts what comes up."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if "levels" not in text:
            ctx.set_state("passed", text)
            ctx.send_message(text)
            return
        assert ctx.get_state("passed") in text
        front, _, number = text.removesuffix(" levels").rpartition(" ")
        ctx.yield_output(f"{front} {int(number) + 1} levels")


def levels(depth: int) -> Workflow:
    """So many levels, and the bottom."""
    if depth == 0:
        return WorkflowBuilder("bottom", Ask("ask")).build()
    around, below = Pass("pass"), WorkflowExecutor(levels(depth - 1), "next")
    return WorkflowBuilder("level", around).add_edge(around, below).add_edge(below, around).build()
