"""Supersteps and scopes: how one is opened and started, and how a scope is dropped.

Opening a superstep gives every number that names something in it; a restore finds them in the record.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rehydrate.ids import child_path, join_slot, order_key, slot
from rehydrate.model.events import ScopeStarted, SuperstepStarted
from rehydrate.model.records import (
    CounterRecord,
    Delivery,
    DeliveryKind,
    InputRecord,
    LimitRecord,
    Payload,
    ScopeRecord,
    StepRecord,
    Trail,
)
from rehydrate.model.sealed import Listed, Sealed

from .change import Change
from .commands import StartInvocation
from .mapping import copy_in
from .plan import Plan
from .requests import clear_requests
from .run import is_live
from .timing import start_timer

#: Kinds that, with open requests, stand in a scope itself; its own scope, step and rest records stand in its parent.
INSIDE: Final = (
    "counter", "done", "unrouted", "failure", "attempt", "join", "map", "gather", "outbox", "inbox",
    "instance", "state", "part", "limit", "input", "timer", "alias", "pass", "read", "call", "calls",
)  # fmt: skip


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """Something that will stand at an executor in the next superstep. `data` is the request's data, for an answer."""

    executor: str
    payload: Payload
    trail: Trail
    kind: DeliveryKind = "message"
    name: str = ""
    handler: str = ""
    data: Sealed | None = None


def open_step(change: Change, path: str, scope: ScopeRecord, arrivals: list[Arrival]) -> None:
    """Begin a scope's next superstep with what arrived, in that order; where the limit is reached it is only held.

    `scope` is the scope's record as it is to be, but for what the superstep changes in it.
    """
    draft = change.draft
    allowance = change.allowance()
    used = scope.used if scope.allowance == allowance else 0
    graph = change.graph_at(path)
    limit = graph.max_supersteps
    number = scope.superstep + 1
    parent, segment = slot(path)
    step = StepRecord(number, *_number(change, path, arrivals))
    draft.put(parent, "step", segment, step)
    if draft.has(parent, "rest"):  # one that goes on is at rest no more, whatever made it go on
        draft.remove(parent, "rest", segment)
    plan = change.plans[path] = draft.run.memo[(parent, segment)] = Plan(step, graph.children)
    held = used >= limit
    draft.put(
        parent,
        "scope",
        segment,
        ScopeRecord(
            scope.trail,
            scope.inputs,
            number,
            allowance,
            used if held else used + 1,
            scope.outbox,
            scope.joined,
            scope.maps,
            scope.call,
        ),
    )
    change.barriers = True
    if held:
        draft.put(path, "limit", "", LimitRecord(limit))
        return
    start_step(change, path, plan)


def _number(change: Change, path: str, arrivals: list[Arrival]) -> tuple[tuple[Payload, ...], tuple[Delivery, ...]]:
    """Give each arrival its activation; a payload that many share is kept once."""
    draft = change.draft
    payloads: list[Payload] = []
    known: dict[int, int] = {}
    counters: dict[str, int] = {}
    deliveries: list[Delivery] = []
    for arrival in arrivals:
        executor = arrival.executor
        activation = counters.get(executor)
        if activation is None:
            counter: CounterRecord | None = draft.get(path, "counter", executor)
            activation = counter.value if counter else 0
        counters[executor] = activation = activation + 1
        index = known.get(id(arrival.payload)) if arrival.data is None else None
        if index is None:
            index = len(payloads)
            payloads.append(arrival.payload)
            if arrival.data is not None:
                payloads.append(arrival.data)
            else:
                known[id(arrival.payload)] = index
        deliveries.append(
            Delivery(executor, activation, index, arrival.trail, arrival.kind, arrival.name, arrival.handler)
        )
    for executor, value in counters.items():
        draft.put(path, "counter", executor, CounterRecord(value))
    return tuple(payloads), tuple(deliveries)


def start_step(change: Change, path: str, plan: Plan) -> None:
    """Start the first invocation of every chain, and a scope for each message to a sub-workflow."""
    step = plan.step
    change.events.append(SuperstepStarted(path=path, superstep=step.superstep))
    for chain in plan.chains.values():
        first = chain[0]
        change.then.append(StartInvocation(path, step.superstep, first, plan.payloads(first), alone=len(chain) == 1))
    for delivery in plan.scopes:
        start_scope(change, path, step, delivery)


def start_scope(change: Change, parent: str, step: StepRecord, delivery: Delivery) -> None:
    """Begin a sub-workflow with the message it received; its number is the activation of its executor.

    One that is shared has the number 1 and takes the message as its next input; while it is busy it takes none.
    """
    executor = delivery.executor
    nesting = change.graph_at(parent).nesting[executor]
    number = 1 if nesting.shared else delivery.activation
    path = child_path(parent, executor, number)
    scope = ScopeRecord(delivery.trail, inputs=1)
    if nesting.shared:
        if change.draft.step(path) is not None:
            return
        scope = _next_input(change, path, delivery)
    if scope.superstep == 0:
        started = ScopeStarted(path=path, executor_id=executor, superstep=step.superstep, activation=number)
        change.events.append(started)
    if nesting.timeout is not None:
        start_timer(change, path, nesting.timeout)
    if nesting.inputs:
        copy_in(change.draft, parent, path, nesting.inputs)
    payload = step.payloads[delivery.payload]
    start = change.graph_at(path).start
    kind = "list" if isinstance(payload, Listed) else delivery.kind
    arrival = Arrival(start, payload, (scope.inputs,), kind, delivery.name, delivery.handler)
    open_step(change, path, scope, [arrival])


def _next_input(change: Change, path: str, delivery: Delivery) -> ScopeRecord:
    """Number a message as an input of a shared scope, for which its limit starts anew."""
    before = change.draft.scope(path) if is_live(change.draft, path) else ScopeRecord(())
    change.draft.put(path, "input", str(delivery.activation), InputRecord(delivery.trail))
    return msgspec.structs.replace(before, inputs=delivery.activation, used=0)


def close_step(change: Change, path: str) -> None:
    """End a scope's superstep."""
    parent, segment = slot(path)
    change.draft.remove(parent, "step", segment)
    change.plans.pop(path, None)


def drop_scope(change: Change, path: str) -> None:
    """Remove a scope with everything in and below it."""
    draft = change.draft
    for segment, _ in draft.items(path, "scope"):
        drop_scope(change, join_slot(path, segment))
    clear_requests(draft, path)
    for kind in INSIDE:
        draft.clear(path, kind)
    parent, segment = slot(path)
    for kind in ("scope", "step", "rest"):
        draft.remove(parent, kind, segment)
    change.plans.pop(path, None)


def stepping_scopes(change: Change, path: str = "") -> list[str]:
    """Return the scopes with an unfinished superstep, parents first; only below one can another stand."""
    if change.draft.step(path) is None:
        return []
    found = [path]
    for segment in sorted((name for name, _ in change.draft.items(path, "step")), key=order_key):
        found += stepping_scopes(change, join_slot(path, segment))
    return found


def all_scopes(change: Change, path: str = "") -> list[str]:
    """Return every live scope, parents first."""
    found = [path]
    for segment in sorted((name for name, _ in change.draft.items(path, "scope")), key=order_key):
        found += all_scopes(change, join_slot(path, segment))
    return found
