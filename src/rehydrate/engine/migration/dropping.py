"""An executor that is gone, with all that waits for it.

Whatever is taken away is named by path. A scope that loses something may end, or fill a join, without it; which ones
those are is told, so that the claim gives them a superstep.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from rehydrate.engine.plan import invocation_name, step_key
from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run, delta_of, known_name
from rehydrate.graph.recorded import RecordedGraph
from rehydrate.ids import join_slot, order_key, scope_of
from rehydrate.model.effects import Ask, Effect, Output, Route, Send
from rehydrate.model.records import DoneRecord, JoinRecord, Key, OutboxRecord, ReceiptRecord, Record, StepRecord

from .levels import Level, Ways, graph_of, level_of, where_routes_lead
from .pieces import OF_INVOCATIONS, drop_inbox, scope_key, try_joins_again, with_deliveries


class Dropping:
    """One executor that goes from the scopes of some levels; `what` names what went, `freed` the scopes that lost."""

    def __init__(self, run: Run, root: RecordedGraph, levels: Set[Level], name: str) -> None:
        self.run = run
        self.root = root
        self.levels = levels
        self.name = name
        self.what: list[str] = []
        self.freed: set[str] = set()

    def drop(self) -> list[str]:
        """Take everything of the executor away; returns what that was."""
        for path in [path for path in scopes(self.run) if level_of(path) in self.levels]:
            if self.run.get(*scope_key(path)) is not None:  # it may stand in one that is gone by now
                self._from_scope(path)
        for path in list(scopes(self.run)):
            ways = where_routes_lead(self.root, self.levels, path)
            if any(ways):
                self._routes_of(path, ways)
        return self.what

    def tell(self, path: str, text: str) -> None:
        """Name something that goes from a scope."""
        self.what.append(f"{path}: {text}".lstrip(": "))
        self.freed.add(path)

    def _from_scope(self, path: str) -> None:
        run, name = self.run, self.name
        if any(record.into == name for record in run.table(path, "map").values()):
            where = path or "the root"
            raise ValueError(f"items of a map that ends in {name!r} are at work in {where}; use move_messages first")
        self._deliveries(path)
        for request in sorted(run.table(path, "request"), key=order_key):
            if run.get(path, "request", request).executor == name:
                self.request(path, request)
        for number, held in sorted(run.items(path, "join"), key=lambda item: int(item[0])):
            record: JoinRecord = held
            if name in {record.join, record.source}:
                self.tell(path, f"a message from {record.source!r} that join {record.join!r} held")
                self._put(path, "join", number, None)
                try_joins_again(run, path)
        for failed, failure in run.items(path, "failure"):
            if failure.executor == name:
                self._put(path, "failure", failed, None)
        drop_inbox(run, path, lambda record: record.executor == name, lambda text: self.tell(path, text))
        self._put(path, "instance", name, None)
        graph = graph_of(self.root, level_of(path))
        is_body = graph is not None and graph.kinds.get(name) == "body"
        for segment in sorted(run.table(path, "scope"), key=order_key):
            if is_body or scope_of(segment)[0] == name:
                self.scope(path, segment)
        if is_body:
            self._passes(path)

    def _passes(self, path: str) -> None:
        """Take away what a function has begun, with all that it remembers; what it called is gone by now."""
        for kind in ("pass", "call", "calls", "read"):
            for name in sorted(self.run.table(path, kind), key=order_key):
                if kind == "pass":
                    self.tell(path, f"what {self.name}#{name} remembers")
                self._put(path, kind, name, None)

    def _deliveries(self, path: str) -> None:
        parent, kind, segment = step_key(path)
        step: StepRecord | None = self.run.get(parent, kind, segment)
        if step is None:
            return
        gone = [d for d in step.deliveries if d.executor == self.name]
        for delivery in gone:
            name = invocation_name(delivery.executor, delivery.activation)
            finished = " (finished, not merged)" if self.run.get(path, "done", name) is not None else ""
            self.tell(path, f"{delivery.kind} for {name}{finished}")
            for inner in OF_INVOCATIONS:
                self._put(path, inner, name, None)
        self._put(parent, kind, segment, with_deliveries(step, [d for d in step.deliveries if d not in gone]))

    def request(self, path: str, name: str) -> None:
        """Withdraw an open request."""
        turn = self.run.get("", "turn", "")
        self.tell(path, f"request {name}")
        self._put("", "receipt", known_name(self.run, path, name), ReceiptRecord("cancelled", turn.number))
        self._put(path, "request", name, None)
        self._put(path, "alias", name, None)

    def scope(self, path: str, segment: str) -> None:
        """Take a running sub-workflow away, with all below it."""
        child = join_slot(path, segment)
        for inside in list(scopes(self.run, child)):
            for request in sorted(self.run.table(inside, "request"), key=order_key):
                self.request(inside, request)
            self.freed.discard(inside)
        self.tell(path, f"running sub-workflow {segment}")
        delta: dict[Key, Record | None] = {(path, kind, segment): None for kind in ("scope", "step", "rest")}
        for key, _ in self.run.records():
            if key[0] == child or key[0].startswith(child + "/"):
                delta[key] = None
        self.run.apply(delta_of(delta))

    def _routes_of(self, path: str, ways: Ways) -> None:
        """Take the executor out of where messages are on their way to."""
        for kind in ("done", "unrouted"):
            for name, record in self.run.items(path, kind):
                done: DoneRecord = record
                effects = tuple(e for e in (self._effect(path, e, ways) for e in done.effects) if e is not None)
                self._put(path, kind, name, msgspec.structs.replace(done, effects=effects))
        for name, record in self.run.items(path, "outbox"):
            item: OutboxRecord = record
            if not (ways.above if item.request else ways.beyond):
                continue
            routes = self._left(path, item.routes)
            gone = bool(item.routes) and not routes
            self._put(path, "outbox", name, None if gone else msgspec.structs.replace(item, routes=routes))

    def _effect(self, path: str, effect: Effect, ways: Ways) -> Effect | None:
        if not isinstance(effect, Send | Output | Ask) or not ways.of(effect) or not effect.routes:
            return effect
        routes = self._left(path, effect.routes)
        # A request that nobody above gets stays open for the outside.
        return msgspec.structs.replace(effect, routes=routes) if routes or isinstance(effect, Ask) else None

    def _left(self, path: str, routes: tuple[Route, ...]) -> tuple[Route, ...]:
        left = tuple(route for route in routes if route.target != self.name)
        if len(left) < len(routes):
            self.tell(path, f"a message on its way to {self.name}")
        return left

    def _put(self, path: str, kind: str, name: str, record: Record | None) -> None:
        self.run.apply(delta_of({(path, kind, name): record}))
