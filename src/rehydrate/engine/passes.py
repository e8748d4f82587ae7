"""Passes of functional workflows: what they have called and remember, how they wait, go on and end.

A pass is one message from its arrival to the function's return. It is made of invocations of the function, one after
the other: the first takes the message, each further one goes on after a wait and finds in the records what came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.ids import child_path, join_slot, outer_id, scope_of, slot
from rehydrate.model.effects import Again, Ask, Pause
from rehydrate.model.events import RequestsCancelled, ScopeEnded, ScopeStarted
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord, ReadRecord
from rehydrate.model.records import (
    Delivery,
    DoneRecord,
    InboxRecord,
    OutboxRecord,
    ReceiptRecord,
    RequestRecord,
    ScopeRecord,
    Trail,
)
from rehydrate.model.sealed import Listed, Sealed

from .change import Change
from .commands import StopScope, TellPass
from .inputs import CallNoted
from .plan import invocation_name, plan_of
from .receipts import leave_receipt
from .requests import clear_requests, close_request, requests_in
from .run import Draft, birth_of, known_name
from .steps import Arrival, all_scopes, drop_scope, open_step

#: So often the calls that have come back are looked through and put into one record.
PACK: Final = 64
#: What a pass that goes on is given; its message is in its record.
NOTHING: Final = Listed(())


def pass_number(delivery: Delivery) -> int:
    """Return the number of the pass that a delivery to a function begins or goes on with."""
    return int(delivery.name) if delivery.kind == "pass" else delivery.activation


def pass_seed(birth: str, path: str, number: int) -> str:
    """Return what the random numbers and ids of a pass are made from that begins in a run of this birth."""
    return outer_id(birth, f"pass {path}#{number}")


def note_call(change: Change, item: CallNoted) -> None:
    """Put what a running pass has called, or what came back, into the records; one that runs no more is not heard."""
    draft = change.draft
    delivery = running(change, item.path, item.pass_number)
    if delivery is None:
        return
    _remember(change, item.path, item.pass_number, delivery.trail)
    name = f"{item.pass_number}:{item.name}"
    draft.put(item.path, "call", name, item.record)
    if item.message is not None:
        _start_called(change, item, item.message, delivery.trail, name)
    if item.waits:
        change.barriers = True
        change.then.append(TellPass(item.path, item.pass_number, item.name, item.record))
    if has_come_back(item.record) and draft.count(item.path, "call") % PACK == 0:
        _pack(draft, item.path, item.pass_number)


def has_come_back(record: CallRecord) -> bool:
    """Tell whether a call has its value or its failure."""
    return record.value is not None or record.failure is not None


def running(change: Change, path: str, number: int) -> Delivery | None:
    """Return the unfinished invocation of a pass, if there is one."""
    plan, body = plan_of(change, path), change.graph_at(path).body
    if plan is None or body is None:
        return None
    for delivery in plan.chains.get((body, ()), ()):
        name = invocation_name(body, delivery.activation)
        if pass_number(delivery) == number and change.draft.get(path, "done", name) is None:
            return delivery
    return None


def _remember(change: Change, path: str, number: int, trail: Trail) -> PassRecord:
    record: PassRecord | None = change.draft.get(path, "pass", str(number))
    if record is None:
        seed = pass_seed(birth_of(change.draft), path, number)
        turn = change.draft.turn()
        record = PassRecord(trail, seed, change.graph_at(path).version, run_args=turn.run_args)
        change.draft.put(path, "pass", str(number), record)
    return record


def _start_called(change: Change, item: CallNoted, message: Sealed, trail: Trail, call: str) -> None:
    """Begin the scope of a workflow that a pass calls."""
    callee = item.record.name
    path = child_path(item.path, callee, item.number)
    step = change.draft.step(item.path)
    superstep = step.superstep if step is not None else 0
    change.events.append(ScopeStarted(path=path, executor_id=callee, superstep=superstep, activation=item.number))
    start = change.graph_at(path).start
    open_step(change, path, ScopeRecord(trail, inputs=1, call=call), [Arrival(start, message, (1,))])


def _pack(draft: Draft, path: str, number: int) -> None:
    """Put the calls of a pass that have come back into one record."""
    single = {
        name: record
        for name, record in draft.items(path, "call")
        if name.startswith(f"{number}:") and has_come_back(record)
    }
    if len(single) < PACK // 2:
        return
    for name in single:
        draft.remove(path, "call", name)
    packs = draft.items(path, "calls")
    last = max((int(name.partition(":")[2]) for name, _ in packs if name.startswith(f"{number}:")), default=0)
    draft.put(path, "calls", f"{number}:{last + 1:06d}", CallsRecord(dict(sorted(single.items()))))


def forget_calls(draft: Draft, path: str, number: int, names: Iterable[str]) -> None:
    """Forget calls of a pass that came back with failures, so that they are made again."""
    gone = {f"{number}:{name}" for name in names}
    for name in gone:
        draft.remove(path, "call", name)
    packs: list[tuple[str, CallsRecord]] = draft.items(path, "calls")
    for pack, record in packs:
        if not gone & record.calls.keys():
            continue
        left = {name: call for name, call in record.calls.items() if name not in gone}
        if left:
            draft.put(path, "calls", pack, CallsRecord(left))
        else:
            draft.remove(path, "calls", pack)


def settle_pass(change: Change, path: str, delivery: Delivery, done: DoneRecord) -> Arrival | None:
    """Take what a finished invocation of a function says of its pass: it waits, it ended, or it begins anew."""
    number = pass_number(delivery)
    for effect in done.effects:
        if isinstance(effect, Pause):
            _wait(change, path, delivery, effect, sum(isinstance(other, Ask) for other in done.effects))
            late = any(_came_back(change.draft, path, f"{number}:{name}") for name in effect.called)
            return Arrival(delivery.executor, NOTHING, delivery.trail, "pass", str(number)) if late else None
    end_pass(change, path, number)
    for effect in done.effects:
        if isinstance(effect, Again):
            return Arrival(delivery.executor, effect.value, delivery.trail)
    return None


def _came_back(draft: Draft, path: str, name: str) -> bool:
    """Tell whether a call that a pass waits for came back after it was left, when nobody could be told."""
    record: CallRecord | None = draft.get(path, "call", name)
    return record is None or has_come_back(record)  # one that has may be in a pack


def _wait(change: Change, path: str, delivery: Delivery, pause: Pause, asked: int) -> None:
    draft = change.draft
    number = pass_number(delivery)
    record = _remember(change, path, number, delivery.trail)
    payload = record.payload
    if payload is None:
        step = draft.step(path)
        assert step is not None  # noqa: S101  (its invocation is one of that superstep)
        payload = step.payloads[delivery.payload]
    asked += record.asked
    draft.put(path, "pass", str(number), msgspec.structs.replace(record, asked=asked, payload=payload, due=pause.due))
    _pack(draft, path, number)
    for key, value in pause.reads.items():
        draft.put(path, "read", f"{number}:{key}", ReadRecord(value))


def end_pass(change: Change, path: str, number: int) -> None:
    """Forget a pass: its calls, its open questions, and the scopes that it called and no longer waits for."""
    draft = change.draft
    record: PassRecord | None = draft.get(path, "pass", str(number))
    if record is None:
        return
    draft.remove(path, "pass", str(number))
    for kind in ("call", "calls", "read"):
        for name in [name for name, _ in draft.items(path, kind) if name.startswith(f"{number}:")]:
            draft.remove(path, kind, name)
    for child in called_scopes(draft, path, number):
        withdraw(change, all_scopes(change, child))
        change.now.append(StopScope(child))
        drop_scope(change, child)
    if record.asked:
        withdraw(change, [path], number)


def called_scopes(draft: Draft, path: str, number: int) -> list[str]:
    """Return the live scopes that a pass has called."""
    if not draft.has(path, "scope"):
        return []
    return [
        join_slot(path, segment)
        for segment, record in draft.items(path, "scope")
        if record.call.startswith(f"{number}:")
    ]


def withdraw(change: Change, paths: Iterable[str], number: int | None = None) -> None:
    """Close the open requests of some scopes, or of one pass in them, unanswered."""
    draft = change.draft
    if not draft.totals["request"]:
        return
    closed: list[str] = []
    for path in paths:
        names = [name for name, record in requests_in(draft, path) if number is None or record.activation == number]
        closed += [outer_id(birth_of(draft), known_name(draft, path, name)) for name in names]
        if number is None:
            clear_requests(draft, path)
        for name in names:
            if number is not None:
                close_request(draft, path, name)
            leave_receipt(change, path, name, ReceiptRecord("cancelled", draft.turn().number))
    if closed:
        change.events.append(RequestsCancelled(request_ids=tuple(closed)))


def answer_pass(change: Change, path: str, request: RequestRecord, value: Sealed) -> Arrival:
    """Give the answer to a pass that waits for it."""
    name = f"{request.activation}:{request.handler}"
    record: CallRecord | None = change.draft.get(path, "call", name)
    if record is None:
        raise CheckpointCorruptError(
            f"the call {name!r:.80} of a function", "its question is open, and it has no record"
        )
    change.draft.put(path, "call", name, msgspec.structs.replace(record, value=value))
    return Arrival(request.executor, NOTHING, request.trail, "pass", str(request.activation))


def come_back(change: Change, path: str) -> Arrival | None:
    """End a scope that a pass has called and that is over: its outputs are what the call gives.

    A pass that runs is told; for one that waits, what lets it go on is returned.
    """
    draft = change.draft
    parent, segment = slot(path)
    scope: ScopeRecord = draft.scope(path)
    number, _, name = scope.call.partition(":")
    outbox: list[tuple[str, OutboxRecord]] = draft.items(path, "outbox")
    outbox.sort(key=lambda item: int(item[0]))
    values = tuple(record.value for _, record in outbox if isinstance(record.value, Sealed) and not record.request)
    before: CallRecord = draft.get(parent, "call", scope.call)
    record = msgspec.structs.replace(before, value=Listed(values))
    draft.put(parent, "call", scope.call, record)
    drop_scope(change, path)
    executor, activation = scope_of(segment)
    step = draft.step(parent)
    superstep = step.superstep if step is not None else 0
    change.events.append(ScopeEnded(path=path, executor_id=executor, superstep=superstep, activation=activation))
    change.barriers = True
    if running(change, parent, int(number)) is not None:
        change.then.append(TellPass(parent, int(number), name, record))
        return None
    body = change.graph_at(parent).body
    assert body is not None  # noqa: S101  (it has called)
    return Arrival(body, NOTHING, scope.trail, "pass", number)


def put_in_inbox(draft: Draft, path: str, item: Arrival) -> None:
    """Let something wait for a scope's next superstep; a pass goes on once, however much came back for it."""
    if item.kind == "pass" and any(r.kind == "pass" and r.name == item.name for _, r in draft.items(path, "inbox")):
        return
    record = InboxRecord(item.kind, item.executor, item.payload, item.trail, item.name, item.handler, item.data)
    draft.put(path, "inbox", str(draft.count(path, "inbox")), record)


def each_once(arrivals: list[Arrival]) -> list[Arrival]:
    """Return what arrives, each pass once."""
    seen: set[str] = set()
    found: list[Arrival] = []
    for item in arrivals:
        if item.kind == "pass":
            if item.name in seen:
                continue
            seen.add(item.name)
        found.append(item)
    return found


def still_alive(draft: Draft, path: str, arrivals: list[Arrival]) -> list[Arrival]:
    """Return what arrives, without what was to go on and has ended."""
    return [item for item in each_once(arrivals) if item.kind != "pass" or draft.get(path, "pass", item.name)]
