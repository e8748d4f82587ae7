"""Map edges: which executors stand between the worker and the end of a map, and what is wrong with how they do.

The region of a map is what can be reached from its worker without passing its end. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.edges import DirectGroup, Edge, EdgeGroup, FanInGroup, MapGroup
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec, edges_of, unnumbered, with_edges
from rehydrate.graph.problems import edge_place, problem

_Ways: TypeAlias = Mapping[str, Sequence[Edge]]


@dataclass(frozen=True)
class Region:
    """One map edge, and the executors that work for its items."""

    edge: Edge
    into: str
    inside: frozenset[str]


def with_ends(groups: Sequence[EdgeGroup]) -> tuple[EdgeGroup, ...]:
    """Return the groups with the edges that lead to the ends of maps: marked, and added for workers without any."""
    found = list(groups)
    leaving = {edge.source for group in groups for edge in edges_of(group)}
    for group in groups:
        if isinstance(group, MapGroup) and group.edge.into is not None and group.edge.target not in leaving:
            leaving.add(group.edge.target)
            found.append(DirectGroup(unnumbered(group.edge.target, group.edge.into)))
    inside = {(region.into, name) for region in regions_of(found) for name in region.inside}
    if not inside:
        return tuple(found)
    return tuple(_marked(group, inside) for group in found)


def _marked(group: EdgeGroup, inside: set[tuple[str, str]]) -> EdgeGroup:
    edges = [replace(edge, gathers=(edge.target, edge.source) in inside) for edge in edges_of(group)]
    return with_edges(group, tuple(edges))


def regions_of(groups: Sequence[EdgeGroup]) -> list[Region]:
    """Return the regions of all map edges."""
    ways: dict[str, list[Edge]] = {}
    for group in groups:
        for edge in edges_of(group):
            ways.setdefault(edge.source, []).append(edge)
    return [
        Region(group.edge, group.edge.into, _inside(group.edge.target, group.edge.into, ways))
        for group in groups
        if isinstance(group, MapGroup) and group.edge.into is not None
    ]


def _inside(worker: str, into: str, ways: _Ways) -> frozenset[str]:
    seen = {worker}
    waiting = [worker]
    while waiting:
        for edge in ways.get(waiting.pop(), ()):
            if edge.target != into and edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return frozenset(seen)


def map_problems(spec: GraphSpec) -> Iterator[BuildProblem]:
    """Give what is wrong with the maps of a graph whose ends of edges are all known."""
    regions = regions_of(spec.groups)
    joins = {group.edges[0].target for group in spec.groups if isinstance(group, FanInGroup)}
    for region in regions:
        where = f"{edge_place(region.edge)} into {region.into!r}"
        if region.into in (region.edge.target, region.edge.source):
            sentence = f"{where}: the end must be another executor than the worker and the source"
            yield problem("map-end", where, sentence, "add one behind them")
            continue
        if region.into in joins:
            sentence = f"{where}: {region.into!r} is the target of a fan-in as well"
            yield problem("map-into-join", where, sentence, "join in steps")
        if not any(edge.target == region.into for name in region.inside for edge in spec.leaving.get(name, ())):
            sentence = f"{where}: nothing leads from {region.edge.target!r} to {region.into!r}"
            yield problem("map-without-way", where, sentence, "add an edge")
        yield from _entrances(spec, region, regions, where)
        yield from _instances(spec.by_id, region, where)
    for index, one in enumerate(regions):
        for other in regions[index + 1 :]:
            yield from _overlap(one, other)


def _entrances(spec: GraphSpec, region: Region, regions: Sequence[Region], where: str) -> Iterator[BuildProblem]:
    """What works for items must get nothing that belongs to none."""
    if spec.start in region.inside:
        sentence = f"{where}: the start {spec.start!r} works for its items, and its message belongs to none"
        yield problem("map-start", where, sentence, "start before it")
    workers = {(other.edge.source, other.edge.target) for other in regions if other.into == region.into}
    for edge in sorted({edge for edges in spec.leaving.values() for edge in edges}, key=_ends):
        if edge.target not in region.inside or edge.source in region.inside:
            continue
        if edge.into is None or (edge.source, edge.target) not in workers:
            sentence = (
                f"{where}: {edge.target!r} works for its items and is also reached from {edge.source!r}, which does not"
            )
            yield problem("map-entrance", where, sentence, "give that edge an executor of its own")


def _instances(by_id: Mapping[str, Executor], region: Region, where: str) -> Iterator[BuildProblem]:
    for name in sorted(region.inside & by_id.keys()):
        if by_id[name].has_instance_state:
            sentence = f"{where}: {name!r} works for many items at once and cannot have checkpoint hooks"
            yield problem("map-hooks", where, sentence, "keep its state with ctx.set_state")


def _overlap(one: Region, other: Region) -> Iterator[BuildProblem]:
    if one.into == other.into or not one.inside & other.inside:
        return
    if _is_within(one, other) or _is_within(other, one):
        return
    shared = ", ".join(map(repr, sorted(one.inside & other.inside)))
    place = f"maps into {one.into!r} and {other.into!r}"
    action = "let one lie within the other, or give each of them executors of its own"
    yield problem("map-overlap", place, f"{place} share {shared}", action)


def _is_within(inner: Region, outer: Region) -> bool:
    return inner.edge.source in outer.inside and inner.into in outer.inside and inner.inside <= outer.inside


def _ends(edge: Edge) -> tuple[str, str]:
    return edge.source, edge.target
