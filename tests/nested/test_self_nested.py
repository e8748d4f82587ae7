"""A workflow under several ids, and one that nests itself by a function with a depth."""

import asyncio
from itertools import pairwise
from time import perf_counter
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import WorkflowBuildError
from tests.nested.places import both_places, in_fresh_process
from tests.nested.self_nested import Ask, levels


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


def deep(depth: int) -> str:
    """Return the path of the scope so many levels down."""
    return "/".join(["next#1"] * depth)


def test_a_workflow_nested_in_itself_asks_at_the_bottom_and_goes_on(place) -> None:
    """Eight levels down, with a restore in between; each level counted by itself."""
    paused = run(levels(8), "why", place.open())
    (request,) = paused.pending_requests
    assert (request.path, request.executor_id) == (deep(8), "ask")
    ended = run(levels(8), None, place.open(), checkpoint=paused.checkpoint_id, responses=[request.answer("so")])
    assert ended.outputs == ["why: so, up through 8 levels"]


def test_it_goes_on_in_a_fresh_process(tmp_path) -> None:
    """The function is called anew there, with the same depth."""
    jobs = []
    for place in both_places(tmp_path):
        paused = run(levels(8), "why", place.open())
        answers = {paused.pending_requests[0].request_id: "so"}
        jobs.append({"story": "levels", "arguments": [8], "answers": answers, "hand_over": place.hand_over(paused)})
    assert [outcome.outputs for outcome in in_fresh_process(*jobs)] == [["'why: so, up through 8 levels'"]] * 2


def test_the_signature_of_a_workflow_nested_in_itself_grows_by_a_level_at_a_time() -> None:
    """As many lines a level, each as long as before but for its path."""
    lines = [levels(depth).definition.signature.split("\n") for depth in range(9)]
    growth = {len(after) - len(before) for before, after in pairwise(lines)}
    assert len(growth) == 1
    assert max(map(len, lines[8])) - max(map(len, lines[1])) == len("next/") * 7


def test_building_it_takes_no_longer_for_a_level_further_down() -> None:
    """Sixty levels take at most some times as long as six times ten of them."""
    began = perf_counter()
    for _ in range(6):
        levels(10)
    short = perf_counter() - began
    began = perf_counter()
    levels(60)
    assert perf_counter() - began < 5 * short + 0.2


def test_a_function_without_an_end_is_stopped_at_sixty_four_levels() -> None:
    """The error says how deep it would be, and what to do instead."""
    with pytest.raises(WorkflowBuildError, match="would nest workflows 65 levels deep; 64 are possible: use a loop"):
        levels(70)


class Both(Executor):
    """Sends its text to both nodes."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.send_message(f"{text} left", target_id="left")
        ctx.send_message(f"{text} right", target_id="right")


def doubled(depth: int) -> Workflow:
    """A workflow that runs the one below it under two ids."""
    if depth == 0:
        return WorkflowBuilder("asking", Ask("ask")).build()
    child, both = doubled(depth - 1), Both("both")
    nodes = [WorkflowExecutor(child, "left"), WorkflowExecutor(child, "right")]
    return WorkflowBuilder(f"doubled {depth}", both).add_fan_out_edges(both, nodes).build()


def test_one_child_under_two_ids_on_each_of_three_levels(place) -> None:
    """Eight scopes of one definition ask; each gets its own answer, whatever the order of the call."""
    paused = run(doubled(3), "x", place.open())
    assert len(paused.pending_requests) == 8
    answers = {request.request_id: request.path for request in reversed(paused.pending_requests)}
    ended = run(doubled(3), None, place.open(), checkpoint=paused.checkpoint_id, responses=answers)
    sides = [(a, b, c) for a in ("left", "right") for b in ("left", "right") for c in ("left", "right")]
    assert ended.outputs == [f"x {a} {b} {c}: {a}#1/{b}#1/{c}#1, up through 0 levels" for a, b, c in sides]


def test_the_same_child_can_be_nested_in_two_ways() -> None:
    """How it is nested belongs to the node: one of them is shared and keeps its state."""

    class Count(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.set_state("count", ctx.get_state("count", 0) + 1)
            ctx.yield_output(f"{ctx.path} {ctx.get_state('count')}")

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
            pass

    @executor(id="repeat")
    async def repeat(text: str, ctx: WorkflowContext[str]) -> None:
        ctx.send_message(text)
        ctx.send_message(text)

    child = WorkflowBuilder("count", Count("count")).build()
    nodes = [WorkflowExecutor(child, "each"), WorkflowExecutor(child, "all", isolation="shared")]
    result = run(WorkflowBuilder("w", repeat).add_fan_out_edges(repeat, nodes).build(), "x")
    assert result.outputs == ["all#1 1", "all#1 2", "each#1 1", "each#2 1"]
