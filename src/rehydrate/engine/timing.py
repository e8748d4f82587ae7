"""Time limits of sub-workflows: they run while a scope is busy and stand still while it waits.

What is left stands in a record. The time comes in with each transition; nothing here looks at a clock.
"""

from __future__ import annotations

from rehydrate.ids import scope_of, slot
from rehydrate.model.effects import Failure
from rehydrate.model.records import FailureRecord, TimerRecord

from .change import Change
from .commands import StartTimer, StopScope, StopTimer
from .inputs import TimeUp
from .reading import busy
from .run import Draft


def start_timer(change: Change, path: str, seconds: float) -> None:
    """Let the time of a scope run."""
    deadline = change.time + seconds
    change.draft.put(path, "timer", "", TimerRecord(seconds, deadline))
    change.then.append(StartTimer(path, seconds, deadline))


def pause_timer(change: Change, path: str) -> None:
    """Let the time of a scope that came to rest stand still, as it was noted at its barrier."""
    record: TimerRecord | None = change.draft.get(path, "timer", "")
    if record is not None and record.deadline is not None:
        change.draft.put(path, "timer", "", TimerRecord(record.left))
        change.now.append(StopTimer(path))


def note_time(change: Change, path: str) -> None:
    """Note at a barrier what is left, so that a process that dies loses no more than a superstep's time.

    It never grows: what was used stays used where a clock is set back.
    """
    record: TimerRecord | None = change.draft.get(path, "timer", "")
    if record is not None and record.deadline is not None:
        left = min(record.left, max(0.0, record.deadline - change.time))
        change.draft.put(path, "timer", "", TimerRecord(left, record.deadline))


def resume_timer(change: Change, path: str) -> None:
    """Let the time of a scope that goes on run, by today's limit; what it has used counts."""
    limit = _limit(change, path)
    record: TimerRecord | None = change.draft.get(path, "timer", "")
    if limit is not None:
        start_timer(change, path, limit if record is None else min(record.left, limit))
    elif record is not None:
        change.draft.remove(path, "timer", "")


def stand_still(change: Change, unfinished: list[str]) -> None:
    """Stop the times of scopes that are found unfinished: that nobody drove them is not their time.

    One whose time was up gets a new one.
    """
    draft = change.draft
    for path in unfinished:
        record: TimerRecord | None = draft.get(path, "timer", "")
        if record is not None:
            renewed = _limit(change, path) if is_up(draft, path) else None
            draft.put(path, "timer", "", TimerRecord(record.left if renewed is None else renewed))


def go_on(change: Change, unfinished: list[str]) -> None:
    """Let the times of all scopes run that are busy and whose time stands still."""
    for path in unfinished:
        record: TimerRecord | None = change.draft.get(path, "timer", "")
        if path and (record is None or record.deadline is None):
            resume_timer(change, path)


def expire(change: Change, item: TimeUp) -> None:
    """Stop a scope whose time is up, with all below it, unless it rests or goes on with another time by now."""
    draft = change.draft
    record: TimerRecord | None = draft.get(item.path, "timer", "")
    if record is None or record.deadline != item.deadline or _is_stopped(draft, item.path):
        return
    if not busy(change, item.path):
        return
    limit = _limit(change, item.path)
    text = f"it was busy for more than {limit:g} seconds"
    failure = Failure("timeout", "SubWorkflowTimeoutError", text, facts=(f"{limit:g}",))
    draft.put(item.path, "failure", "", FailureRecord(failure, ""))
    change.now.append(StopScope(item.path))


def is_up(draft: Draft, path: str) -> bool:
    """Tell whether the time of a scope is up."""
    record: FailureRecord | None = draft.get(path, "failure", "")
    return record is not None and record.failure.kind == "timeout"


def _is_stopped(draft: Draft, path: str) -> bool:
    while path:
        if is_up(draft, path):
            return True
        path = slot(path)[0]
    return False


def _limit(change: Change, path: str) -> float | None:
    parent, segment = slot(path)
    return change.graph_at(parent).nesting[scope_of(segment)[0]].timeout if path else None
