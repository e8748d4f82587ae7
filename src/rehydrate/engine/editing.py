"""Editing a run from outside of a turn: writes to the state of one scope, as a delta.

What a write does to the records is said where a barrier says it. Nothing here decides what may be edited.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehydrate.model.effects import SetState

from .run import Draft, OwnDelta, Run
from .state import set_whole


def edited(run: Run, path: str, writes: Iterable[SetState]) -> OwnDelta:
    """Return the change that replaces or deletes values of a scope's state; `run` is only read."""
    draft = Draft(run)
    for write in writes:
        set_whole(draft, path, write)
    return draft.delta()
