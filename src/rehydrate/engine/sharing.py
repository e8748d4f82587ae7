"""Shared scopes: one for all messages of its node, which takes them in order, each when it is at rest.

Which message is next stands in the records: the scope's number of inputs is the activation of the last one it took. An
input is known as long as something descends from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehydrate.ids import join_slot, scope_of, slot
from rehydrate.model.records import RestRecord, Trail

from .change import Change
from .commands import LookAgain
from .passes import come_back, put_in_inbox
from .plan import plan_of
from .requests import standing_requests
from .scopes import is_over, trails_of
from .steps import start_scope
from .timing import pause_timer


def come_to_rest(change: Change, path: str, *, shared: bool) -> None:
    """Leave a mark of rest in the parent, unless a message waits there that a shared scope takes now."""
    if change.draft.totals["timer"]:
        pause_timer(change, path)
    parent, segment = slot(path)
    if not shared and change.draft.scope(path).call:
        _come_back(change, path, parent, segment)
    elif not shared or not _take_next(change, parent, segment):
        change.draft.put(parent, "rest", segment, RestRecord())


def _come_back(change: Change, path: str, parent: str, segment: str) -> None:
    """Give what a called scope came to back to its caller once it is over; until then that may wait for it."""
    if not is_over(change, path):
        change.draft.put(parent, "rest", segment, RestRecord())
        change.then.append(LookAgain())
        return
    back = come_back(change, path)
    if back is not None:
        put_in_inbox(change.draft, parent, back)


def _take_next(change: Change, parent: str, segment: str) -> bool:
    """Let a shared scope that came to rest take the next message of its parent's superstep; `False` without one."""
    plan = plan_of(change, parent)
    if plan is None:
        return False
    executor, _ = scope_of(segment)
    taken = change.draft.get(parent, "scope", segment).inputs
    for delivery in plan.scopes:
        if delivery.executor == executor and delivery.activation > taken:
            start_scope(change, parent, plan.step, delivery)
            return True
    return False


def forget_inputs(change: Change, path: str, in_flight: Iterable[Trail] = ()) -> None:
    """Forget the inputs of a scope at rest that nothing descends from any more."""
    draft = change.draft
    known = draft.items(path, "input")
    if not known:
        return
    alive = {trail[0] for trail in in_flight}
    alive.update(trail[0] for _, trail in standing_requests(draft, path))
    for kind in ("join", "map", "gather"):
        alive.update(record.trail[0] for _, record in draft.items(path, kind))
    alive.update(record.input for _, record in draft.items(path, "outbox"))
    for segment, record in draft.items(path, "scope"):
        alive.update(trail[0] for trail in trails_of(draft, join_slot(path, segment), record))
    for name, _ in known:
        if int(name) not in alive:
            draft.remove(path, "input", name)
