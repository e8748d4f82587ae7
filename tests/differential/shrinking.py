"""Shrinking: from a family that shows a difference to the smallest one that still does.

Run it with a seed, `python -m tests.differential.shrinking 1077`, to get a plan for a report.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator

import msgspec

from rehydrate import InMemoryCheckpointStorage
from rehydrate.errors import RehydrateError
from tests.differential.drawing import draw
from tests.differential.harness import Replay, calls_of, reference_run, stored_checkpoints
from tests.differential.plans import FamilyPlan, GraphPlan, NestingPlan, NodePlan

Simpler = Iterator[FamilyPlan]


def first_difference(family: FamilyPlan) -> str | None:
    """Return the first thing in which a replay of any checkpoint differs; `None` where all is the same."""
    try:
        return asyncio.run(_first_difference(family))
    except RehydrateError:
        return None


async def _first_difference(family: FamilyPlan) -> str | None:
    store = InMemoryCheckpointStorage()
    calls = calls_of(family, store, chance=1)
    facts = await reference_run(calls, "reference")
    for checkpoint in await stored_checkpoints(store, "reference"):
        wrong = await Replay(calls, facts, checkpoint, f"again {checkpoint.header.seq}", further=1).compare()
        if wrong:
            return wrong[0]
    return None


def shrink(family: FamilyPlan, fails: Callable[[FamilyPlan], bool]) -> FamilyPlan:
    """Take pieces away as long as what is left still fails."""
    shrunk = True
    while shrunk:
        shrunk = False
        for simpler in _simpler(family):
            if fails(simpler):
                family, shrunk = simpler, True
                break
    return family


def _simpler(family: FamilyPlan) -> Simpler:
    for name in family.graphs:
        yield from _with_simpler_graph(family, name)
    script = family.script
    for change in (
        {"messages": ()},
        {"stormy": False},
        {"answers": "all"},
        {"pending": "keep"},
        {"stopped": "continue"},
        {"fuel": script.fuel // 2},
        {"fuel": script.fuel - 1},
    ):
        changed = msgspec.structs.replace(script, **change)
        if changed != script and changed.fuel > 0:
            yield msgspec.structs.replace(family, script=changed)
    if family.max_concurrency is not None:
        yield msgspec.structs.replace(family, max_concurrency=None)
    used = {family.root} | {node.child for graph in family.graphs.values() for node in graph.nodes}
    if family.graphs.keys() - used:
        yield msgspec.structs.replace(family, graphs={k: v for k, v in family.graphs.items() if k in used})


def _with_simpler_graph(family: FamilyPlan, name: str) -> Simpler:
    for graph in _simpler_graphs(family.graphs[name]):
        yield msgspec.structs.replace(family, graphs={**family.graphs, name: graph})


def _simpler_graphs(graph: GraphPlan) -> Iterator[GraphPlan]:
    for node in graph.nodes[1:]:
        groups = []
        for group in graph.groups:
            others = tuple(other for other in group.others if other != node.id)
            if group.one != node.id and others:
                groups.append(msgspec.structs.replace(group, others=others))
        yield msgspec.structs.replace(graph, nodes=[n for n in graph.nodes if n is not node], groups=groups)
    for index in range(len(graph.groups)):
        yield msgspec.structs.replace(graph, groups=graph.groups[:index] + graph.groups[index + 1 :])
    for index, group in enumerate(graph.groups):
        if group.kind == "edge" and (group.modulus or group.fuel):
            plain = msgspec.structs.replace(group, modulus=0, fuel=0)
            yield msgspec.structs.replace(graph, groups=[*graph.groups[:index], plain, *graph.groups[index + 1 :]])
    if graph.max_supersteps != 100:
        yield msgspec.structs.replace(graph, max_supersteps=100)
    for index, node in enumerate(graph.nodes):
        for simpler in _simpler_nodes(node):
            yield msgspec.structs.replace(graph, nodes=[*graph.nodes[:index], simpler, *graph.nodes[index + 1 :]])


def _simpler_nodes(node: NodePlan) -> Iterator[NodePlan]:
    for change in (
        {"kind": "worker", "child": ""},
        {"nesting": NestingPlan()},
        {"nesting": msgspec.structs.replace(node.nesting, intercept=False)},
        {"nesting": msgspec.structs.replace(node.nesting, shared=False)},
        {"nesting": msgspec.structs.replace(node.nesting, mapped=False)},
        {"nesting": msgspec.structs.replace(node.nesting, timed=False)},
        {"asks": 0},
        {"fails": 0},
        {"flaky": 0},
        {"state": ()},
        {"state": node.state[1:]},
        {"sends": (1,)},
        {"yields": (0,)},
    ):
        changed = msgspec.structs.replace(node, **change)
        if changed != node:
            yield changed


def main() -> None:
    logging.disable(logging.WARNING)
    found = shrink(draw(int(sys.argv[1])), lambda family: first_difference(family) is not None)
    sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(found)).decode()}\n{first_difference(found)}\n")


if __name__ == "__main__":
    main()
