"""What must hold of every commit that the database accepts, and of what its handles are told.

Kept up beside the database, from the commits alone. What is wrong is collected, and ends the world.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rehydrate.codecs.checkpoints import record_digest
from rehydrate.codecs.records import decode_record
from rehydrate.engine.invariants import check_run
from rehydrate.engine.run import Run, delta_of
from rehydrate.model.checkpoint import Commit, key_of
from rehydrate.model.records import Key, Record
from rehydrate.stores.standing import Standing

_MODULUS: Final = 1 << 256


class _Mirror:
    """One run as its commits make it."""

    def __init__(self) -> None:
        self.run = Run()
        self.digests: dict[str, int] = {}
        self.total = 0
        self.owner = ""


class Checks:
    """What was seen so far."""

    def __init__(self, found: Callable[[str], None], every: int = 1) -> None:
        self._found = found
        self._every = every
        self._mirrors: dict[str, _Mirror] = {}
        self._numbers = 0
        self.commits = 0
        self.claims = 0

    def next_number(self) -> int:
        """Return a number for a message."""
        self._numbers += 1
        return self._numbers

    def accepted(self, commit: Commit, before: Standing | None, events: int, process: str) -> None:
        """Check a commit that was taken; `before` is how its run stood, `events` its last event number."""
        self.commits += 1
        header, lease = commit.header, commit.lease
        where = f"commit {header.seq} of run {header.run_id} by {process}"
        mirror = self._mirrors.setdefault(header.run_id, _Mirror())
        seq = before.seq if before else -1
        head = before.checkpoint_id if before else None
        if header.seq != seq + 1:
            self._found(f"{where}: the head moves from number {seq}")
        if (commit.expected, header.previous_checkpoint_id) != (head, head):
            self._found(f"{where}: it stands on {commit.expected} and the head was {head}")
        epoch = before.epoch if before else 0
        if lease.epoch != epoch + lease.claim:
            self._found(f"{where}: it speaks for epoch {lease.epoch}, the run was at {epoch}")
        if lease.claim:
            self.claims += 1
            mirror.owner = lease.owner
        if lease.owner != mirror.owner or lease.owner != process:
            self._found(f"{where}: it is {lease.owner}'s and the run {mirror.owner}'s")
        if header.events - len(commit.events) != events:
            self._found(f"{where}: {len(commit.events)} events end at {header.events}, the last one was {events}")
        self._take(commit, mirror, where)

    def _take(self, commit: Commit, mirror: _Mirror, where: str) -> None:
        header = commit.header
        delta: dict[Key, Record | None] = {}
        for text in commit.removes:
            mirror.total -= mirror.digests.pop(text, 0)
            key = key_of(text)
            if key is not None:
                delta[key] = None
        for put in commit.puts:
            digest = record_digest(put.key, put.data)
            mirror.total += digest - mirror.digests.get(put.key, 0)
            mirror.digests[put.key] = digest
            key = key_of(put.key)
            if key is not None:
                delta[key] = decode_record(key[1], put.data)
        mirror.run.apply(delta_of(delta))
        if header.records != len(mirror.digests) or int.from_bytes(header.digest, "big") != mirror.total % _MODULUS:
            self._found(f"{where}: number or sum of its records is wrong")
        if header.seq % self._every == 0 or commit.lease.claim:
            for broken in check_run(mirror.run):
                self._found(f"{where}: {broken}")

    def claimed(self, commit: Commit, process: str, takeover: bool, alive: dict[str, str | None]) -> None:
        """Check a claim that was taken: who did not ask to take over has seen the run without a live owner."""
        owner = alive.get(commit.header.run_id)
        if not takeover and owner is not None and owner != process:
            self._found(f"claim {commit.header.seq} of run {commit.header.run_id} by {process}: {owner} was alive")

    def acknowledged(self, commit: Commit, *, is_there: bool) -> None:
        """Check a commit that a handle says is saved."""
        if not is_there:
            self._found(f"commit {commit.header.seq} of run {commit.header.run_id} was acknowledged and is not there")

    def refused(self, commit: Commit, why: str, *, was_taken: bool) -> None:
        """Check a commit that a handle says was refused."""
        if was_taken:
            self._found(f"commit {commit.header.seq} of run {commit.header.run_id} was taken and then refused: {why}")
