"""From a plan to a workflow: the same plan gives the same graph in every process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rehydrate import (
    Case,
    Default,
    Executor,
    Workflow,
    WorkflowBuilder,
    add,
    append,
    extend,
    merge,
)
from rehydrate.graph.migration import Migration
from tests.differential.messages import Item, mix
from tests.differential.nesting import Police, nested
from tests.differential.nodes import Weather, fold, node
from tests.differential.plans import FamilyPlan, GraphPlan, GroupPlan, NodePlan

#: From so many on, open requests of a scope share records in every third graph; in the others from one or two on.
REQUESTS_APART = 32
#: The id of the node that an edition has more; it comes first among those at its distance.
EXTRA = "0_extra"


@dataclass(frozen=True)
class Edition:
    """What another version of the same program has: its number, how older runs are brought up, ids, and a node more."""

    version: int = 1
    prefix: str = ""
    migrate: Mapping[int, Migration] = field(default_factory=dict)
    extra: bool = False


def build(family: FamilyPlan, edition: Edition = Edition()) -> Workflow:
    """Build the root workflow with all below it; a child that two nodes use is one workflow."""
    built: dict[str, Workflow] = {}

    def workflow(name: str) -> Workflow:
        if name not in built:
            built[name] = build_graph(family.graphs[name], workflow, family, edition)
        return built[name]

    root = workflow(family.root)
    graph = replace(root.program.graph, requests_apart=family.seed % 3 or REQUESTS_APART)
    root._program = replace(root.program, clock=StoppedClock(), graph=graph)
    return root


class StoppedClock:
    """A clock that stands still, so that whatever was due later is still due later when it is found."""

    def time(self) -> float:
        return 1_800_000_000.0


def build_graph(
    plan: GraphPlan, child: Callable[[str], Workflow], family: FamilyPlan, edition: Edition = Edition()
) -> Workflow:
    """Build one workflow; `child` gives those in it."""
    executors: dict[str, Executor] = {}
    for item in plan.nodes:
        width = plan.width(item.id)
        if item.kind == "workflow":
            made = nested(item, child(item.child), has_edges=width > 0)
        else:
            made = node(item, width, family.delay)
        made.id = edition.prefix + item.id
        executors[item.id] = made
    is_root = plan.name == family.root
    builder = WorkflowBuilder(
        plan.name,
        executors[plan.nodes[0].id],
        reducers={
            "log": append,
            "bag": extend,
            "sum": add,
            "fold": fold,
            "facts": merge,
            **{f"own_{item.id}": append for item in plan.nodes},
        },
        resources={"weather": Weather} if is_root else None,
        max_supersteps=plan.max_supersteps,
        max_concurrency=family.max_concurrency if is_root else None,
        version=edition.version,
        migrate=edition.migrate,
    )
    for item in plan.nodes:
        if item.kind == "workflow" and item.nesting.intercept:
            builder.add_edge(executors[item.id], Police(f"{edition.prefix}police_{item.id}"))
            for end in plan.implied(item.id):  # the library adds it only where there is no other edge
                builder.add_edge(executors[item.id], executors[end])
    for group in plan.groups:
        _add(builder, group, [executors[name] for name in (group.one, *group.others)])
    source = next((item.id for item in plan.nodes if plan.width(item.id)), None)
    if edition.extra and source is not None:
        builder.add_edge(executors[source], node(NodePlan(EXTRA), 0, family.delay), _never)
    return builder.build()


def _add(builder: WorkflowBuilder, group: GroupPlan, ends: list[Executor]) -> None:
    one, others = ends[0], ends[1:]
    match group.kind:
        case "edge":
            condition = _condition(group, group.others[0]) if group.modulus or group.fuel else None
            builder.add_edge(one, others[0], condition)
        case "fan_out":
            builder.add_fan_out_edges(one, others)
        case "fan_in":
            builder.add_fan_in_edges(others, one)
        case "switch":
            cases = [Case(_remainder(group.modulus, index), target) for index, target in enumerate(others[:-1])]
            builder.add_switch_case_edge_group(one, [*cases, Default(others[-1])])
        case "map":
            builder.add_map_edge(one, others[0], into=others[1])
        case "select":
            builder.add_multi_selection_edge_group(one, others, _selection(group.modulus))


def _never(item: Item) -> bool:
    """The new node gets nothing, but its edge moves the numbers of the others."""
    return False


def _condition(group: GroupPlan, target: str) -> Callable[[Item], bool]:
    """Most messages pass; the mark and the fuel that is left decide."""

    def passes(item: Item) -> bool:
        return item.fuel > group.fuel and (group.modulus == 0 or mix(item.mark, target) % group.modulus != 0)

    return passes


def _remainder(modulus: int, index: int) -> Callable[[Item], bool]:
    return lambda item: item.mark % modulus == index


def _selection(modulus: int) -> Callable[[Item, list[str]], Sequence[str]]:
    return lambda item, ids: [name for index, name in enumerate(ids) if (item.mark >> index) % modulus]
