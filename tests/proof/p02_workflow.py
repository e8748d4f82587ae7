"""The workflows that are killed at their calls: one nested three deep, with a join and instance state, and a flat one.

Executors say that they run to `say`, a resource of the call, before they do anything.
"""

from __future__ import annotations

from functools import cache
from typing import Never

from rehydrate import (
    Executor,
    MigrationView,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
    handler,
    response_handler,
)


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
    @handler
    async def on_order(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.resources["say"](self.id)
        ctx.set_state("orders", ctx.get_state("orders", 0) + self.counted())
        ctx.send_message(text)


@executor(id="quick")
async def quick(text: str, ctx: WorkflowContext[Never, str]) -> str:
    ctx.resources["say"]("quick")
    return f"quick {text}"


class Ask(Counting):
    """Asks about what ends with `?`, and tells what its scope and itself have counted."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.resources["say"](self.id)
        ctx.set_state("asked", ctx.get_state("asked", 0) + self.counted())
        if text.endswith("?"):
            ctx.request_info(text, response_type=str)
        else:
            ctx.yield_output(f"{text} {ctx.get_state('asked')}")

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.resources["say"](self.id)
        ctx.yield_output(f"{text} {answer} {ctx.get_state('asked')}/{self.counted()}")


class File(Counting):
    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        ctx.resources["say"](self.id)
        for text in texts:
            ctx.update_state("filed", text)
        ctx.yield_output(f"{self.counted()}: {', '.join(texts)} of {ctx.get_state('orders')}")


@executor(id="check")
async def check(text: str, ctx: WorkflowContext[Never, str]) -> str:
    ctx.resources["say"]("check")
    return f"{text} checked"


@cache
def deep(version: int = 1) -> Workflow:
    """Make the nested workflow; version 2 asks under another name and has a node more."""
    asking = "ask" if version == 1 else "clerk"
    migrate = None if version == 1 else {1: with_clerk}
    inner = WorkflowBuilder("inner", Ask(asking), version=version, migrate=migrate).build()
    middle = WorkflowBuilder("middle", WorkflowExecutor(inner, "inner")).build()
    plan, side, file = Plan("plan"), WorkflowExecutor(middle, "side"), File("file")
    builder = WorkflowBuilder(
        "deep", plan, version=version, migrate=None if version == 1 else {1: with_check}, reducers={"filed": append}
    )
    builder.add_edge(plan, side).add_edge(plan, quick)
    if version == 1:
        return builder.add_fan_in_edges([side, quick], file).build()
    return builder.add_edge(side, check).add_fan_in_edges([check, quick], file).build()


def with_clerk(run: MigrationView) -> None:
    run.rename_executor("ask", "clerk")


def with_check(run: MigrationView) -> None:
    """The join holds what came from `side` under the name of `check` now."""


@cache
def flat() -> Workflow:
    """Make a workflow of two executors."""
    plan = Plan("plan")
    return WorkflowBuilder("flat", plan).add_chain([plan, check]).build()
