"""From a validated graph spec to a definition: canonical order, numbered edges, joins, children.

The same graph gives the same numbers, in whatever order it was built. Must be given a spec without problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from rehydrate.graph.annotations import Annotations, UnresolvedError
from rehydrate.graph.definition import Definition, Join, Reducer
from rehydrate.graph.edges import Edge, EdgeGroup, FanInGroup, FanOutGroup, MapGroup
from rehydrate.graph.graph_spec import GraphSpec, edges_of, kind_of, names_in, with_edges
from rehydrate.graph.hint_problems import problem_of
from rehydrate.graph.hints import Hint, is_anything, plain
from rehydrate.graph.signature import signature_text
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import distinct, stored_by

GroupKey: TypeAlias = tuple[str, str, tuple[str, ...], tuple[str, ...]]
_KINDS: Final = ("edge", "fan-out", "switch", "selection", "join", "map")


def assemble(spec: GraphSpec, type_name: Callable[[type], str]) -> Definition:
    """Return the definition of a spec in which `validation.problems` finds none; `type_name` names types for good."""
    order = canonical_order(spec)
    groups = numbered_groups(spec.groups, order)
    edges = tuple(edge for group in groups for edge in edges_of(group))
    executors = {name: spec.by_id[name] for name in order}
    definition = Definition(
        name=spec.name,
        version=spec.version,
        start=spec.start,
        executors=MappingProxyType(executors),
        order=order,
        edges=edges,
        outgoing=MappingProxyType(_outgoing(groups, order)),
        joins=MappingProxyType(_joins(groups, edges)),
        children=MappingProxyType(
            {name: node.definition for name, node in executors.items() if isinstance(node, WorkflowExecutor)}
        ),
        reducers=MappingProxyType(dict(spec.reducers)),
        resources=MappingProxyType(dict(spec.resources)),
        max_supersteps=spec.max_supersteps,
        max_concurrency=spec.max_concurrency,
        signature="",
        hints=stored_hints(spec, order),
        nesting=MappingProxyType(
            {name: node.nesting for name, node in executors.items() if isinstance(node, WorkflowExecutor)}
        ),
        migrations=MappingProxyType(dict(spec.migrations)),
    )
    return replace(definition, signature=signature_text(definition, type_name))


def canonical_order(spec: GraphSpec) -> tuple[str, ...]:
    """Return the executors that can be reached, by distance from the start, then by id."""
    return order_from(spec.start, spec.leaving, spec.by_id.keys())


def order_from(start: str, leaving: Mapping[str, Sequence[Edge]], known: Set[str]) -> tuple[str, ...]:
    """Return what can be reached from `start`, by distance, then by id."""
    order = [start]
    seen = {start}
    ring = [start]
    while ring:
        ahead = {edge.target for source in ring for edge in leaving.get(source, ())} & known
        ring = sorted(ahead - seen)
        seen.update(ring)
        order += ring
    return tuple(order)


def numbered_groups(groups: Sequence[EdgeGroup], order: Sequence[str]) -> list[EdgeGroup]:
    """Return the groups in their canonical order, their edges numbered."""
    return _numbered(_sorted(groups, order))


def group_key(group: EdgeGroup) -> GroupKey:
    """Return what tells a group from others: kind, the end that is one, the other ends, names of conditions.

    Targets of a fan-out count as a set, sources of a join and targets of the other kinds in their order.
    """
    edges = edges_of(group)
    if isinstance(group, FanInGroup):
        return kind_of(group), edges[0].target, tuple(edge.source for edge in edges), ()
    targets = [edge.target for edge in edges]
    if isinstance(group, MapGroup):
        targets.append(group.edge.into or "")
    others = sorted(targets) if isinstance(group, FanOutGroup) else targets
    return kind_of(group), edges[0].source, tuple(others), tuple(name or "" for name in names_in(group))


def stored_hints(spec: GraphSpec, order: Sequence[str]) -> tuple[Hint, ...]:
    """Return the types of everything storable in the tree, as far as declared."""
    found = [hint for name in order for hint in stored_by(spec.by_id[name])]
    for _, reducer in sorted(spec.reducers.items()):
        found += _reduced(reducer)
    return distinct(found)


def _reduced(reducer: Reducer) -> Iterator[Hint]:
    """Give the types that a reducer's annotations show; they are a help, so those that cannot be read are left out."""
    if reducer.function is None:
        return
    annotations = Annotations(reducer.function, None, {})
    for name in annotations.names:
        try:
            hint = annotations.of(name)
        except UnresolvedError:
            continue
        if not is_anything(plain(hint)) and not problem_of(hint):
            yield hint


def _sorted(groups: Sequence[EdgeGroup], order: Sequence[str]) -> list[EdgeGroup]:
    position = {name: index for index, name in enumerate(order)}

    def place(group: EdgeGroup) -> tuple[int, int, tuple[int, ...], tuple[str, ...]]:
        kind, one, others, names = group_key(group)
        return _KINDS.index(kind), position[one], tuple(position[name] for name in others), names

    return sorted(groups, key=place)


def _numbered(groups: Sequence[EdgeGroup]) -> list[EdgeGroup]:
    found: list[EdgeGroup] = []
    index = 0
    for group in groups:
        edges = edges_of(group)
        if isinstance(group, FanOutGroup):
            edges = tuple(sorted(edges, key=lambda edge: edge.target))
        joins = isinstance(group, FanInGroup)
        numbered = [
            replace(edge, index=number, fan_in=joins, forward_when="finished" if joins else edge.forward_when)
            for number, edge in enumerate(edges, index)
        ]
        found.append(with_edges(group, tuple(numbered)))
        index += len(numbered)
    return found


def _outgoing(groups: Sequence[EdgeGroup], order: Sequence[str]) -> dict[str, tuple[EdgeGroup, ...]]:
    found: dict[str, list[EdgeGroup]] = {name: [] for name in order}
    for group in groups:
        for source in dict.fromkeys(edge.source for edge in edges_of(group)):
            found[source].append(group)
    return {name: tuple(leaving) for name, leaving in found.items()}


def _joins(groups: Sequence[EdgeGroup], edges: Sequence[Edge]) -> dict[str, Join]:
    back: dict[str, list[str]] = {}
    for edge in edges:
        back.setdefault(edge.target, []).append(edge.source)
    found: dict[str, Join] = {}
    for group in groups:
        if isinstance(group, FanInGroup):
            target = group.edges[0].target
            sources = tuple(edge.source for edge in group.edges)
            upstream = {source: _upstream(source, target, back) for source in sources}
            found[target] = Join(target, sources, MappingProxyType(upstream))
    return found


def _upstream(source: str, join: str, back: dict[str, list[str]]) -> frozenset[str]:
    """Return the executors from which `source` can be reached without passing `join`, itself included."""
    seen = {source}
    waiting = [source]
    while waiting:
        for name in back.get(waiting.pop(), ()):
            if name != join and name not in seen:
                seen.add(name)
                waiting.append(name)
    return frozenset(seen)
