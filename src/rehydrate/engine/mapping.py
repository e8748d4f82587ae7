"""State that goes into a sub-workflow when it starts and comes out of it when it ends, by the mapping of its node.

Moves sealed bytes and opens none. A key that is not there is not written; a list arrives as one part.
"""

from __future__ import annotations

from collections.abc import Mapping

from rehydrate.model.effects import SetState
from rehydrate.model.records import PartRecord, StateRecord
from rehydrate.model.sealed import Items, Sealed

from .change import Change
from .run import Draft
from .scopes import is_over
from .state import Write, Writes, part_names, set_whole


def copy_in(draft: Draft, parent: str, child: str, keys: Mapping[str, str]) -> None:
    """Copy state of the parent, as it was committed, into a scope."""
    for source, target in keys.items():
        value = _value(draft, parent, source)
        if value is not None:
            set_whole(draft, child, SetState(target, value))


def add_left(
    change: Change, writes: Writes, executor: str, children: list[tuple[int, str]], keys: Mapping[str, str]
) -> None:
    """Add what scopes of an executor that end now leave in their parent's state; `children` are number and path."""
    if not keys:
        return
    for number, child in children:
        if not is_over(change, child):
            continue
        for source, target in keys.items():
            value = _value(change.draft, child, source)
            if value is not None:
                writes.setdefault(target, []).append(Write(executor, number, SetState(target, value)))


def _value(draft: Draft, path: str, key: str) -> Sealed | Items | None:
    record: StateRecord | None = draft.get(path, "state", key)
    if record is None or record.value is not None:
        return record.value if record is not None else None
    parts: list[PartRecord] = [draft.get(path, "part", name) for name in part_names(draft, path, key)]
    return Items(b"".join(part.items.data for part in parts), record.count)
