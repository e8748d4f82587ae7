"""Facts of a run: what must be the same wherever its process ended, and what a test compares.

Ids, times, numbers of checkpoints and events are left out. Values are compared by their stored bytes and shown by their
`repr`. Must not call anything of the user's but `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

import msgspec

from rehydrate.codecs import ValueCodec
from rehydrate.engine import reading
from rehydrate.model.events import Event, InvocationFailed, RequestOpened, TurnStarted
from rehydrate.model.records import FailureRecord
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.result import WorkflowRunResult


@dataclass(frozen=True)
class Fact:
    """One thing about a run. `shown` is for people, and only `same` is compared."""

    same: object
    shown: str = field(compare=False)


#: What there is to say of a call, by what it is about.
Facts: TypeAlias = dict[str, Fact]
_NOTHING: Final = Fact(None, "nothing")
_EVENTS: Final = "events of "
#: Of an event, what says where and when it was told.
_PLACES: Final = ("run_id", "path", "sequence", "live")


def facts(result: WorkflowRunResult) -> Facts:
    """Return what a call left."""
    run = result.checkpoint.records
    outputs = [record.value for record in reading.outputs(run)]
    found = {
        "status": Fact(result.status, result.status.value),
        "outputs": Fact([(value.type, value.data) for value in outputs], repr(result.outputs)),
    }
    opened = reading.open_requests(run)
    asked = [
        f"{each.path}/{each.name}: {request.data!r}"
        for each, request in zip(opened, result.pending_requests, strict=True)
    ]
    names = [(each.path, each.name, each.record.response_type, each.record.data) for each in opened]
    found["requests"] = Fact(names, repr([text.lstrip("/") for text in asked]))
    failed = list(_failures(result.checkpoint))
    if failed:
        found["failures"] = Fact(failed, ", ".join(failed))
    found.update((name, Fact(text, text)) for name, text in _states(result.checkpoint, ""))
    return found


def compared(expected: Facts, found: Facts, words: tuple[str, str] = ("uninterrupted", "here")) -> list[str]:
    """Name what differs between two ends of one call; `words` say which is which. Events are named where all else is
    the same."""
    wrong = {
        name: f"{name}: {wanted.shown} {words[0]}, {had.shown} {words[1]}"
        for name in [*expected, *(name for name in found if name not in expected)]
        if (wanted := expected.get(name, _NOTHING)) != (had := found.get(name, _NOTHING))
    }
    ends = [text for name, text in wrong.items() if not name.startswith(_EVENTS)]
    return ends or list(wrong.values())


def differences(expected: Sequence[WorkflowRunResult], found: Sequence[WorkflowRunResult]) -> list[str]:
    """Name what differs between two ways of driving a run, call by call."""
    if len(expected) != len(found):
        return [f"the uninterrupted run took {len(expected)} call(s), this one {len(found)}"]
    pairs = zip(expected, found, strict=True)
    return [
        f"call {number}: {text}"
        for number, (one, other) in enumerate(pairs, start=1)
        for text in compared(facts(one), facts(other))
    ]


def told(events: Iterable[Event], codec: ValueCodec, known: Iterable[str] = ()) -> Facts:
    """Return the committed events by scope. `known` are requests that were open before, which a call that goes on
    surfaces once more; that, and that it goes on, is left out, and so is what failed and may be tried again."""
    surfaced = set(known)
    found: dict[str, list[tuple[object, str]]] = {}
    for event in events:
        if event.live or isinstance(event, InvocationFailed) or (isinstance(event, TurnStarted) and event.continuation):
            continue
        if isinstance(event, RequestOpened) and event.request_id in surfaced:
            surfaced.remove(event.request_id)
            continue
        found.setdefault(event.path, []).append(_told(event, codec))
    return {
        f"{_EVENTS}{path or 'the root'}": Fact([same for same, _ in all_], f"[{', '.join(text for _, text in all_)}]")
        for path, all_ in sorted(found.items())
    }


def _told(event: Event, codec: ValueCodec) -> tuple[object, str]:
    """Return an event as it is compared, and as text."""
    fields = msgspec.structs.asdict(event)
    shown = ", ".join(f"{name}={value!r}" for name, value in fields.items() if name not in _PLACES and value)
    if "data" in fields:
        fields["data"] = codec.seal(fields["data"])
    same = [(name, value) for name, value in fields.items() if name not in _PLACES]
    return (type(event).__name__, same), f"{type(event).__name__}({shown})"


def _failures(checkpoint: WorkflowCheckpoint) -> Iterator[str]:
    for (path, kind, _), record in checkpoint.records.records():
        if kind == "failure":
            failure = cast("FailureRecord", record)
            where = f"{path}/{failure.executor}".strip("/") or "the root"
            yield f"{where}: {failure.failure.type}: {failure.failure.text}"


def _states(checkpoint: WorkflowCheckpoint, path: str) -> Iterator[tuple[str, str]]:
    """Yield the state of every scope and instance."""
    place = f" of {path}" if path else ""
    for key, value in sorted(checkpoint.state.items()):
        yield f"state {key!r}{place}", repr(value)
    for executor_id, state in sorted(checkpoint.executor_states.items()):
        below = state.get("sub_workflow_checkpoint")
        if isinstance(below, WorkflowCheckpoint):  # shared by all messages
            yield from _states(below, f"{path}/{executor_id}".lstrip("/"))
        elif isinstance(below, Mapping):
            for number, inner in cast("Mapping[int, WorkflowCheckpoint]", below).items():
                yield from _states(inner, f"{path}/{executor_id}#{number}".lstrip("/"))
        else:
            yield f"what executor {executor_id!r}{place} keeps", repr(state)
