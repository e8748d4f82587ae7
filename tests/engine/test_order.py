"""Order is part of the contract: what executors give is taken in their order in the graph, whatever kind they are."""

import asyncio
from typing import Never

from rehydrate import Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, append, executor


def early_child_beside_late_function(*, with_end: bool) -> Workflow:
    """start -> [a_early (a sub-workflow), z_late (a function)], with or without an executor behind both."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="inner")
    async def inner(text: str) -> str:
        return f"child {text}"

    @executor(id="z_late")
    async def late(text: str) -> str:
        return f"late {text}"

    @executor(id="end")
    async def end(text: str, ctx: WorkflowContext[Never, str]) -> str:
        ctx.update_state("seen", text)
        return text

    early = WorkflowExecutor(WorkflowBuilder("child", inner).build(), id="a_early")
    builder = WorkflowBuilder("order", start, reducers={"seen": append}).add_fan_out_edges(start, [early, late])
    if with_end:
        builder.add_edge(early, end).add_edge(late, end)
    return builder.build()


def test_outputs_of_a_sub_workflow_stand_in_its_place_among_the_executors() -> None:
    """The outputs of one superstep are in executor order, also where one of them is a sub-workflow."""
    result = asyncio.run(early_child_beside_late_function(with_end=False).run("x"))
    assert result.outputs == ["child x", "late x"]


def test_messages_of_a_sub_workflow_stand_in_its_place_among_the_sources() -> None:
    """An executor handles what a sub-workflow sent before what a later executor sent."""
    result = asyncio.run(early_child_beside_late_function(with_end=True).run("x"))
    assert result.outputs == ["child x", "late x"]
    assert result.checkpoint.state == {"seen": ["child x", "late x"]}
