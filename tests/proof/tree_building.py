"""From a tree's plan to workflows, and the calls of its run. The same plan gives the same in every process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rehydrate import CheckpointStorage, FunctionalContext, Workflow, add, append, extend, workflow
from tests.differential.building import REQUESTS_APART, build_graph
from tests.differential.harness import Calls
from tests.differential.messages import Item, Question, mix
from tests.differential.nodes import Journal, Weather, fold
from tests.functional import random_steps as steps
from tests.functional.random_plans import ProgramPlan
from tests.functional.random_programs import Program, all_ops
from tests.proof.trees import TreePlan

RUN_ID: Final = "reference"
#: Handlers that take virtual seconds finish in any order without waiting for many turns of the event loop.
TURNS: Final = (0, 0, 0, 1, 1, 2)


def build_tree(plan: TreePlan) -> Workflow:
    """Build the root workflow with all below it; what two levels use is one workflow."""
    built: dict[str, Workflow] = {}

    def made(name: str) -> Workflow:
        if name not in built:
            built[name] = (
                _function(plan.programs[name], made, plan)
                if name in plan.programs
                else build_graph(plan.graphs[name], made, plan)
            )
        return built[name]

    root = made(plan.root)
    graph = replace(root.program.graph, requests_apart=plan.seed % 3 or REQUESTS_APART)
    root._program = replace(root.program, graph=graph)
    return root


def calls_of(plan: TreePlan, store: CheckpointStorage | None, chance: int) -> Calls:
    """Build a tree anew, as a process does that knows nothing of others."""
    return Calls(plan, build_tree(plan), store, chance, slow=True, journal=Journal(), turns=TURNS)


def _function(plan: ProgramPlan, made: Callable[[str], Workflow], tree: TreePlan) -> Workflow:
    """A function that takes and gives what the nodes of graphs do."""
    ops = all_ops(plan.ops)
    called = {name: made(name) for name in sorted({op.target for op in ops if op.target})}
    calls = sum(op.kind == "call" for op in ops)

    async def program(given: Item | list[Item], ctx: FunctionalContext) -> Item:
        items = given if isinstance(given, list) else [given]
        fuel = sum(item.fuel for item in items)
        steps.WEATHER.set(ctx.resources["weather"])
        here = Program(plan, ctx, called, fuel, reach=3 * fuel // (4 * max(1, calls)))
        mark = await here.block(plan.ops, mix(plan.name, items, ctx.run_args), "")
        if plan.again and fuel > 8 and mark % plan.again == 0:
            await ctx.continue_as_new(Item(mix(mark, "again"), fuel // 4))
        return Item(mark, fuel // 4, (mark % 3,))

    program.__name__ = plan.name
    return workflow(
        name=plan.name,
        message=Item | list[Item],
        returns=Item,
        types=[Question, int],
        calls=list(called.values()),
        reducers={"log": append, "bag": extend, "sum": add, "fold": fold},
        resources={"weather": Weather},
        max_concurrency=tree.max_concurrency if plan.name == tree.root else None,
    )(program)
