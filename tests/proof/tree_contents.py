"""What a run of a tree contains, in words: which scopes of which kind there are at which depth, and what is in them."""

from __future__ import annotations

from rehydrate import InMemoryCheckpointStorage
from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run
from rehydrate.ids import depth_of, scope_of, slot
from rehydrate.model.records import ScopeRecord
from tests.differential.contents import seen_in_calls, seen_in_records
from tests.differential.harness import reference_run, stored_checkpoints
from tests.differential.plans import NodePlan
from tests.functional.random_plans import kinds_of
from tests.proof.tree_building import RUN_ID, calls_of
from tests.proof.trees import DEEP, TreePlan, draw_tree


async def seen_in(seed: int) -> set[str]:
    """Run a tree and name what its plan, checkpoints, calls and events contain."""
    plan, store = draw_tree(seed), InMemoryCheckpointStorage()
    facts = await reference_run(calls_of(plan, store, chance=1), RUN_ID)
    seen = {call.status for call in facts.calls}
    seen |= {event.text.split()[0] for call in facts.calls for event in call.events}
    seen |= {f"{kind} in a function" for program in plan.programs.values() for kind in kinds_of(program.ops)}
    for checkpoint in await stored_checkpoints(store, RUN_ID):
        seen |= seen_in_records(checkpoint) | seen_in_calls(checkpoint.records) | _scopes(plan, checkpoint.records)
    return seen | {f"{what}, deep" for what in seen if _is_deep(what)}


def _is_deep(what: str) -> bool:
    _, found, depth = what.rpartition(" at depth ")
    return bool(found) and int(depth) >= DEEP


def _scopes(plan: TreePlan, run: Run) -> set[str]:
    """Name the kinds of scopes in a run: what each is, and what it is in."""
    seen: set[str] = set()
    for path in scopes(run):
        if not path:
            continue
        parent, segment = slot(path)
        node, name = scope_of(segment)[0], named(plan, path)
        around = "function" if named(plan, parent) in plan.programs else "graph"
        what = f"{'function' if name in plan.programs else 'graph'} in a {around}"
        seen |= {what, f"{what} at depth {depth_of(path)}"}
        record = run.get(parent, "scope", segment)
        if isinstance(record, ScopeRecord) and record.inputs > 1:
            assert node_plan(plan, named(plan, parent), node).nesting.shared
            seen |= {f"shared {what} with several inputs", f"shared scope at depth {depth_of(path)}"}
    return seen


def named(plan: TreePlan, path: str) -> str:
    """Return the name of the workflow that a scope runs."""
    name = plan.root
    for segment in path.split("/") if path else []:
        node = scope_of(segment)[0]
        name = node if name in plan.programs else node_plan(plan, name, node).child
    return name


def node_plan(plan: TreePlan, graph: str, node: str) -> NodePlan:
    """Return the plan of a graph's node."""
    return next(each for each in plan.graphs[graph].nodes if each.id == node)
