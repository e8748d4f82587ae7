"""Whole runs in PostgreSQL, read out as an archive and taken in from one, each in one transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import msgspec
import psycopg

from rehydrate.errors import CheckpointCorruptError, CommitConflictError
from rehydrate.model.checkpoint import Archive, Commit, RequestRow, StoredEvent, TurnRow
from rehydrate.stores.archives import adopted, archived, check_archive
from rehydrate.stores.rows import open_row, seal_row
from rehydrate.stores.standing import standing_after

from .failures import is_of_rows
from .headers import Named, header_columns, open_header
from .inbox import all_offers, inserted
from .layout import Place, folded, laid_out, live_row
from .names import data_of, id_cell, turn_name
from .records import bytes_at, entries_of
from .retention import tagged, tags_of
from .runs import check_of, find_run
from .session import Asked, Session
from .waves import NEW_LIVE, checkpoint_body, columns, request_rows
from .writing import refused

_HEADERS: Final = f"""
SELECT {header_columns("c")} FROM rehydrate.checkpoint AS c WHERE c.run = %s AND c.body IS NOT NULL ORDER BY c.seq
"""
_RECORDS: Final = "SELECT seq, entries FROM rehydrate.checkpoint WHERE run = %s ORDER BY seq"
_EVENTS: Final = "SELECT number, body FROM rehydrate.event WHERE run = %s ORDER BY number"
_REQUESTS: Final = "SELECT body FROM rehydrate.request WHERE run = %s ORDER BY request_id"
_TURNS: Final = "SELECT body FROM rehydrate.turn WHERE run = %s"
_NEW_RUN: Final = """
INSERT INTO rehydrate.run (run_id, workflow, status, checkpoint_id, seq, epoch, owner, lease_end, live_to, due, seal)
VALUES (%s, %s, %s, %s, %s, %s, NULL, 0, %s, %s, %s) ON CONFLICT (run_id) DO NOTHING RETURNING no
"""
_NEW_CHECKPOINTS: Final = """
INSERT INTO rehydrate.checkpoint (run, seq, checkpoint_id, body, entries, data)
SELECT %s, unnest(%b::bigint[]), unnest(%b::bytea[]), unnest(%b::bytea[]), unnest(%b::bytea[]), unnest(%b::bytea[])
"""
_NEW_REQUESTS: Final = """
INSERT INTO rehydrate.request (run, workflow, request_id, is_open, body)
SELECT %s, %s, * FROM unnest(%b::bytea[], %b::boolean[], %b::bytea[])
"""
_NEW_TURNS: Final = """
INSERT INTO rehydrate.turn (run, name, number, body) SELECT %s, * FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[])
"""
_NEW_EVENTS: Final = """
INSERT INTO rehydrate.event (run, number, body) SELECT %s, * FROM unnest(%b::bigint[], %b::bytea[])
"""
#: Bytes of records that one statement writes.
_CHUNK: Final = 8 * 1024 * 1024


def read_archive(session: Session, run_id: str) -> Archive | None:
    """Return a whole run, or `None`. Raises `CheckpointCorruptError` where any of it is."""
    with session.reading():
        run = find_run(session, run_id, None)
        if run is None:
            return None
        what = f"run {run_id!r} in store {session.store}"
        statements: list[Asked] = [
            (statement, (run.no,)) for statement in (_HEADERS, _RECORDS, _EVENTS, _REQUESTS, _TURNS)
        ]
        bodies, rows, events, requests, turns = session.ask_all(statements)
        tags, offers = tags_of(session, run.no, run_id), all_offers(session, run.no, run_id)
        commits = entries_of(rows, what)
        places = [place for did in commits for place in folded([did]).values() if place is not None]
        data = iter(bytes_at(session, run.no, places, what))
    named = Named(run_id, run.standing.workflow)
    headers = {row[0]: open_header(session, named, row[0], tuple(row)) for row in bodies}
    changed: dict[int, dict[str, bytes | None]] = {seq: {} for seq in headers}
    numbers = sorted(headers)
    for seq, entries in commits:
        # What a forgotten checkpoint wrote counts as the next one's.
        index = bisect_left(numbers, seq)
        if index == len(numbers):
            raise CheckpointCorruptError(what, "it has records of a checkpoint that is not there")
        for entry in entries:
            changed[numbers[index]][entry.key] = None if entry.removed else next(data)[1]
    known = [open_row(row[0], TurnRow, what) for row in turns]
    archive = Archive(
        commits=tuple(archived(headers[seq], changed[seq]) for seq in numbers),
        events=tuple(StoredEvent(number, data_of(body, what)) for number, body in events),
        requests=tuple(open_row(row[0], RequestRow, what) for row in requests),
        turns=tuple(sorted(known, key=lambda turn: (turn.workflow, turn.key))),
        tags=tags,
        offers=tuple(offers),
    )
    check_archive(archive)
    return archive


def write_archive(session: Session, archive: Archive, *, again: bool) -> None:
    """Write a whole run that was checked. Raises `CommitConflictError` where it, an id or a key is there already."""
    commits = list(adopted(archive))
    header = commits[-1].header
    try:
        with session.writing():
            made = session.ask(*_new_run(commits[-1]))
            if not made:
                known = find_run(session, header.run_id, None)
                if again and known is not None and known.standing.checkpoint_id == header.checkpoint_id:
                    return
                found = f"head {known.standing.checkpoint_id}" if known else "one that was deleted just now"
                raise CommitConflictError(header.run_id, "no such run", found)
            no = made[0][0]
            live: dict[str, Place | None] = {}
            for chunk in _chunks(commits):
                session.ask(*_history(session.store, no, chunk, live))
            session.ask_all(_beside(no, archive, commits[-1], live))
    except psycopg.Error as error:
        if not is_of_rows(error):
            raise
        session.undo()
        raise refused(session, commits, error) from error


def _new_run(last: Commit) -> Asked:
    header, standing = last.header, msgspec.structs.replace(standing_after(last, 0.0), epoch=1)
    names = (header.run_id.encode(), header.workflow.encode(), header.status.value, header.checkpoint_id.encode())
    return _NEW_RUN, (*names, header.seq, standing.epoch, header.seq, header.due, check_of(standing))


def _chunks(commits: list[Commit]) -> Iterator[list[Commit]]:
    chunk: list[Commit] = []
    size = 0
    for commit in commits:
        chunk.append(commit)
        size += sum(len(put.data) for put in commit.puts)
        if size > _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _history(store: str, no: int, commits: list[Commit], live: dict[str, Place | None]) -> Asked:
    """Return the statement that writes commits, and note what is live after them."""
    rows: list[tuple[object, ...]] = []
    for commit in commits:
        header, layout = commit.header, laid_out(commit, store)
        rows.append((header.seq, id_cell(header.checkpoint_id), checkpoint_body(commit), layout.sealed, layout.data))
        live.update(folded([(header.seq, layout.entries)]))
    return _NEW_CHECKPOINTS, (no, *columns(5, rows))


def _beside(no: int, archive: Archive, last: Commit, live: dict[str, Place | None]) -> list[Asked]:
    header = last.header
    turns = [(turn_name(t.workflow, t.key), t.number, seal_row(t)) for t in archive.turns]
    return [
        (NEW_LIVE, (no, *columns(6, [live_row(place) for place in live.values() if place is not None]))),
        (_NEW_REQUESTS, (no, header.workflow.encode(), *columns(3, request_rows(last)))),
        (_NEW_TURNS, (no, *columns(3, turns))),
        (_NEW_EVENTS, (no, *columns(2, [(e.number, e.data) for e in archive.events]))),
        *(tagged(no, header.run_id, name, checkpoint_id) for name, checkpoint_id in archive.tags.items()),
        inserted(no, archive.offers),
    ]
