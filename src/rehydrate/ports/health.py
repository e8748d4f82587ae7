"""The protocol of a store that can say how it is, and what it says.

It is optional: nothing that a run needs depends on it. A look changes nothing, and makes nothing that is not there.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from .store import CheckpointStorage

#: `note`: good to know, or to be done at some time; `problem`: something does not work, or stands still.
Level: TypeAlias = Literal["ok", "note", "problem"]


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Something that was looked at: how it is, in one sentence, and what to do where that is something."""

    about: str
    level: Level
    text: str
    action: str = ""


class Examination(msgspec.Struct, frozen=True, gc=False):
    """What a store says of itself. Not `usable`: there is nothing to open, or opening it would change it."""

    findings: tuple[Finding, ...]
    usable: bool


@runtime_checkable
class Examined(Protocol):
    """What a store may have beside `CheckpointStorage`."""

    async def examine(self, *, full: bool = False) -> Examination:
        """Look at the place and at what it is made of; `full`: at all of it, however long that takes.

        What is wrong is in the findings; it raises nothing for it.
        """
        ...


async def examine_store(store: CheckpointStorage, *, full: bool = False) -> Examination:
    """Return what a store says of itself; one of another make says nothing."""
    if isinstance(store, Examined):
        return await store.examine(full=full)
    note = Finding("store", "note", f"{type(store).__name__} says nothing of itself, so only its runs are looked at.")
    return Examination((note,), usable=True)
