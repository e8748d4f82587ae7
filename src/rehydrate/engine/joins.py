"""Joins: one queue per source and trail, and the rule by which they fire.

A join fires when every source has delivered, or when some have and none of the others can any more. Nothing here knows
where messages come from or what they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, TypeAlias

from rehydrate.graph.definition import Definition, Join
from rehydrate.model.effects import Failure
from rehydrate.model.records import FailureRecord, JoinRecord, Trail
from rehydrate.model.sealed import Listed

from .change import Change
from .standing import Standing, open_maps, standing_in
from .steps import Arrival

#: The held messages of one join and trail: names of the records by source, oldest first.
Queues: TypeAlias = dict[str, list[str]]
Group: TypeAlias = tuple[str, Trail]
_NOWHERE: Final[frozenset[str]] = frozenset()


def fire_joins(change: Change, path: str, graph: Definition, arrivals: list[Arrival]) -> None:
    """Fire every join of a scope that can fire at this barrier, adding what it hands over to `arrivals`."""
    if not graph.joins:
        return
    held: dict[str, JoinRecord] = dict(change.draft.items(path, "join"))
    if not held:
        return
    groups = _groups(graph, held)
    fired: list[tuple[Group, list[str]]] = []
    for group, queues in groups.items():
        sources = graph.joins[group[0]].sources
        while all(queues.get(source) for source in sources):
            fired.append((group, [queues[source].pop(0) for source in sources]))
    _hand_over(change, path, held, fired, arrivals)
    half = {group: queues for group, queues in groups.items() if any(queues.values())}
    if not half:
        return
    standing = _by_trail([*standing_in(change, path, arrivals), *open_maps(change, path)])
    waiting = _by_trail(half)
    late: list[tuple[Group, list[str]]] = []
    for group, queues in half.items():
        join, trail = group
        here = standing.get(trail, _NOWHERE) | (waiting.get(trail, _NOWHERE) - {join})
        if _can_grow(graph.joins[join], queues, here):
            continue
        while any(queues.values()):
            late.append((group, [queues[s].pop(0) for s in graph.joins[group[0]].sources if queues.get(s)]))
    _hand_over(change, path, held, late, arrivals)


def _groups(graph: Definition, held: dict[str, JoinRecord]) -> dict[Group, Queues]:
    found: dict[Group, Queues] = {}
    for name, record in sorted(held.items(), key=lambda item: item[1].number):
        found.setdefault((record.join, record.trail), {}).setdefault(record.source, []).append(name)
    return dict(sorted(found.items(), key=lambda item: (graph.position[item[0][0]], item[0][1])))


def _hand_over(
    change: Change,
    path: str,
    held: dict[str, JoinRecord],
    fired: list[tuple[Group, list[str]]],
    arrivals: list[Arrival],
) -> None:
    for (join, trail), names in fired:
        arrivals.append(Arrival(join, Listed(tuple(held[name].payload for name in names)), trail, "list"))
        for name in names:
            change.draft.remove(path, "join", name)


def _by_trail(standing: Iterable[Standing]) -> dict[Trail, set[str]]:
    """Return the executors at which something of a trail, or of one that extends it, stands."""
    found: dict[Trail, set[str]] = {}
    for executor, trail in standing:
        for depth in range(1, len(trail) + 1):
            found.setdefault(trail[:depth], set()).add(executor)
    return found


def _can_grow(join: Join, queues: Queues, here: Set[str]) -> bool:
    """Tell whether a source that has not delivered still can: something of this trail stands above it."""
    return any(not queues.get(source) and not join.upstream[source].isdisjoint(here) for source in join.sources)


def deadlocked(change: Change, path: str, graph: Definition) -> bool:
    """Put a failure where nothing moves in a scope and half-filled joins wait for nothing but each other."""
    draft = change.draft
    held: dict[str, JoinRecord] = dict(draft.items(path, "join"))
    if not held:
        return False
    half = _groups(graph, held)
    joins = sorted({join for join, _ in _hopeless(graph, half, standing_in(change, path, ()))})
    if not joins:
        return False
    text = f"joins {', '.join(map(repr, joins))} wait for each other"
    failure = Failure("deadlock", "JoinDeadlockError", text, facts=tuple(joins))
    draft.put(path, "failure", joins[0], FailureRecord(failure, joins[0]))
    return True


def _hopeless(graph: Definition, half: Mapping[Group, Queues], standing: list[Standing]) -> list[Group]:
    """Return the half-filled joins that nothing can fill: neither what stands in the scope nor a join that it fills."""
    alive: list[Group] = []
    rest = list(half)
    while True:
        here = _by_trail([*standing, *alive])
        found = [
            (join, trail)
            for join, trail in rest
            if _can_grow(graph.joins[join], half[join, trail], here.get(trail, _NOWHERE))
        ]
        if not found:
            return rest
        alive += found
        rest = [group for group in rest if group not in found]


def end_deadlock(change: Change, path: str) -> None:
    """Let a scope whose joins wait for each other go on: something has come that may fill one."""
    for name, record in change.draft.items(path, "failure"):
        if record.failure.kind == "deadlock":
            change.draft.remove(path, "failure", name)
