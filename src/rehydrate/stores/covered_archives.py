"""Whole runs under covers, on their way from one store to another: opened as one, covered as one.

An archive of the store inside is as closed as the store; the one that an encrypted store gives is as open as its runs.
"""

from __future__ import annotations

from collections.abc import Callable

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Archive, Commit, Put, StoredEvent

from .covers import Covers
from .run_sums import RunSum


def opened_archive(covers: Covers, run_id: str, archive: Archive) -> Archive:
    """Return the archive of a run under its covers, each checkpoint checked. Raises as `Covers.open_header`.

    In the order of the opened names: an archive is the same, whichever store it comes from.
    """
    run, what = covers.names.run(run_id), f"a turn of run {run_id!r}"
    turns = [covers.open_turn(row, (row.workflow, row.key), what) for row in archive.turns]
    return Archive(
        commits=_opened_commits(covers, run_id, archive),
        events=tuple([covers.open_event(run, event) for event in archive.events]),
        requests=tuple([covers.open_request(row, row.request_id) for row in archive.requests]),
        turns=tuple(sorted(turns, key=lambda row: (row.workflow, row.key))),
        tags=dict(sorted((covers.texts.open_tag(run, name), found) for name, found in archive.tags.items())),
        offers=tuple([covers.open_offer(run_id, offer) for offer in archive.offers]),
    )


def covered_archive(
    covers: Covers, archive: Archive, salt: bytes, cover: Callable[[Commit, RunSum], Commit]
) -> Archive:
    """Return an archive under covers of its own; `cover` is what covers a commit."""
    head = archive.commits[-1].header
    run = covers.names.run(head.run_id)
    found = RunSum(salt, covers.keys.summand)
    return Archive(
        commits=tuple([cover(commit, found) for commit in archive.commits]),
        events=tuple([StoredEvent(e.number, covers.event(run, salt, e.number, e.data)) for e in archive.events]),
        requests=tuple([covers.request(row, salt, head.seq) for row in archive.requests]),
        turns=tuple([covers.turn(row, salt, head.seq) for row in archive.turns]),
        tags={covers.texts.tag(run, name): found for name, found in archive.tags.items()},
        offers=tuple([covers.offer(offer) for offer in archive.offers]),
    )


def _opened_commits(covers: Covers, run_id: str, archive: Archive) -> tuple[Commit, ...]:
    run = covers.names.run(run_id)
    keys: dict[str, str] = {}
    found: RunSum | None = None
    commits: list[Commit] = []
    for commit in archive.commits:
        opened = covers.open_header(commit.header, run)
        what = f"checkpoint {opened.header.checkpoint_id!r} of run {run_id!r}"
        found = found or RunSum(opened.salt, covers.keys.summand)
        # A key that was never written has no name here, and its removal is of no use.
        removes = tuple(sorted([keys[place] for place in commit.removes if place in keys]))
        found.remove(commit.removes)
        puts: list[Put] = []
        for put in commit.puts:
            key, data = covers.open_record(run, put.key, put.data, what)
            keys[put.key] = key
            found.put(put.key, put.data)
            puts.append(Put(key, data))
        if found.keyed != opened.keyed or opened.salt != found.salt:
            raise CheckpointCorruptError(what, "the sum of its records is wrong: one was lost, swapped or put back")
        expected = opened.header.previous_checkpoint_id
        puts.sort(key=lambda put: put.key)
        commits.append(Commit(opened.header, expected, commit.lease, tuple(puts), removes))
    return tuple(commits)
