"""What a builder has collected: a graph as it was described, right or wrong.

Frozen data. Judging it is the work of `validation.py`, making a definition of it that of `assembly.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, assert_never

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import (
    DirectGroup,
    Edge,
    EdgeGroup,
    FanInGroup,
    FanOutGroup,
    MapGroup,
    MultiSelectionGroup,
    SwitchGroup,
)
from rehydrate.graph.executor import Executor
from rehydrate.graph.migration import Migration

EdgeKind: TypeAlias = Literal["edge", "fan-out", "switch", "selection", "join", "map"]


@dataclass(frozen=True, eq=False)
class GraphSpec:
    """A graph before validation. Groups have at least one edge; edges have no number yet, those of joins are marked.

    `executors` are distinct objects, `start` and the ends of edges are ids that may be unknown. A switch group with
    more edges than cases has that many defaults. `problems` are those that the builder met itself.
    """

    name: str
    start: str
    executors: tuple[Executor, ...]
    groups: tuple[EdgeGroup, ...] = ()
    version: int = 1
    reducers: Mapping[str, Reducer] = field(default_factory=dict[str, Reducer])
    resources: Mapping[str, type] = field(default_factory=dict[str, type])
    max_supersteps: int = 100
    max_concurrency: int | None = None
    problems: tuple[BuildProblem, ...] = ()
    migrations: Mapping[int, Migration] = field(default_factory=dict[int, Migration])

    @cached_property
    def by_id(self) -> Mapping[str, Executor]:
        """The executors; of several with one id the first."""
        return {executor.id: executor for executor in reversed(self.executors)}

    @cached_property
    def leaving(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges that leave each executor, those of groups in the order of building."""
        found: dict[str, list[Edge]] = {}
        for group in self.groups:
            for edge in edges_of(group):
                found.setdefault(edge.source, []).append(edge)
        return {source: tuple(edges) for source, edges in found.items()}


def unnumbered(source: str, target: str, *, fan_in: bool = False) -> Edge:
    """Return an edge that has no number yet."""
    return Edge(-1, source, target, fan_in)


def edges_of(group: EdgeGroup) -> tuple[Edge, ...]:
    """Return the edges of a group."""
    return (group.edge,) if isinstance(group, DirectGroup | MapGroup) else group.edges


def kind_of(group: EdgeGroup) -> EdgeKind:
    """Return the word for a kind of group."""
    match group:
        case DirectGroup():
            return "edge"
        case FanOutGroup():
            return "fan-out"
        case SwitchGroup():
            return "switch"
        case MultiSelectionGroup():
            return "selection"
        case FanInGroup():
            return "join"
        case MapGroup():
            return "map"
        case _:
            assert_never(group)


def names_in(group: EdgeGroup) -> tuple[str | None, ...]:
    """Return the names of a group's conditions: one for a direct edge or a selection, one per case for a switch."""
    match group:
        case DirectGroup() | MultiSelectionGroup():
            return (group.name,)
        case SwitchGroup():
            return (*group.names, *(None for _ in group.cases[len(group.names) :]))
        case FanOutGroup() | FanInGroup() | MapGroup():
            return ()
        case _:
            assert_never(group)


def deciding_in(group: EdgeGroup) -> tuple[object, ...]:
    """Return the functions that decide where a group sends: conditions, cases, a selection; as the builder got them."""
    match group:
        case DirectGroup():
            return () if group.condition is None else (group.condition,)
        case SwitchGroup():
            return group.cases
        case MultiSelectionGroup():
            return (group.selection,)
        case FanOutGroup() | FanInGroup() | MapGroup():
            return ()
        case _:
            assert_never(group)


def with_edges(group: EdgeGroup, edges: tuple[Edge, ...]) -> EdgeGroup:
    """Return the group with other edges."""
    match group:
        case DirectGroup():
            return DirectGroup(edges[0], group.condition, group.name)
        case FanOutGroup():
            return FanOutGroup(edges)
        case SwitchGroup():
            return SwitchGroup(group.cases, edges, group.names)
        case MultiSelectionGroup():
            return MultiSelectionGroup(edges, group.selection, group.name)
        case FanInGroup():
            return FanInGroup(edges)
        case MapGroup():
            return MapGroup(edges[0])
        case _:
            assert_never(group)
