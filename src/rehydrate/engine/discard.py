"""`on_unfinished="discard"`: unfinished work is dropped at every depth, what was committed stays.

Open requests stay, and with them the scopes and the held messages that belong to their trails.
"""

from __future__ import annotations

from typing import Final

from rehydrate.ids import ancestors, join_slot, slot
from rehydrate.model.events import WorkDiscarded
from rehydrate.model.records import StepRecord, Trail

from .change import Change
from .passes import pass_number
from .requests import get_request, has_requests, standing_requests
from .run import Draft, is_live
from .scopes import trails_of
from .sharing import forget_inputs
from .steps import all_scopes, drop_scope
from .waiting_passes import end_idle_passes, take_due
from .waking import Arrivals

#: Kinds of what joins and maps hold.
HOLDERS: Final = ("join", "map", "gather")


def discard(change: Change, answered: Arrivals) -> list[str]:
    """Drop unfinished work; return the scopes in which that may end a child or free a join.

    `answered` is what arrives by this call's answers.
    """
    draft = change.draft
    trails = {path: [arrival.trail for arrival in arrivals] for path, arrivals in answered.items()}
    scopes = all_scopes(change)
    kept = {path for path in scopes if has_requests(draft, path)} | answered.keys()
    kept |= {above for path in kept for above in ancestors(path)} | {""}
    for path in scopes:
        if path and slot(path)[0] in kept and not draft.scope(path).trail:  # a shared scope never ends
            kept.add(path)
    what: list[str] = []
    for path in scopes:
        what += _name(change, path)
        for kind in ("done", "unrouted", "failure", "attempt", "inbox", "outbox", "limit"):
            draft.clear(path, kind)
        for name, _ in draft.items(path, "alias"):  # of invocations; open requests keep theirs
            if get_request(draft, path, name) is None:
                draft.remove(path, "alias", name)
        parent, segment = slot(path)
        step: StepRecord | None = draft.get(parent, "step", segment)
        if step is not None and change.graph_at(path).body is not None:
            for delivery in step.deliveries:
                take_due(change, path, str(pass_number(delivery)))
        draft.remove(parent, "step", segment)
        change.plans.pop(path, None)
        draft.remove(parent, "rest", segment)
    for path in scopes:
        if path not in kept and is_live(draft, path):
            what += [f"{path}: {kind} {name}" for kind in HOLDERS for name in _held(draft, path, kind)]
            drop_scope(change, path)
    what += end_idle_passes(change, {(path, a.name) for path, arrivals in answered.items() for a in arrivals})
    held: dict[str, list[str]] = {}
    for path in reversed(scopes):  # what a scope still works for is known when all below it is
        if path in kept:
            held[path] = _drop_held(change, path, trails.get(path, []))
            forget_inputs(change, path, trails.get(path, []))
    for path in scopes:
        what += [f"{path}: {name}".lstrip(": ") for name in held.get(path, [])]
    if what:
        change.events.append(WorkDiscarded(what=tuple(what)))
    return [path for path in scopes if path in kept and (draft.count(path, "join") or draft.count(path, "map"))]


def _held(draft: Draft, path: str, kind: str) -> list[str]:
    return sorted((name for name, _ in draft.items(path, kind)), key=int)


def _name(change: Change, path: str) -> list[str]:
    """Name what a scope loses, by path."""
    draft = change.draft
    parent, segment = slot(path)
    step: StepRecord | None = draft.get(parent, "step", segment)
    found = [f"{path}/{d.executor}#{d.activation}".lstrip("/") for d in step.deliveries] if step else []
    for kind in ("outbox", "inbox"):
        names = sorted((name for name, _ in draft.items(path, kind)), key=int)
        found += [f"{path}: {kind} {name}".lstrip(": ") for name in names]
    return found


def _drop_held(change: Change, path: str, answered: list[Trail]) -> list[str]:
    """Drop what joins and maps hold of trails without an open request (or an answer of this call) in or below the
    scope."""
    draft = change.draft
    alive = list(answered)
    alive += [trail for _, trail in standing_requests(draft, path)]
    for segment, record in draft.items(path, "scope"):
        if is_live(draft, join_slot(path, segment)):
            alive += trails_of(draft, join_slot(path, segment), record)
    dropped: list[str] = []
    for name in _held(draft, path, "join"):
        trail = draft.get(path, "join", name).trail
        if not any(other[: len(trail)] == trail for other in alive):
            draft.remove(path, "join", name)
            dropped.append(f"join {name}")
    maps = {number for trail in alive for number in trail[1::2]}
    for name in _held(draft, path, "gather"):
        if draft.get(path, "gather", name).map not in maps:
            draft.remove(path, "gather", name)
            dropped.append(f"gather {name}")
    for name in _held(draft, path, "map"):
        if int(name) not in maps:
            draft.remove(path, "map", name)
            dropped.append(f"map {name}")
    return dropped
