"""What holds of a child scope: whether it is over, and the trails of its parent that it stands for.

Reads records and changes none. A shared scope has no trail of its own; each of its inputs has one.
"""

from __future__ import annotations

from rehydrate.ids import join_slot, scope_of
from rehydrate.model.records import InputRecord, OutboxRecord, ScopeRecord, Trail

from .change import Change
from .requests import has_requests
from .run import Draft


def is_over(change: Change, path: str) -> bool:
    """Tell whether a scope at rest has nothing open in or below it; unless it is shared, it ends then."""
    return not has_requests(change.draft, path) and not has_open_scopes(change, path)


def has_open_scopes(change: Change, path: str) -> bool:
    """Tell whether a scope has children that are not over; a shared one stays when it is."""
    if not change.draft.count(path, "scope"):
        return False
    nesting = change.graph_at(path).nesting
    for segment, _ in change.draft.items(path, "scope"):
        child = join_slot(path, segment)
        is_shared = nesting[scope_of(segment)[0]].shared
        if not is_shared or change.draft.step(child) is not None or not is_over(change, child):
            return True
    return False


def trails_of(draft: Draft, path: str, scope: ScopeRecord) -> list[Trail]:
    """Return the trails, in the parent, that a child scope works on behalf of."""
    if scope.trail:
        return [scope.trail]
    return [record.trail for _, record in draft.items(path, "input")]


def trail_of(draft: Draft, path: str, item: OutboxRecord) -> Trail:
    """Return the trail, in the parent, of something that a child scope yielded or asked."""
    trail = draft.scope(path).trail
    if trail:
        return trail
    record: InputRecord = draft.get(path, "input", str(item.input))
    return record.trail
