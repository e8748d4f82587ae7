"""Small changes to the records of a scope that every migration needs.

Must keep what the engine counts on: an inbox is numbered without a gap, every delivery has its payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from rehydrate.engine.plan import invocation_name
from rehydrate.engine.run import Run, delta_of
from rehydrate.ids import slot
from rehydrate.model.records import Delivery, InboxRecord, Key, Record, ScopeRecord, StepRecord
from rehydrate.model.sealed import Payload

#: Kinds of which an invocation has one record by its name.
OF_INVOCATIONS: Final = ("done", "unrouted", "failure", "attempt", "alias")


def drop_inbox(run: Run, path: str, goes: Callable[[InboxRecord], bool], tell: Callable[[str], None]) -> None:
    """Take records out of a scope's inbox; the rest is numbered anew, for the numbers have no gap."""
    left: list[InboxRecord] = []
    delta: dict[Key, Record | None] = {}
    for name, record in sorted(run.items(path, "inbox"), key=lambda item: int(item[0])):
        delta[path, "inbox", name] = None
        if goes(record):
            tell(f"{record.kind} from outside for {record.executor}")
        else:
            left.append(record)
    delta.update({(path, "inbox", str(number)): record for number, record in enumerate(left)})
    run.apply(delta_of(delta))


def try_joins_again(run: Run, path: str) -> None:
    """Let joins that wait for each other have a barrier again: what they hold has changed."""
    waiting = [name for name, record in run.items(path, "failure") if record.failure.kind == "deadlock"]
    run.apply(delta_of({(path, "failure", name): None for name in waiting}))


def with_deliveries(step: StepRecord, deliveries: list[Delivery]) -> StepRecord:
    """Return a superstep with fewer deliveries, and only the payloads that these need."""
    payloads: list[Payload] = []
    known: dict[int, int] = {}
    found: list[Delivery] = []
    for delivery in deliveries:
        if delivery.payload not in known:
            known[delivery.payload] = len(payloads)
            payloads.append(step.payloads[delivery.payload])
            if delivery.kind == "answer":
                payloads.append(step.payloads[delivery.payload + 1])
        found.append(msgspec.structs.replace(delivery, payload=known[delivery.payload]))
    return msgspec.structs.replace(step, payloads=tuple(payloads), deliveries=tuple(found))


def scope_key(path: str) -> tuple[str, str, str]:
    """Return the key of a scope's own record."""
    parent, segment = slot(path)
    return parent, "scope", segment


def has_scope(run: Run, path: str, delivery: Delivery) -> bool:
    """Tell whether a message to a sub-workflow has its scope, or waits for its turn in one that is shared."""
    if run.get(path, "scope", invocation_name(delivery.executor, delivery.activation)) is not None:
        return True
    return _shared(run, path, delivery) is not None


def was_taken(run: Run, path: str, delivery: Delivery) -> bool:
    """Tell whether a sub-workflow has begun to work on a message; a shared one takes one after the other."""
    shared = _shared(run, path, delivery)
    if shared is not None:
        return delivery.activation <= shared.inputs
    return has_scope(run, path, delivery)


def _shared(run: Run, path: str, delivery: Delivery) -> ScopeRecord | None:
    scope: ScopeRecord | None = run.get(path, "scope", invocation_name(delivery.executor, 1))
    return scope if scope is not None and not scope.trail else None
