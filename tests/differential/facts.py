"""Facts: what must be the same for the same input, whatever finished first and wherever the run was restored.

Left out is only what the contract names: sequence numbers, ids made from the birth, times, and how scopes interleave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rehydrate import WorkflowRunResult
from rehydrate.engine.reading import open_requests
from rehydrate.engine.receipts import receipts
from rehydrate.engine.run import Run
from rehydrate.ids import outer_id, request_name
from rehydrate.model.effects import Pause
from rehydrate.model.events import Event, InvocationFailed, TurnStarted
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord
from rehydrate.model.records import DoneRecord, FailureRecord, Key, Record, RunRecord, TurnRecord
from rehydrate.model.request_packs import RequestsRecord

#: Kinds that say which run it is, what time it is, or that a process ended; all others are the run itself.
OWN_KINDS = frozenset({"run", "attempt", "timer"})


class Told(msgspec.Struct, frozen=True):
    """A committed event: its number, its scope and its text."""

    sequence: int
    path: str
    text: str


class CallFacts(msgspec.Struct, frozen=True):
    """How a run stood after a call, and what the call told."""

    status: str
    turn: int
    outputs: list[str]
    requests: list[str]
    records: dict[str, str]
    events: list[Told]


class RunFacts(msgspec.Struct, frozen=True):
    """All calls of a run; `ends` are the numbers of the checkpoints in which they ended."""

    calls: list[CallFacts]
    ends: list[int]


def call_facts(result: WorkflowRunResult, events: Sequence[Event]) -> CallFacts:
    """Read the facts of a call from its result."""
    run = result.checkpoint.records
    names = request_names(run)
    return CallFacts(
        status=result.status.value,
        turn=result.turn,
        outputs=[repr(output) for output in result.outputs],
        requests=[f"{names[request.request_id]}: {request.data!r}" for request in result.pending_requests],
        records=record_facts(run),
        events=told(events, names),
    )


def told(events: Sequence[Event], names: Mapping[str, str]) -> list[Told]:
    """Return the committed ones of events as text; `names` are those of requests by outer id."""
    return [Told(event.sequence, event.path, event_text(event, names)) for event in events if not event.live]


def record_facts(run: Run) -> dict[str, str]:
    """Return every record that is the same in every run with this input, as text by key."""
    found: dict[str, str] = {}
    for key, record in run.records():
        if isinstance(record, CallsRecord):  # which calls it holds depends on what came back first
            found |= {f"{key[0]} call {name}": repr(_call(call)) for name, call in record.calls.items()}
        elif key[1] not in OWN_KINDS:
            found[" ".join(key)] = repr(comparable(key, record))
    return found


def comparable(key: Key, record: Record) -> Record:
    """Return a record without what says which checkpoint or call it came from."""
    if isinstance(record, TurnRecord):
        return msgspec.structs.replace(record, base=None, digest="", resumed=None)
    if isinstance(record, FailureRecord):
        return FailureRecord(msgspec.structs.replace(record.failure, trace=""), record.executor)
    if isinstance(record, CallRecord):
        return _call(record)
    if isinstance(record, PassRecord):
        return msgspec.structs.replace(record, seed="", due=_due(record.due))
    if isinstance(record, DoneRecord):
        effects = tuple(
            Pause(each.reads, _due(each.due)) if isinstance(each, Pause) else each for each in record.effects
        )
        return msgspec.structs.replace(record, effects=effects)
    if isinstance(record, RequestsRecord):
        return msgspec.structs.replace(record, ids=b"")
    return record


def _call(record: CallRecord) -> CallRecord:
    """Return a call without times, its place in the order of coming back, values of the moment, and what a step named
    `stamp` made of these."""
    failure = msgspec.structs.replace(record.failure, trace="") if record.failure is not None else None
    record = msgspec.structs.replace(record, due=_due(record.due), order=0, failure=failure)
    if record.kind == "value":
        return msgspec.structs.replace(record, value=None)
    return msgspec.structs.replace(record, digest=b"", value=None) if record.name == "stamp" else record


def _due(due: float | None) -> float | None:
    return None if due is None else 0.0


def request_names(run: Run) -> dict[str, str]:
    """Return the inner name of every request that the run knows, by outer id."""
    record = run.get("", "run", "")
    assert isinstance(record, RunRecord)
    found = {outer_id(record.birth, name): name for name in receipts(run)}
    for opened in open_requests(run):
        asked = opened.record
        name = request_name(opened.path, asked.executor, asked.activation, asked.count)
        # A migration may have renamed who asked; the outside keeps the id of the first name.
        found[opened.request_id if opened.known != name else outer_id(record.birth, name)] = name
    return found


def event_text(event: Event, names: Mapping[str, str]) -> str:
    """Return an event's kind and fields as text, with requests by their inner names."""
    fields = msgspec.structs.asdict(event)
    for left_out in ("run_id", "path", "sequence", "live"):
        del fields[left_out]
    if "request_id" in fields:
        fields["request_id"] = names.get(fields["request_id"], "unknown")
    if "request_ids" in fields:
        fields["request_ids"] = [names.get(name, "unknown") for name in fields["request_ids"]]
    if isinstance(event, InvocationFailed):
        fields["failure"] = msgspec.structs.replace(event.failure, trace="")
    return f"{type(event).__name__} {fields}"


def by_scope(events: Sequence[Told]) -> dict[str, list[str]]:
    """Return the texts of events by scope; failed tries are left out, since a restored run tries again."""
    found: dict[str, list[str]] = {}
    for event in events:
        if not event.text.startswith(InvocationFailed.__name__):
            found.setdefault(event.path, []).append(event.text)
    return found


def differences(expected: CallFacts, found: CallFacts) -> list[str]:
    """Name what differs between two ends of the same call, events apart."""
    wrong: list[str] = []
    for name in ("status", "turn", "outputs", "requests"):
        one, other = getattr(expected, name), getattr(found, name)
        if one != other:
            wrong.append(f"{name}: expected {one}, found {other}")
    for key in sorted(expected.records.keys() | found.records.keys()):
        one, other = expected.records.get(key), found.records.get(key)
        if one != other:
            wrong.append(f"record {key}: expected {one}, found {other}")
    return wrong


def event_differences(expected: Sequence[Told], found: Sequence[Told]) -> list[str]:
    """Name the scopes whose events differ."""
    one, other = by_scope(expected), by_scope(found)
    return [
        f"events of scope {path!r}: expected {one.get(path, [])}, found {other.get(path, [])}"
        for path in sorted(one.keys() | other.keys())
        if one.get(path) != other.get(path)
    ]


def tail_differences(expected: Sequence[Told], found: Sequence[Told]) -> list[str]:
    """Name the scopes whose events are not the end of what was expected of them."""
    one = by_scope(expected)
    return [
        f"events of scope {path!r}: {texts} are not the end of {one.get(path, [])}"
        for path, texts in sorted(by_scope(found).items())
        if one.get(path, [])[-len(texts) :] != texts
    ]


def is_continuation_start(event: Event) -> bool:
    """Tell whether an event only says that a turn was taken up again."""
    return isinstance(event, TurnStarted) and event.continuation
