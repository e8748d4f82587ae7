"""The facts of a checkpoint: what there is to compare, by scope path, kind and key.

Values stay sealed until one is shown. Numbers that the engine keeps for itself (counters, timers, trails) are no facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from rehydrate.codecs import plain
from rehydrate.codecs.format import array_header
from rehydrate.engine.reading import outputs, scopes
from rehydrate.engine.receipts import receipts
from rehydrate.engine.requests import requests_in
from rehydrate.engine.run import Run
from rehydrate.engine.splicing import grows, sealed_value
from rehydrate.ids import slot
from rehydrate.model.effects import Again, Ask, Effect, Output, Pause, Respond, Send, SetState, UpdateState
from rehydrate.model.passes import CallRecord, CallsRecord
from rehydrate.model.plain import Plain
from rehydrate.model.records import DoneRecord, ScopeRecord, StateRecord, StepRecord, TurnRecord
from rehydrate.model.sealed import Items, Listed, Payload, Sealed

from .checkpoint import WorkflowCheckpoint
from .state_view import committed_parts

#: Scope path, kind and key.
FactKey: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Fact:
    """Something that holds at a checkpoint: what it is compared by, its plain value, and the bytes it takes."""

    same: object
    show: Callable[[], Plain]
    size: int = 0
    type: str = ""


@dataclass(frozen=True)
class ListFact(Fact):
    """A list that grows by parts: the bytes of its elements one after the other, and their number."""

    elements: bytes = b""
    count: int = 0


def facts_of(checkpoint: WorkflowCheckpoint) -> dict[FactKey, Fact]:
    """Return all facts of a checkpoint."""
    run = checkpoint.records
    found: dict[FactKey, Fact] = {("", "status", ""): _told(checkpoint.status.value)}
    found.update(_of_run(run))
    for path in scopes(run):
        for kind, key, fact in (*_of_scope(run, path), *_of_work(run, path), *_waiting(run, path)):
            found[path, kind, key] = fact
    return found


def _of_run(run: Run) -> Iterator[tuple[FactKey, Fact]]:
    turn: TurnRecord | None = run.get("", "turn", "")
    if turn is not None:
        yield ("", "turn", ""), _told(turn.number)
        if turn.run_args is not None:
            yield ("", "run_args", ""), _value(turn.run_args)
    yield ("", "version", ""), _told(run.get("", "run", "").version)
    for index, record in enumerate(outputs(run)):
        yield ("", "output", f"[{index}]"), _value(record.value)
    for name, receipt in receipts(run).items():
        yield ("", "closed request", name), _told(receipt.state)


def _of_scope(run: Run, path: str) -> Iterator[tuple[str, str, Fact]]:
    parent, segment = slot(path)
    scope: ScopeRecord = run.get(parent, "scope", segment)
    yield "superstep", "", _told(scope.superstep)
    for key, record in run.items(path, "state"):
        yield "state", key, _state(run, path, key, record)
    for name, record in run.items(path, "instance"):
        yield "instance", name, _value(record.value)
    for name, record in requests_in(run, path):
        yield "request", name, _value(record.data)
    for name, call in _calls(run, path):
        yield "call", f"{name} {call.kind} {call.name}".rstrip(), _called(call)
    if run.get(path, "limit", "") is not None:
        yield "limit", "", _told(run.get(path, "limit", "").used)


def _calls(run: Run, path: str) -> Iterator[tuple[str, CallRecord]]:
    """Give the calls that passes of a function remember, in one record or in many."""
    packs: list[CallsRecord] = list(run.table(path, "calls").values())
    yield from run.items(path, "call")
    for pack in packs:
        yield from pack.calls.items()


def _called(call: CallRecord) -> Fact:
    if call.value is not None:
        return _payload(call.value)
    if call.failure is not None:
        return _told(f"{call.failure.type}: {call.failure.text}")
    return _told("not back")


def _of_work(run: Run, path: str) -> Iterator[tuple[str, str, Fact]]:
    """Give messages of the unfinished superstep, and what has come of those that were handled."""
    parent, segment = slot(path)
    step: StepRecord | None = run.get(parent, "step", segment)
    for delivery in step.deliveries if step is not None else ():
        name = f"{delivery.executor}#{delivery.activation}"
        if step is not None and all(run.get(path, kind, name) is None for kind in ("done", "unrouted", "scope")):
            yield "message", name, _payload(step.payloads[delivery.payload])
    for kind in ("done", "unrouted"):
        for name, record in run.items(path, kind):
            yield "finished", name, _finished(record)
    for name, record in run.items(path, "failure"):
        yield "failure", name or record.executor, _told(f"{record.failure.type}: {record.failure.text}")
    for name, record in run.items(path, "attempt"):
        yield "attempts", name, _told(record.started)


def _waiting(run: Run, path: str) -> Iterator[tuple[str, str, Fact]]:
    """Give what waits for a later superstep, for the parent's barrier, or for others at joins and ends of maps."""
    for name, record in run.items(path, "inbox"):
        yield "message", f"{record.executor} waiting {name}", _payload(record.payload)
    for name, record in run.items(path, "outbox"):
        yield "outbox", name, _payload(record.value)
    for record in run.table(path, "join").values():
        yield "join", f"{record.join} from {record.source} {record.number}", _value(record.payload)
    for name, record in run.items(path, "map"):
        yield "map", name, _told(f"into {record.into}")
    for record in run.table(path, "gather").values():
        into = run.get(path, "map", str(record.map)).into
        yield "join", f"{into} from map {record.map} {record.number}", _value(record.payload)


