"""Archives: a whole run on its way from one store to another, the same rules for every store.

What is taken in is checked like a run that is loaded, checkpoint by checkpoint. Nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rehydrate.codecs.checkpoints import record_digest
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, WrongCallError
from rehydrate.model.checkpoint import FORMAT, Archive, Commit, Header, Lease, Put

from .arguments import check_commit_arguments, check_offer, check_texts

_MODULUS: Final = 1 << 256


def archived(header: Header, changed: Mapping[str, bytes | None]) -> Commit:
    """Return the commit of an archive that makes a checkpoint; `None` is a record that was removed.

    In order of the keys, so that a run is the same archive in every store.
    """
    rows = sorted(changed.items())
    return Commit(
        header=header,
        expected=header.previous_checkpoint_id,
        lease=Lease("", 1, 0.0, claim=header.previous_checkpoint_id is None),
        puts=tuple(Put(key, data) for key, data in rows if data is not None),
        removes=tuple(key for key, data in rows if data is None),
    )


def adopted(archive: Archive) -> Iterator[Commit]:
    """Give the commits of an archive as a store writes them, the last one with the requests of the run."""
    last = len(archive.commits) - 1
    for index, commit in enumerate(archive.commits):
        header = commit.header
        lease = Lease("", 1, 0.0, claim=index == 0)
        requests = archive.requests if index == last else ()
        expected = archive.commits[index - 1].header.checkpoint_id if index else None
        yield Commit(header, expected, lease, commit.puts, commit.removes, requests)


def check_archive(archive: Archive) -> None:
    """Raise `WrongCallError` for what no store gave, and `CheckpointCorruptError` where a checkpoint is not whole."""
    if not archive.commits:
        raise WrongCallError("the archive holds no checkpoint.", "Pass what archive(run_id) gave.")
    head = archive.commits[-1].header
    if head.format > FORMAT:
        raise CheckpointFormatError(f"the archive of run {head.run_id!r}", head.format, FORMAT)
    for commit in adopted(archive):
        check_commit_arguments(commit)
    _check_chain(archive)
    _check_rows(archive)
    _check_sums(archive)


def _check_chain(archive: Archive) -> None:
    first = archive.commits[0].header
    before: Header | None = None
    for commit in archive.commits:
        header = commit.header
        if (header.run_id, header.workflow) != (first.run_id, first.workflow):
            raise _corrupt(archive, f"it holds a checkpoint of run {header.run_id!r} of {header.workflow!r}")
        if before is not None and (header.seq <= before.seq or header.events < before.events):
            raise _corrupt(archive, f"its checkpoint number {header.seq} follows number {before.seq}")
        if header.previous_checkpoint_id != (before.checkpoint_id if before else None):
            raise _corrupt(archive, f"the checkpoint before number {header.seq} is missing")
        before = header


def _check_rows(archive: Archive) -> None:
    run_id = archive.commits[0].header.run_id
    known = {commit.header.checkpoint_id for commit in archive.commits}
    others = {row.run_id for row in (*archive.requests, *archive.turns, *archive.offers)} - {run_id}
    if others:
        raise _corrupt(archive, f"it holds rows of run {min(others)!r}")
    if len(known) != len(archive.commits):
        raise _corrupt(archive, "two of its checkpoints have one id")
    for name, checkpoint_id in archive.tags.items():
        check_texts(name=name)
        if checkpoint_id not in known:
            raise _corrupt(archive, f"its name {name!r} stands for a checkpoint that it does not hold")
    for number, offer in enumerate(archive.offers, 1):
        check_offer(offer)
        if offer.number != number:
            raise _corrupt(archive, f"its offer {number} has number {offer.number}")
    numbers = [event.number for event in archive.events]
    if numbers != sorted(set(numbers)) or (numbers and numbers[-1] > archive.commits[-1].header.events):
        raise _corrupt(archive, "its events are not in order")
    for turn in archive.turns:
        check_texts(workflow=turn.workflow, key=turn.key, digest=turn.digest, checkpoint_id=turn.checkpoint_id)


def _check_sums(archive: Archive) -> None:
    digests: dict[str, int] = {}
    total = 0
    for commit in archive.commits:
        for key in commit.removes:
            total -= digests.pop(key, 0)
        for put in commit.puts:
            digest = record_digest(put.key, put.data)
            total += digest - digests.get(put.key, 0)
            digests[put.key] = digest
        header = commit.header
        if len(digests) != header.records or (total % _MODULUS).to_bytes(32, "big") != header.digest:
            raise _corrupt(archive, f"the sum of the records of checkpoint number {header.seq} is wrong")


def _corrupt(archive: Archive, reason: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"the archive of run {archive.commits[0].header.run_id!r}", reason)
