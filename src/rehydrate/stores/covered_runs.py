"""Covered runs: commits on their way into the store inside, and checkpoints on their way back.

What comes back is checked against sums that only owners of the key can make; nothing is taken on the word of the store.
"""

from __future__ import annotations

import os

import msgspec

from rehydrate.codecs.checkpoints import check_digests, record_digest
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Archive, At, CheckpointRef, Commit, Header, Latest, Put, Stored
from rehydrate.ports import CheckpointStorage

from .covered_archives import covered_archive
from .covers import Covers, OpenedHeader
from .run_sums import RunSum, RunSums
from .sealing import SALT_BYTES


class CoveredRuns:
    """The runs of one encrypted store, and the sums of those that are being written."""

    def __init__(self, store: CheckpointStorage, covers: Covers) -> None:
        self._store = store
        self._covers = covers
        self._sums = RunSums()

    async def commit(self, run: str, commit: Commit) -> None:
        """Write a commit of the run with this pseudonym. Raises what the store inside raises."""
        known = self._sums.take(run, commit.expected) if commit.expected is not None else None
        found = known or await self._read(run, commit.expected)
        await self._store.commit(self._covered(run, commit, found))
        # Only now: another commit may have the same id and lose, or win.
        if commit.lease.seconds > 0:
            self._sums.keep(run, commit.header, found)

    def covered(self, archive: Archive) -> Archive:
        """Return a whole run under its covers."""
        run = self._covers.names.run(archive.commits[-1].header.run_id)
        salt = os.urandom(SALT_BYTES)
        return covered_archive(self._covers, archive, salt, lambda commit, found: self._covered(run, commit, found))

    def forget(self, run: str) -> None:
        """Know nothing of a run any more."""
        self._sums.drop(run)

    def loaded(self, covered: Stored, ref: CheckpointRef) -> Stored:
        """Return the checkpoint under its covers, which `ref` has asked for. Raises as `Covers.open_header`."""
        covers = self._covers
        run = covered.header.run_id if isinstance(ref, str) else ref.run_id
        opened = covers.open_header(covered.header, run)
        header = opened.header
        is_head = covered.head.header.checkpoint_id == header.checkpoint_id
        what = f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r}"
        if not _is_at(header, ref) or (isinstance(ref, Latest) and not is_head):
            raise CheckpointCorruptError(what, "it is not the one that was asked for")
        found = self._checked_sum(opened, covered, what)
        records: dict[str, bytes] = {}
        for place, data in covered.records.items():
            key, record = covers.open_record(run, place, data, what)
            records[key] = record
        digests = {key: record_digest(key, record) for key, record in records.items()}
        check_digests(header, digests)
        head = covered.head
        newest = header if is_head else covers.open_header(head.header, run).header
        if is_head:
            self._sums.learn(run, header, found)
        return Stored(header, records, digests, msgspec.structs.replace(head, header=newest))

    async def _read(self, run: str, expected: str | None) -> RunSum:
        """Return the sum of a run at its head, from the store."""
        summand = self._covers.keys.summand
        stored = await self._store.load(Latest(run)) if expected is not None else None
        if stored is None or stored.header.checkpoint_id != expected:
            # A new run; or the head has moved, so that the store refuses what comes.
            return RunSum(os.urandom(SALT_BYTES), summand)
        opened = self._covers.open_header(stored.header, run)
        return self._checked_sum(opened, stored, f"checkpoint {expected!r} of run {opened.header.run_id!r}")

    def _checked_sum(self, opened: OpenedHeader, covered: Stored, what: str) -> RunSum:
        found = RunSum.of(opened.salt, self._covers.keys.summand, covered.digests)
        if found.keyed != opened.keyed:
            raise CheckpointCorruptError(what, "the sum of its records is wrong: one was lost, swapped or put back")
        return found

    def _covered(self, run: str, commit: Commit, found: RunSum) -> Commit:
        """Return a commit under its covers, with its records added to the sum."""
        covers, header, salt = self._covers, commit.header, found.salt
        removes = tuple([covers.names.record(run, key) for key in commit.removes])
        found.remove(removes)
        puts: list[Put] = []
        for put in commit.puts:
            place = covers.names.record(run, put.key)
            data = covers.record(run, place, salt, header.seq, put)
            found.put(place, data)
            puts.append(Put(place, data))
        first = header.events - len(commit.events) + 1
        events = commit.events if self._store.keeps_events else ()
        return Commit(
            header=covers.header(header, found),
            expected=commit.expected,
            lease=commit.lease,
            puts=tuple(puts),
            removes=removes,
            requests=tuple([covers.request(row, salt, header.seq) for row in commit.requests]),
            turn=covers.turn(commit.turn, salt, header.seq) if commit.turn else None,
            events=tuple([covers.event(run, salt, number, data) for number, data in enumerate(events, first)]),
            taken=commit.taken,
        )


def _is_at(header: Header, ref: CheckpointRef) -> bool:
    """Tell whether a checkpoint is where it was looked for; which one has a name is the store's to say."""
    if isinstance(ref, str):
        return header.checkpoint_id == ref
    return not isinstance(ref, At) or isinstance(ref.at, str) or ref.at == header.seq
