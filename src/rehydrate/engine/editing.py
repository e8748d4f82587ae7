"""Editing a run from outside of a turn: writes to the state of one scope, as a delta.

What a write does to the records is said where a barrier says it. Nothing here decides what may be edited.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehydrate.model.effects import SetState
from rehydrate.model.records import StateRecord
from rehydrate.model.sealed import Items

from .run import Draft, OwnDelta, Run
from .state import part_names, set_whole


def edited(run: Run, path: str, writes: Iterable[SetState]) -> OwnDelta:
    """Return the change that replaces or deletes values of a scope's state; `run` is only read.

    A list that has these very elements keeps the parts that it has.
    """
    draft = Draft(run)
    for write in writes:
        if not (isinstance(write.value, Items) and _has(draft, path, write.key, write.value)):
            set_whole(draft, path, write)
    return draft.delta()


def _has(draft: Draft, path: str, key: str, items: Items) -> bool:
    record: StateRecord | None = draft.get(path, "state", key)
    if record is None or record.value is not None or record.count != items.count:
        return False
    parts: list[Items] = [draft.get(path, "part", name).items for name in part_names(draft, path, key)]
    return b"".join(part.data for part in parts) == items.data
