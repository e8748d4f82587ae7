"""Routes: numbers of edges in records, from those of the graph that a run was stored with to those of today.

A message goes where it was decided to go. Only where a sub-workflow's outputs have become messages is a route still to
be decided, which the caller does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run, delta_of
from rehydrate.graph.definition import Definition
from rehydrate.graph.recorded import RecordedEdge, RecordedGraph, recorded_edge
from rehydrate.ids import scope_of, slot
from rehydrate.model.effects import Ask, Effect, Output, Route, Routes, Send
from rehydrate.model.records import DoneRecord, Key, OutboxRecord, Record
from rehydrate.model.sealed import Payload

from .homes import definition_at
from .levels import Level, graph_of, interceptor_of, level_of, outlet_of

#: Gives the routes of a value that leaves the sub-workflow of an executor: (path of the scope around it, executor).
Decide: TypeAlias = Callable[[str, str, Payload], tuple[Route, ...]]
Outlet: TypeAlias = tuple[str, str]


class Rerouting:
    """All routes of a run, translated; `lost` names messages whose way is not there.

    `declined` names outputs that every condition had declined, and that nothing would drop any more: they are dropped.
    """

    def __init__(self, run: Run, root: RecordedGraph, graph: Definition, decide: Decide) -> None:
        self.run = run
        self.root = root
        self.graph = graph
        self.decide = decide
        self.lost: list[str] = []
        self.declined: list[str] = []
        self._numbers: dict[Level, dict[RecordedEdge, int]] = {}

    def apply(self) -> None:
        """Translate every route of the run."""
        delta: dict[Key, Record | None] = {}
        for path in scopes(self.run):
            for kind in ("done", "unrouted"):
                for name, record in self.run.items(path, kind):
                    done: DoneRecord = record
                    effects = [self._effect(path, effect) for effect in done.effects]
                    left = tuple(effect for effect in effects if effect is not None)
                    delta[path, kind, name] = msgspec.structs.replace(done, effects=left)
            for name, record in self.run.items(path, "outbox"):
                item: OutboxRecord = record
                if item.request:
                    routes = self._asking(path, item.routes) or ()
                    delta[path, "outbox", name] = msgspec.structs.replace(item, routes=routes) if routes else None
                    continue
                if self._is_declined(path, item.routes):
                    delta[path, "outbox", name] = None
                    continue
                routes = self._leaving(path, item.value, item.routes)
                delta[path, "outbox", name] = msgspec.structs.replace(item, routes=routes or ())
        self.run.apply(delta_of(delta))

    def _is_declined(self, path: str, routes: Routes) -> bool:
        """Tell of an output that was to be dropped at a barrier where no message of it is made now."""
        before = outlet_of(self.root, path)
        if routes != () or before is None or before == outlet_now(self.graph, path):
            return False
        self.declined.append(_line(path, "an output that every condition had declined"))
        return True

    def _effect(self, path: str, effect: Effect) -> Effect | None:
        if isinstance(effect, Send):
            return msgspec.structs.replace(effect, routes=self._translated(path, path, effect.routes))
        if isinstance(effect, Ask):
            return msgspec.structs.replace(effect, routes=self._asking(path, effect.routes))
        if isinstance(effect, Output):
            if self._is_declined(path, effect.routes):
                return None
            return msgspec.structs.replace(effect, routes=self._leaving(path, effect.value, effect.routes))
        return effect

    def _asking(self, path: str, routes: Routes) -> Routes:
        """Return the routes of an intercepted request; where none leads on, it is for the outside to answer."""
        before, now = interceptor_of(self.root, path), interceptor_now(self.graph, path)
        return self._translated(path, now[0], routes) if now is not None and before == now else ()

    def _leaving(self, path: str, value: Payload, routes: Routes) -> Routes:
        """Return the routes of a value that a scope yields."""
        before, now = outlet_of(self.root, path), outlet_now(self.graph, path)
        if routes is None:
            return None
        if before == now:
            return routes if now is None else self._translated(path, now[0], routes)
        if before is None and now is not None:
            return self.decide(*now, value)
        if routes:
            self.lost.append(_line(path, f"an output waits to go to {routes[0].target!r}, and no edge leads there now"))
        return ()

    def _translated(self, path: str, at: str, routes: Routes) -> Routes:
        """Return routes along the edges of the scope `at`, for what comes from the scope `path`."""
        recorded = graph_of(self.root, level_of(at))
        if routes is None or recorded is None:
            return routes
        numbers = self._numbers_at(at)
        found: list[Route] = []
        for route in routes:
            edge = recorded.edges[route.edge] if 0 <= route.edge < len(recorded.edges) else None
            number = numbers.get(edge._replace(target=route.target)) if edge is not None else None
            if number is None:
                source = repr(edge.source) if edge is not None else "an executor"
                self.lost.append(
                    _line(path, f"a message of {source} waits to go to {route.target!r}, and no such edge is there")
                )
            else:
                found.append(Route(number, route.target))
        return tuple(found)

    def _numbers_at(self, at: str) -> dict[RecordedEdge, int]:
        level = level_of(at)
        found = self._numbers.get(level)
        if found is None:
            definition = definition_at(self.graph, at)
            edges = definition.edges if definition is not None else ()
            found = {recorded_edge(edge): edge.index for edge in reversed(edges)}
            self._numbers[level] = found
        return found


def outlet_now(graph: Definition, path: str) -> Outlet | None:
    """Return scope and executor at which what a scope yields becomes a message in today's graph."""
    for parent, executor in _around(path):
        definition = definition_at(graph, parent)
        if definition is not None and executor in definition.forwards_messages:
            return parent, executor
    return None


def interceptor_now(graph: Definition, path: str) -> Outlet | None:
    """Return scope and executor at which the requests of a scope are intercepted in today's graph."""
    for parent, executor in _around(path):
        definition = definition_at(graph, parent)
        nesting = definition.nesting.get(executor) if definition is not None else None
        if nesting is not None and nesting.intercepts:
            return parent, executor
    return None


def _around(path: str) -> Iterator[Outlet]:
    while path:
        parent, segment = slot(path)
        yield parent, scope_of(segment)[0]
        path = parent


def _line(path: str, text: str) -> str:
    return f"{path or 'the root'}: {text}"
