"""The calls of a recorded run: where each began, with its input in the records, and where it ended.

Reads headers, and records only where an answer may have come while a call ran. Runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rehydrate.engine import reading
from rehydrate.model.checkpoint import Cause, Header, Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import WorkflowCheckpoint, restored

_PAGE: Final = 100
_CLAIMS: Final = frozenset({Cause.MESSAGE, Cause.CONTINUATION, Cause.FORK, Cause.IMPORT})
#: A call that ended so and was continued was not over.
_CONTINUED: Final = frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED})


@dataclass(frozen=True)
class RecordedCall:
    """A call, and those that continued it: from the checkpoint that holds its input to its end. Where it was `answered`
    while it ran it ends there, and what follows is one more."""

    start: Header
    end: Header
    answered: bool = False

    @property
    def passed_over(self) -> str:
        """Why its end cannot be compared; empty where it can."""
        if self.answered:
            return "it was answered while it ran, and is compared from there on"
        if self.start.status is not Status.RUNNING:
            return "its beginning is not recorded"
        if self.end.status is Status.RUNNING:
            return "its end is not recorded"
        return "it was cancelled" if self.end.status is Status.CANCELLED else ""

    def __str__(self) -> str:
        return f"turn {self.start.turn}, from checkpoint {self.start.seq}"


async def recorded_calls(store: CheckpointStorage, run_id: str) -> list[RecordedCall]:
    """Return the calls of a run, oldest first."""
    calls: list[RecordedCall] = []
    before: Header | None = None
    for header in await _headers(store, run_id):
        if header.cause is Cause.EDIT:
            before = None  # what follows begins with what a person has set
            continue
        if before is None or header.seq != before.seq + 1 or _is_claim(before, header):
            calls.append(RecordedCall(header, header))
        elif header.cause is Cause.ANSWERS and await _came_from_outside(store, before, header):
            calls[-1] = replace(calls[-1], answered=True)
            calls.append(RecordedCall(header, header))
        else:
            calls[-1] = replace(calls[-1], end=header)
        before = header
    return calls


async def _headers(store: CheckpointStorage, run_id: str) -> list[Header]:
    """Return all headers, oldest first."""
    found: list[Header] = []
    page = await store.history(run_id, limit=_PAGE)
    while page:
        found += page
        page = await store.history(run_id, before=page[-1].seq, limit=_PAGE)
    return found[::-1]


def _is_claim(before: Header, header: Header) -> bool:
    """Tell whether a checkpoint begins a call that does not just continue one that had not come to its end."""
    if header.cause is Cause.CONTINUATION and before.status in _CONTINUED:
        return False
    return header.cause in _CLAIMS or header.turn != before.turn


async def _came_from_outside(store: CheckpointStorage, before: Header, header: Header) -> bool:
    """Tell whether an answer within a turn is one from outside; those of executors are given by the run itself."""
    one, other = await _loaded(store, before), await _loaded(store, header)
    still = set(other.pending_request_ids)
    asked = [each for each in reading.open_requests(one.records) if not each.record.intercepted]
    return any(each.request_id not in still for each in asked)


async def _loaded(store: CheckpointStorage, header: Header) -> WorkflowCheckpoint:
    stored = await store.load(header.checkpoint_id)
    assert stored is not None  # noqa: S101  (it has just been listed)
    return restored(stored)
