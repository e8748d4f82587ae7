"""One run in the memory store: its standing, its headers by number, its live records, and every version of each.

It holds bytes and rows. It does not check what it is given; the store does, under its lock.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

import msgspec

from rehydrate.model.checkpoint import At, Commit, Header, Offer, StoredEvent

from .archives import archived
from .inbox import numbered_offer, same_offer, taken_offer
from .retention import Version, needed
from .standing import Standing

_Versions = list[tuple[int, bytes | None]]


class MemoryRun:
    """One run."""

    __slots__ = ("events", "headers", "inbox", "live", "pid", "requests", "standing", "tags", "turns", "versions")

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.pid = 0
        self.headers: dict[int, Header] = {}
        self.live: dict[str, bytes] = {}
        self.events: list[StoredEvent] = []
        self.versions: dict[str, _Versions] = {}
        self.requests: set[str] = set()
        self.turns: set[tuple[str, str]] = set()
        self.tags: dict[str, int] = {}
        #: What was offered, by key; numbers go up in this order.
        self.inbox: dict[str, Offer] = {}

    def write(self, commit: Commit, standing: Standing) -> None:
        """Take a commit."""
        seq = commit.header.seq
        for key in commit.removes:
            self.live.pop(key, None)
            self.versions.setdefault(key, []).append((seq, None))
        for put in commit.puts:
            self.live[put.key] = put.data
            self.versions.setdefault(put.key, []).append((seq, put.data))
        if commit.taken:
            taken = set(commit.taken)
            self.inbox = {key: taken_offer(o) if o.number in taken else o for key, o in self.inbox.items()}
        self.headers[seq] = commit.header
        self.standing = standing
        self.pid = os.getpid()

    def records_at(self, seq: int) -> dict[str, bytes]:
        """Return the records of a checkpoint."""
        if seq == self.standing.seq:
            return dict(self.live)
        records: dict[str, bytes] = {}
        for key, versions in self.versions.items():
            newest = bisect_right(versions, seq, key=lambda version: version[0])
            data = versions[newest - 1][1] if newest else None
            if data is not None:
                records[key] = data
        return records

    def offer(self, offer: Offer) -> int:
        """Take something into the inbox. Raises `OfferConflictError`."""
        known = self.inbox.get(offer.key)
        if known is None:
            known = self.inbox[offer.key] = numbered_offer(offer, len(self.inbox) + 1)
        return same_offer(known, offer)

    def number_at(self, ref: At) -> int | None:
        """Return the number of a checkpoint, or `None` where there is none."""
        seq = self.tags.get(ref.at) if isinstance(ref.at, str) else ref.at
        return seq if seq in self.headers else None

    def forget(self, dropped: list[int]) -> None:
        """Drop checkpoints and the versions that no other one needs."""
        gone = set(dropped)
        staying = sorted(seq for seq in self.headers if seq not in gone)
        for seq in dropped:
            del self.headers[seq]
        for key, versions in list(self.versions.items()):
            keeps = needed([Version(seq, data is None) for seq, data in versions], staying)
            kept = [version for version, keep in zip(versions, keeps, strict=True) if keep]
            if kept:
                self.versions[key] = kept
            else:
                del self.versions[key]
        before: str | None = None
        for seq in staying:
            header = self.headers[seq]
            if header.previous_checkpoint_id != before:
                self.headers[seq] = msgspec.structs.replace(header, previous_checkpoint_id=before)
            before = header.checkpoint_id

    def commits(self) -> tuple[Commit, ...]:
        """Return what each checkpoint changed against the one before it, oldest first."""
        numbers = sorted(self.headers)
        puts: dict[int, dict[str, bytes | None]] = {seq: {} for seq in numbers}
        for key, versions in self.versions.items():
            for seq, data in versions:
                puts[numbers[bisect_left(numbers, seq)]][key] = data
        return tuple(archived(self.headers[seq], puts[seq]) for seq in numbers)
