"""Levels: which scopes run which workflow of the tree, by executor ids without numbers.

A level is the ids on the way to a sub-workflow; every execution of it is a scope of that level. Reads only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Final, NamedTuple, TypeAlias

from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run
from rehydrate.graph.recorded import RecordedGraph
from rehydrate.ids import scope_of, slot
from rehydrate.model.effects import Ask, Output, Send

Level: TypeAlias = tuple[str, ...]
#: The number in a pattern that stands for all.
ALL: Final = "*"


def level_of(path: str) -> Level:
    """Return the level of a scope."""
    return tuple(scope_of(segment)[0] for segment in path.split("/")) if path else ()


def shown(level: Level) -> str:
    """Return a level as text."""
    return "/".join(level)


def graph_of(root: RecordedGraph, level: Level) -> RecordedGraph | None:
    """Return the recorded workflow of a level."""
    found: RecordedGraph | None = root
    for name in level:
        found = found.children.get(name) if found is not None else None
    return found


def pattern_of(at: str) -> list[tuple[str, str]]:
    """Return a pattern's segments as (executor id, number or `ALL`). Raises `ValueError` for another form."""
    found: list[tuple[str, str]] = []
    for segment in at.split("/") if at else ():
        name, sign, number = segment.rpartition("#")
        if not sign or not name or not (number == ALL or number.isdecimal()):
            raise ValueError(f"at={at!r} has the part {segment!r}; write 'executor#*' or 'executor#2'")
        found.append((name, number))
    return found


def scopes_at(run: Run, homes: Iterable[Level], pattern: list[tuple[str, str]]) -> list[str]:
    """Return the live scopes that a pattern means from the given levels down."""
    levels = {(*home, *(name for name, _ in pattern)): len(home) for home in homes}
    found: list[str] = []
    for path in scopes(run):
        depth = levels.get(level_of(path))
        if depth is None:
            continue
        numbers = [segment.rpartition("#")[2] for segment in path.split("/")[depth:]] if pattern else []
        if all(wanted in {ALL, number} for (_, wanted), number in zip(pattern, numbers, strict=True)):
            found.append(path)
    return found


def outlet_of(root: RecordedGraph, path: str) -> tuple[str, str] | None:
    """Return scope and executor at which what a scope yields becomes a message; `None` where it is an output."""
    return _first_above(root, path, RecordedGraph.forwards)


def interceptor_of(root: RecordedGraph, path: str) -> tuple[str, str] | None:
    """Return scope and executor at which the requests of a scope were intercepted; `None` where they were not."""
    return _first_above(root, path, RecordedGraph.intercepts)


def _first_above(root: RecordedGraph, path: str, does: Callable[[RecordedGraph, str], bool]) -> tuple[str, str] | None:
    while path:
        parent, segment = slot(path)
        executor = scope_of(segment)[0]
        graph = graph_of(root, level_of(parent))
        if graph is not None and does(graph, executor):
            return parent, executor
        path = parent
    return None


class Ways(NamedTuple):
    """Whether routes in the records of a scope lead to executors of some levels: those of messages, of outputs, and of
    intercepted requests."""

    here: bool
    beyond: bool
    above: bool

    def of(self, effect: Send | Output | Ask) -> bool:
        """Tell it of an effect."""
        if isinstance(effect, Send):
            return self.here
        return self.beyond if isinstance(effect, Output) else self.above


def where_routes_lead(root: RecordedGraph, levels: Set[Level], path: str) -> Ways:
    """Tell which routes in the records of a scope lead to executors of some levels."""
    outlet, asked = outlet_of(root, path), interceptor_of(root, path)
    return Ways(
        level_of(path) in levels,
        outlet is not None and level_of(outlet[0]) in levels,
        asked is not None and level_of(asked[0]) in levels,
    )
