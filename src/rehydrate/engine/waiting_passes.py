"""Passes that wait: which of them a timer lets go on, and which nothing can let go on any more.

Asked at a claim. How a pass waits, goes on and ends is in `passes`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rehydrate.model.passes import CallRecord, PassRecord

from .change import Change
from .passes import NOTHING, called_scopes, end_pass, running
from .requests import has_requests, requests_in
from .steps import Arrival, all_scopes


def passes_due(change: Change) -> dict[str, list[Arrival]]:
    """Return the waiting passes that have a timer which is up, by scope."""
    found: dict[str, list[Arrival]] = {}
    if not change.draft.totals["pass"]:
        return found
    for path in all_scopes(change):
        for name, record in sorted(change.draft.items(path, "pass"), key=lambda item: int(item[0])):
            if record.due is None or record.due > change.time or record.payload is None:
                continue
            body = change.graph_at(path).body
            if body is not None and running(change, path, int(name)) is None:
                found.setdefault(path, []).append(Arrival(body, NOTHING, record.trail, "pass", name))
    return found


def take_due(change: Change, path: str, name: str) -> None:
    """Let a pass that goes on wait no more for timers that are up: what is left is when the next one is."""
    draft = change.draft
    record: PassRecord | None = draft.get(path, "pass", name)
    if record is None or record.due is None or record.due > change.time:
        return
    timers: list[CallRecord] = [
        call for at, call in draft.items(path, "call") if at.startswith(f"{name}:") and call.kind == "timer"
    ]
    left = [call.due for call in timers if call.due is not None and call.due > change.time and not call.given_up]
    draft.put(path, "pass", name, msgspec.structs.replace(record, due=min(left, default=None)))


def end_idle_passes(change: Change, kept: Iterable[tuple[str, str]] = ()) -> list[str]:
    """End the passes that nothing can let go on: no open question, no timer, no called scope with anything left.

    `kept` are those, by scope and number, that something has come back for; the scope may be one of a graph. Returns
    what ended, by path and number.
    """
    draft = change.draft
    ended: list[str] = []
    if not draft.totals["pass"]:
        return ended
    spared = set(kept)
    arriving = {path for path, _ in spared}
    for path in reversed(all_scopes(change)):  # what is below decides about what called it
        passes = draft.items(path, "pass")
        if not passes:
            continue
        asking = {request.activation for _, request in requests_in(draft, path)}
        going_on = {item.name for _, item in draft.items(path, "inbox") if item.kind == "pass"}
        for name, record in passes:
            number = int(name)
            if (path, name) in spared or name in going_on or number in asking or record.due is not None:
                continue
            if running(change, path, number) is not None:
                continue
            if any(_has_more(change, child, arriving) for child in called_scopes(draft, path, number)):
                continue
            end_pass(change, path, number)
            ended.append(f"{path}: pass {name}".lstrip(": "))
    return ended


def _has_more(change: Change, path: str, arriving: set[str]) -> bool:
    """Tell whether a scope or one below it has anything left that may go on, or something arrives there."""
    kinds = ("join", "map", "pass", "inbox")
    draft = change.draft
    return any(
        below in arriving
        or draft.step(below) is not None
        or has_requests(draft, below)
        or any(draft.count(below, kind) for kind in kinds)
        for below in all_scopes(change, path)
    )