def _told(value: Plain) -> Fact:
    return Fact(value, lambda: value)


def _value(sealed: Sealed) -> Fact:
    return Fact(sealed, lambda: plain(sealed.data), len(sealed.data), sealed.type)


def _payload(payload: Payload) -> Fact:
    if isinstance(payload, Sealed):
        return _value(payload)
    return Fact(payload, lambda: _listed(payload), sum(len(item.data) for item in payload.items))


def _listed(payload: Listed) -> Plain:
    return [plain(item.data) for item in payload.items]


def _state(run: Run, path: str, key: str, record: StateRecord) -> Fact:
    if not grows(record):
        return _value(sealed_value(run, path, key, record))
    elements = b"".join(part.data for part in committed_parts(run, path, key))
    count = record.count
    return ListFact((elements, count), lambda: elements_shown(elements, count), len(elements), "list", elements, count)


def elements_shown(elements: bytes, count: int) -> Plain:
    """Return elements of a list as plain values."""
    return plain(array_header(count) + elements)


def _finished(record: DoneRecord) -> Fact:
    size = sum(_bytes_of(effect) for effect in record.effects)
    return Fact(record, lambda: [_effect(effect) for effect in record.effects], size)


def _bytes_of(effect: Effect) -> int:
    if isinstance(effect, Pause):
        return sum(len(value.data) for value in effect.reads.values() if value is not None)
    value = effect.data if isinstance(effect, Ask) else effect.value
    if isinstance(value, Listed):
        return sum(len(item.data) for item in value.items)
    return 0 if value is None else len(value.data)


_WORDS: Final = {Send: "sends", Output: "yields"}


def _effect(effect: Effect) -> Plain:
    match effect:
        case Send() | Output():
            return {_WORDS[type(effect)]: _payload(effect.value).show()}
        case Ask():
            return {"asks": plain(effect.data.data)}
        case Respond():
            return {"answers": effect.name, "with": plain(effect.value.data)}
        case SetState():
            return {"deletes": effect.key} if effect.value is None else {"sets": effect.key, "to": _held(effect.value)}
        case UpdateState():
            return {"updates": effect.key, "with": _held(effect.value)}
        case Pause():
            return {"waits until": effect.due}
        case Again():
            return {"begins anew with": plain(effect.value.data)}
        case _:
            assert_never(effect)


def _held(value: Sealed | Items) -> Plain:
    return elements_shown(value.data, value.count) if isinstance(value, Items) else plain(value.data)
