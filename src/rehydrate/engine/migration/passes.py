"""Passes of functions in a stored run: let begin again from their message, or known by less of their arguments.

What a pass loses is named by path, as for an executor that goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from rehydrate.engine.passes import pass_number
from rehydrate.engine.plan import invocation_name, step_key
from rehydrate.engine.run import Run, delta_of
from rehydrate.ids import ancestors, order_key
from rehydrate.model.effects import Ask, Effect, Pause
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord
from rehydrate.model.records import (
    Delivery,
    DoneRecord,
    InboxRecord,
    Key,
    Record,
    RequestRecord,
    ScopeRecord,
    StepRecord,
    Trail,
)
from rehydrate.model.sealed import Payload

from .dropping import Dropping
from .levels import graph_of, level_of
from .pieces import OF_INVOCATIONS, drop_inbox, scope_key, with_deliveries

#: Kinds of calls that are compared by what they were given.
_WITH_ARGUMENTS = frozenset({"step", "question", "workflow"})


def restart_passes(dropping: Dropping, path: str) -> None:
    """Let the passes of a scope that have not ended begin again, with another number, in the next superstep."""
    run = dropping.run
    for name, found in sorted(run.items(path, "pass"), key=lambda item: int(item[0])):
        record: PassRecord = found
        step: StepRecord | None = run.get(*step_key(path))
        delivery = _delivery(step, int(name))
        if delivery is not None and step is not None:
            done: DoneRecord | None = run.get(path, "done", invocation_name(delivery.executor, delivery.activation))
            if done is not None and not any(isinstance(effect, Pause) for effect in done.effects):
                continue  # it has returned, or begins anew with nothing remembered
        payload = record.payload
        if payload is None and step is not None and delivery is not None:
            payload = step.payloads[delivery.payload]
        if payload is not None:
            _restart(dropping, path, name, payload, record.trail)


def _delivery(step: StepRecord | None, number: int) -> Delivery | None:
    found = (delivery for delivery in step.deliveries if pass_number(delivery) == number) if step else ()
    return next(iter(found), None)


def _restart(dropping: Dropping, path: str, name: str, payload: Payload, trail: Trail) -> None:
    run = dropping.run
    number = int(name)
    graph = graph_of(dropping.root, level_of(path))
    body = graph.start if graph is not None else ""
    dropping.tell(path, f"pass {name}")
    for request in sorted(run.table(path, "request"), key=order_key):
        record: RequestRecord = run.get(path, "request", request)
        if record.activation == number:
            dropping.request(path, request)
    for segment in sorted(run.table(path, "scope"), key=order_key):
        called: ScopeRecord = run.get(path, "scope", segment)
        if called.call.startswith(f"{name}:"):
            dropping.scope(path, segment)
    delta: dict[Key, Record | None] = {(path, "pass", name): None}
    for kind in ("call", "calls", "read"):
        delta.update({(path, kind, at): None for at in run.table(path, kind) if at.startswith(f"{name}:")})
    parent, kind, segment = step_key(path)
    step: StepRecord | None = run.get(parent, kind, segment)
    delivery = _delivery(step, number)
    if step is not None and delivery is not None:
        invocation = invocation_name(delivery.executor, delivery.activation)
        delta.update({(path, inner, invocation): None for inner in OF_INVOCATIONS})
        delta[parent, kind, segment] = with_deliveries(step, [d for d in step.deliveries if d is not delivery])
    run.apply(delta_of(delta))
    drop_inbox(run, path, lambda item: item.kind == "pass" and item.name == name, lambda _: None)
    for above in (*ancestors(path), path):
        _begin_superstep(run, above)
    waiting = str(len(run.table(path, "inbox")))
    run.apply(delta_of({(path, "inbox", waiting): InboxRecord("message", body, payload, trail)}))


def _begin_superstep(run: Run, path: str) -> None:
    """Give a scope at rest a superstep without messages, at whose end it takes what waits for it."""
    parent, kind, segment = step_key(path)
    if run.get(parent, kind, segment) is not None:
        return
    scope: ScopeRecord = run.get(*scope_key(path))
    superstep = scope.superstep + 1
    run.apply(
        delta_of(
            {
                scope_key(path): msgspec.structs.replace(scope, superstep=superstep),
                (parent, kind, segment): StepRecord(superstep),
                (parent, "rest", segment): None,
            }
        )
    )


def with_type_names(record: Record, old: str, new: str) -> Record:
    """Return a record as it is after a type has another name or other fields.

    The arguments of calls are not stored, only what they hash to; so calls are compared by place and name from then on.
    """
    match record:
        case CallRecord():
            return _call(record, old, new)
        case CallsRecord():
            return CallsRecord({name: _call(call, old, new) for name, call in record.calls.items()})
        case RequestRecord():
            return msgspec.structs.replace(record, response_type=_named(record.response_type, old, new))
        case DoneRecord() if any(isinstance(effect, Ask) for effect in record.effects):
            return msgspec.structs.replace(record, effects=tuple(_effects(record, old, new)))
        case _:
            return record


def _effects(record: DoneRecord, old: str, new: str) -> Iterator[Effect]:
    for effect in record.effects:
        if isinstance(effect, Ask):
            yield msgspec.structs.replace(effect, response_type=_named(effect.response_type, old, new))
        else:
            yield effect


def _call(call: CallRecord, old: str, new: str) -> CallRecord:
    if call.kind not in _WITH_ARGUMENTS:
        return call
    name = _named(call.name, old, new) if call.kind == "question" else call.name
    return msgspec.structs.replace(call, name=name, digest=b"")


def _named(text: str, old: str, new: str) -> str:
    """Return the text of a type with a name in it changed."""
    named = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", lambda _: new, text)
    return named if "[" in named else " | ".join(sorted(named.split(" | ")))  # members of a union are in order
