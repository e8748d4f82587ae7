"""Workflows with a shared sub-workflow: one scope that all messages of its node go through."""

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


@executor(id="split")
async def split(text: str, ctx: WorkflowContext[str]) -> None:
    """Send each word on."""
    for word in text.split():
        ctx.send_message(word)


class Teller(Executor):
    """Counts what comes in its scope's state and in itself; asks about words with a question mark."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.seen = 0

    @handler
    async def on_word(self, word: str, ctx: WorkflowContext[Never, str]) -> None:
        self.seen += 1
        ctx.update_state("words", word)
        ctx.set_state("count", ctx.get_state("count", 0) + 1)
        if word.endswith("?"):
            ctx.request_info(word, response_type=str)
        else:
            ctx.yield_output(f"{word} is {self.seen}")

    @response_handler
    async def on_answer(self, word: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.update_state("words", answer)
        ctx.yield_output(f"{word} {answer} of {ctx.get_state('count')}")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"seen": self.seen}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.seen = int(str(state["seen"]))


def teller(**options: object) -> WorkflowExecutor:
    """The shared node."""
    inner = WorkflowBuilder("telling", Teller("teller"), reducers={"words": append}).build()
    return WorkflowExecutor(inner, "telling", isolation="shared", **options)


def shared() -> Workflow:
    """split -> telling, which is shared."""
    return WorkflowBuilder("shared", split).add_edge(split, teller()).build()
