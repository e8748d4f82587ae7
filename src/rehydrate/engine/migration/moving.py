"""Messages that another executor gets: those that wait, those on their way, and those that a join holds.

What was begun is not moved: a finished invocation, a running sub-workflow, an answer, which goes to who asked.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from rehydrate.engine.plan import invocation_name, step_key
from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run, delta_of
from rehydrate.graph.recorded import RecordedGraph
from rehydrate.model.effects import Ask, Effect, Output, Route, Send
from rehydrate.model.records import Delivery, InboxRecord, Key, Record, StepRecord

from .levels import Level, Ways, level_of, where_routes_lead
from .pieces import OF_INVOCATIONS, try_joins_again, was_taken, with_deliveries


def move_messages(run: Run, root: RecordedGraph, levels: Set[Level], source: str, target: str) -> int:
    """Let `target` have the messages that wait for `source`; they come in from outside in the next superstep."""
    moved = 0
    for path in scopes(run):
        if level_of(path) in levels:
            moved += _move_in(run, path, source, target)
        where = where_routes_lead(root, levels, path)
        if any(where):
            moved += _turn_routes(run, path, source, target, where)
    return moved


def _move_in(run: Run, path: str, source: str, target: str) -> int:
    moved = 0
    parent, kind, segment = step_key(path)
    step: StepRecord | None = run.get(parent, kind, segment)
    delta: dict[Key, Record | None] = {}
    if step is not None:
        moving = [d for d in step.deliveries if d.executor == source and _waits(run, path, d)]
        number = len(run.table(path, "inbox"))
        for delivery in moving:
            name = invocation_name(delivery.executor, delivery.activation)
            delta.update({(path, inner, name): None for inner in OF_INVOCATIONS})
            payload = step.payloads[delivery.payload]
            delta[path, "inbox", str(number)] = InboxRecord(
                delivery.kind, target, payload, delivery.trail, delivery.name, delivery.handler
            )
            number += 1
        delta[parent, kind, segment] = with_deliveries(step, [d for d in step.deliveries if d not in moving])
        moved += len(moving)
    for name, record in run.items(path, "inbox"):
        if record.executor == source and record.kind != "answer":
            delta[path, "inbox", name] = msgspec.structs.replace(record, executor=target)
            moved += 1
    for name, record in run.items(path, "join"):
        if record.join == source:
            delta[path, "join", name] = msgspec.structs.replace(record, join=target)
            moved += 1
            try_joins_again(run, path)
    for name, record in run.items(path, "map"):
        if record.into == source:
            delta[path, "map", name] = msgspec.structs.replace(record, into=target)
            moved += 1
    run.apply(delta_of(delta))
    return moved


def _waits(run: Run, path: str, delivery: Delivery) -> bool:
    """Tell whether a message was neither handled nor has a scope of its own; answers go to who asked."""
    name = invocation_name(delivery.executor, delivery.activation)
    begun = any(run.get(path, kind, name) is not None for kind in ("done", "unrouted"))
    return delivery.kind != "answer" and not begun and not was_taken(run, path, delivery)


def _turn_routes(run: Run, path: str, source: str, target: str, where: Ways) -> int:
    moved = 0
    delta: dict[Key, Record | None] = {}

    def turned(routes: tuple[Route, ...] | None) -> tuple[Route, ...] | None:
        nonlocal moved
        if routes is None or all(route.target != source for route in routes):
            return routes
        moved += sum(route.target == source for route in routes)
        return tuple(Route(r.edge, target) if r.target == source else r for r in routes)

    for kind in ("done", "unrouted"):
        for name, record in run.items(path, kind):
            effects: list[Effect] = []
            for effect in record.effects:
                if isinstance(effect, Send | Output | Ask) and where.of(effect):
                    effects.append(msgspec.structs.replace(effect, routes=turned(effect.routes)))
                else:
                    effects.append(effect)
            delta[path, kind, name] = msgspec.structs.replace(record, effects=tuple(effects))
    for name, record in run.items(path, "outbox"):
        if where.above if record.request else where.beyond:
            delta[path, "outbox", name] = msgspec.structs.replace(record, routes=turned(record.routes))
    run.apply(delta_of(delta))
    return moved
