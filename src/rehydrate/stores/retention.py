"""Retention: which versions of records the checkpoints that stay still need, the same rule for every store.

A version is a record, or the mark that its key was removed, as one commit wrote it. Nothing here reads or writes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Version(NamedTuple):
    """What one commit, by its sequence number, did to a key: it wrote it, or removed it."""

    seq: int
    removed: bool


def droppable(head: int, tagged: Collection[int], known: Collection[int], asked: Sequence[int]) -> list[int]:
    """Return which of the checkpoints asked for may go: those that are there, but for the head and what has a name."""
    return sorted({seq for seq in asked if seq in known and seq != head and seq not in tagged})


def needed(versions: Sequence[Version], staying: Sequence[int]) -> list[bool]:
    """Say of each version of one key, oldest first, whether a checkpoint that stays needs it; `staying` is sorted.

    A written one is needed by the checkpoints up to the next version. A mark is needed where it ends an older version
    that is kept: without it that one would be seen again.
    """
    found: list[bool] = []
    hides = False
    for index, version in enumerate(versions):
        if version.removed:
            found.append(hides)
            hides = False
            continue
        end = versions[index + 1].seq if index + 1 < len(versions) else None
        first = bisect_left(staying, version.seq)
        kept = first < len(staying) and (end is None or staying[first] < end)
        found.append(kept)
        hides = hides or kept
    return found
