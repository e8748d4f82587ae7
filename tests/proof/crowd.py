"""A graph and a function for many runs at once: every text that they keep anywhere comes from the order of their run.

Each handler and step lets the others run in its middle. What a run has kept is told in its output: from a key of the
root, from what its parts keep, from the sub-workflow that asks, from its run arguments and from the tools of its call.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Never

from rehydrate import (
    Executor,
    FunctionalContext,
    FunctionalWorkflow,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    current_step,
    handler,
    response_handler,
    step,
    workflow,
)

#: How many of a run's own texts stand in an output.
TEXTS = 8


@dataclass(frozen=True)
class Order:
    """What a run is told."""

    number: int


@dataclass(frozen=True)
class Question:
    mark: str


class FaultError(Exception):
    """What is raised where a fault was asked for."""


@dataclass
class Tools:
    """The live objects of one call. `at`: where the call fails, or where it is held up until it is cancelled."""

    mark: str
    at: str = ""
    fails: bool = False
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def come_by(self, place: str) -> None:
        """Let others run; then do what was asked for here."""
        await asyncio.sleep(0)
        if place != self.at:
            return
        if self.fails:
            raise FaultError(self.mark)
        self.entered.set()
        await asyncio.get_running_loop().create_future()


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
        self.kept.append(own)
        ctx.set_state("order", own)
        await ctx.resources["tools"].come_by("start")
        ctx.send_message(own, target_id="room")

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        tools: Tools = ctx.resources["tools"]
        await tools.come_by("end")
        ctx.yield_output(" ".join([ctx.run_id, ctx.get_state("order"), *self.kept, *texts, ctx.run_args, tools.mark]))


class Asker(Keeping):
    """Asks once, with a superstep before it; gives back what its scope has."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
        self.kept.append(text)
        ctx.set_state("text", text)
        await ctx.resources["tools"].come_by("before")
        ctx.send_message(len(self.kept), target_id=self.id)

    @handler
    async def on_count(self, count: int, ctx: WorkflowContext[Never, list[str]]) -> None:
        await ctx.resources["tools"].come_by("asking")
        ctx.request_info(Question(ctx.get_state("text")), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, list[str]]) -> None:
        await ctx.resources["tools"].come_by("answered")
        ctx.yield_output([*self.kept, ctx.get_state("text"), question.mark, answer])


def graph() -> Workflow:
    """Make the workflow as a graph."""
    asker = Asker("asker")
    room = WorkflowExecutor(WorkflowBuilder("room", asker).add_edge(asker, asker).build(), id="room")
    desk = Desk("desk")
    return WorkflowBuilder("crowd", desk).add_edge(desk, room).add_edge(room, desk).build()


@step
async def kept(text: str, place: str) -> str:
    """Give back a text."""
    await current_step().resources["tools"].come_by(place)
    return text


def function() -> FunctionalWorkflow:
    """Make the workflow as a function that calls another."""

    @workflow(types=[Question])
    async def room(text: str, ctx: FunctionalContext) -> list[str]:
        ctx.state.set("text", text)
        own = await kept(text, "before")
        answer = await ctx.request_info(Question(await kept(text, "asking")), response_type=str)
        return [own, ctx.state.get("text"), await kept(text, "answered"), answer]

    @workflow(name="crowd", calls=[room])
    async def desk(order: Order, ctx: FunctionalContext) -> str:
        own = mark(order.number)
        ctx.state.set("order", own)
        first = await kept(own, "start")
        texts = await ctx.call(room, own)
        last = await kept(ctx.run_args, "end")
        return " ".join([ctx.run_id, ctx.state.get("order"), first, *texts, last, ctx.resources["tools"].mark])

    return desk


def expected(run_id: str, number: int) -> str:
    """Return the output of a run: its id, and its own mark from each place."""
    texts = [mark(number)] * TEXTS
    texts[-3] = f"answer {mark(number)}"
    return " ".join([run_id, *texts])
