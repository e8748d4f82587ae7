"""State that goes into a sub-workflow when it starts and comes out of it when it ends, by the mapping of its node.

Moves sealed bytes and opens none. A key that is not there is not written; a list arrives as one part.
"""

from __future__ import annotations

from collections.abc import Mapping

from rehydrate.ids import join_slot
from rehydrate.model.effects import SetState
from rehydrate.model.records import StateRecord
from rehydrate.model.sealed import Items, Sealed

from .change import Change
from .run import Draft
from .scopes import is_over
from .splicing import grows, items_added, items_set, sealed_value
from .state import Write, Writes, note_write, set_whole


def copy_in(draft: Draft, parent: str, child: str, keys: Mapping[str, str]) -> None:
    """Copy state of the parent, as it was committed, into a scope."""
    for source, target in keys.items():
        value = _value(draft, parent, source)
        if value is not None:
            set_whole(draft, child, SetState(target, value))


def add_left(change: Change, path: str, resting: Mapping[str, list[tuple[int, str]]], writes: Writes) -> None:
    """Add what child scopes leave that end at this barrier, in the place of their executors among the others.

    `resting` are number and segment, by executor, of those that came to rest.
    """
    graph = change.graph_at(path)
    left: list[Write] = []
    for executor, found in resting.items():
        if graph.nesting[executor].outputs:
            left += _left_by(change, path, executor, found)
    for write in left:
        note_write(writes, write)
    for key in {write.effect.key for write in left}:
        writes[key].sort(key=lambda write: (graph.position[write.executor], write.chain[1]))


def _left_by(change: Change, parent: str, executor: str, resting: list[tuple[int, str]]) -> list[Write]:
    """Return the writes of one executor's scopes; one that works for an item of a map writes on its behalf."""
    keys = change.graph_at(parent).nesting[executor].outputs
    found: list[Write] = []
    for number, segment in sorted(resting):
        child = join_slot(parent, segment)
        if not is_over(change, child):
            continue
        trail = change.draft.scope(child).trail
        chain = (executor, trail if len(trail) > 1 else ())
        values = [(target, _value(change.draft, child, source)) for source, target in keys.items()]
        found += [Write(chain, number, SetState(key, value)) for key, value in values if value is not None]
    return found


def _value(draft: Draft, path: str, key: str) -> Sealed | Items | None:
    record: StateRecord | None = draft.get(path, "state", key)
    if record is None:
        return None
    if not grows(record):
        return sealed_value(draft, path, key, record)
    parts = items_set(draft, path, key, record) + items_added(draft, path, key, record)
    return Items(b"".join(part.data for part in parts), record.count)
