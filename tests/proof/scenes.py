"""The calls that are broken and made again: workflows three levels deep, and the rows of the resume table on them."""

from __future__ import annotations

from collections.abc import Callable

from rehydrate import FunctionalContext, Workflow, WorkflowRunResult, workflow
from tests.call.desk import Note, World, desk
from tests.proof.repeats import Arguments, Scene


def graph(world: World) -> Workflow:
    """Make a desk whose clerk sits two levels down."""
    return desk(world, depth=3)


def function(world: World) -> Workflow:
    """Make a function that calls a function that calls a desk."""
    inner = desk(world, name="inner")

    @workflow(name="middle", message=Note, returns=str, calls=[inner])
    async def middle(note: Note, ctx: FunctionalContext) -> str:
        return ", ".join(await ctx.call(inner, note))

    @workflow(name="outer", message=Note, returns=str, calls=[middle])
    async def outer(note: Note, ctx: FunctionalContext) -> str:
        text = await ctx.call(middle, note)
        heard = ctx.state.get("heard", 0) + 1
        ctx.state.set("heard", heard)
        return f"{heard}: {text}"

    return outer


BUILDS: dict[str, Callable[[World], Workflow]] = {"graph": graph, "function": function}


def answers(paused: WorkflowRunResult) -> dict[str, bool]:
    """Answer the first question; a function, which does one thing after the other, gets all it has asked."""
    number = None if paused.checkpoint.workflow_name == "outer" else 1
    return {request.request_id: True for request in paused.pending_requests[:number]}


def by_id(paused: WorkflowRunResult) -> dict[str, object]:
    return {"checkpoint": paused.checkpoint_id}


def latest(paused: WorkflowRunResult) -> dict[str, object]:
    return {"checkpoint": "latest", "run_id": "r"}


def answered(where: Arguments) -> Arguments:
    return lambda paused: {**where(paused), "responses": answers(paused)}


NEXT = Note("c,d?")
#: The call of P4: restore, answers and a new message.
ONE_CALL = {
    "by id": Scene(graph, answered(by_id), NEXT),
    "latest": Scene(graph, answered(latest), NEXT),
}
#: Calls that can have a key: the rows of the resume table, and a fork.
KEYED = {
    "first call": Scene(graph, lambda paused: {}, NEXT),
    "first call, named": Scene(graph, lambda paused: {"run_id": "new"}, NEXT),
    "answers, by id": Scene(graph, answered(by_id)),
    "message, by id": Scene(graph, by_id, NEXT),
    "message, latest": Scene(graph, latest, NEXT),
    "answers": Scene(graph, answered(lambda paused: {})),
    "all, by id": Scene(graph, answered(by_id), NEXT),
    "all, latest": Scene(graph, answered(latest), NEXT),
    "fork": Scene(graph, lambda paused: {**by_id(paused), "fork": True}, NEXT),
    "fork, with answers": Scene(graph, lambda paused: {**answered(by_id)(paused), "fork": True}, NEXT),
}
