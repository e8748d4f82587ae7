"""A workflow for many runs at once: every number that it keeps anywhere comes from the order of its run.

Each handler lets the others run in its middle. What a run has kept is told in its output: in a key of the root, in an
instance of the root, and in the sub-workflow, whose asker has an instance too.
"""

import asyncio
from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler, response_handler


@dataclass(frozen=True)
class Order:
    """What a run is told: a number, and the mark that all its texts carry."""

    number: int


@dataclass(frozen=True)
class Question:
    mark: str


def mark(number: int) -> str:
    """Return what all texts of a run hold, and no text of another one."""
    return f"<{number:06}>"


class Keeping(Executor):
    """Keeps texts in itself."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.kept: list[str] = []

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"kept": self.kept}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.kept = state["kept"]


class Desk(Keeping):
    """Keeps the order and hands it down; makes an output of what comes back."""

    @handler
    async def on_order(self, order: Order, ctx: WorkflowContext[str]) -> None:
        own = mark(order.number)
        await asyncio.sleep(0)
        self.kept.append(own)
        ctx.set_state("order", own)
        ctx.send_message(own, target_id="room")

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        await asyncio.sleep(0)
        ctx.yield_output(" ".join([ctx.run_id, ctx.get_state("order"), *self.kept, *texts]))


class Asker(Keeping):
    """Asks once, with a superstep before it; gives back what its scope has."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
        self.kept.append(text)
        ctx.set_state("text", text)
        await asyncio.sleep(0)
        ctx.send_message(len(self.kept), target_id=self.id)

    @handler
    async def on_count(self, count: int, ctx: WorkflowContext[Never, list[str]]) -> None:
        await asyncio.sleep(0)
        ctx.request_info(Question(ctx.get_state("text")), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, list[str]]) -> None:
        await asyncio.sleep(0)
        ctx.yield_output([*self.kept, ctx.get_state("text"), question.mark, answer])


def crowd() -> Workflow:
    """Make the workflow."""
    asker = Asker("asker")
    room = WorkflowExecutor(WorkflowBuilder("room", asker).add_edge(asker, asker).build(), id="room")
    desk = Desk("desk")
    return WorkflowBuilder("crowd", desk).add_edge(desk, room).add_edge(room, desk).build()


def expected(run_id: str, number: int) -> str:
    """Return the output of a run: its id, and its own mark from each of seven places."""
    return " ".join([run_id, *[mark(number)] * 5, f"answer {mark(number)}"])
