"""Whole runs in SQLite, read out as an archive and taken in from one.

Every function runs inside a transaction of `sqlite_batch`, so that a run is there whole or not at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import Final

from rehydrate.errors import CheckpointCorruptError, CommitConflictError
from rehydrate.model.checkpoint import Archive, Header, RequestRow, StoredEvent, TurnRow

from .archives import adopted, archived, check_archive
from .rows import open_row
from .sqlite_checkpoints import CHECKPOINT, open_checkpoint
from .sqlite_database import Database
from .sqlite_inbox import all_offers, insert_offers
from .sqlite_packing import packed_records, read_packed
from .sqlite_reading import as_bytes, find_run
from .sqlite_retention import tags_of, write_tag
from .sqlite_writing import write_commit, write_events, write_turn

_HEADERS: Final = f"""
SELECT seq, {CHECKPOINT} FROM rehydrate_checkpoint AS checkpoint WHERE run = ? AND NOT forgotten ORDER BY seq
"""  # noqa: S608
_ROWS: Final = """
SELECT record.id, checkpoint.seq, record.key, record.data FROM rehydrate_checkpoint AS checkpoint
JOIN rehydrate_record AS record ON record.id BETWEEN checkpoint.first AND checkpoint.last
WHERE checkpoint.run = ? ORDER BY checkpoint.seq, record.id
"""
_BOUNDS: Final = "SELECT first, seq FROM rehydrate_checkpoint WHERE run = ? ORDER BY seq"
_EVENTS: Final = "SELECT number, body FROM rehydrate_event WHERE run = ? ORDER BY number"
_REQUESTS: Final = "SELECT body FROM rehydrate_request WHERE run = ? ORDER BY request_id"
_TURNS: Final = "SELECT body FROM rehydrate_turn WHERE run = ? ORDER BY workflow, key"


def read_archive(database: Database, run_id: str) -> Archive | None:
    """Return a whole run, or `None`. Raises `CheckpointCorruptError` where any of it is."""
    run = find_run(database, run_id)
    if run is None:
        return None
    what = f"run {run_id!r} in store {database.store}"
    headers: dict[int, Header] = {}
    for seq, *row in database.execute(_HEADERS, (run.no,)).fetchall():
        headers[seq] = open_checkpoint(run.standing, tuple(row), what).header
    changed = _changes(database, run.no, sorted(headers), what)
    events = database.execute(_EVENTS, (run.no,)).fetchall()
    archive = Archive(
        commits=tuple(archived(headers[seq], changed[seq]) for seq in sorted(headers)),
        events=tuple(StoredEvent(number, as_bytes(body, what)) for number, body in events),
        requests=tuple(open_row(row[0], RequestRow, what) for row in database.execute(_REQUESTS, (run.no,)).fetchall()),
        turns=tuple(open_row(row[0], TurnRow, what) for row in database.execute(_TURNS, (run.no,)).fetchall()),
        tags=tags_of(database, run.no, run_id),
        offers=tuple(all_offers(database, run.no, run_id)),
    )
    check_archive(archive)
    return archive


def write_archive(database: Database, archive: Archive) -> None:
    """Write a whole run that was checked. Raises `CommitConflictError` where it, an id or a key is there already."""
    run_id = archive.commits[0].header.run_id
    known = find_run(database, run_id)
    if known is not None:
        raise CommitConflictError(run_id, "no such run", f"head {known.standing.checkpoint_id}")
    for commit in adopted(archive):
        write_commit(database, commit, _no_time)
    run = find_run(database, run_id)
    assert run is not None  # noqa: S101  (just written)
    write_events(database, run.no, archive.events)
    for turn in archive.turns:
        write_turn(database, run.no, turn)
    for name, checkpoint_id in archive.tags.items():
        write_tag(database, run_id, name, checkpoint_id)
    insert_offers(database, run.no, archive.offers)


def _changes(database: Database, no: int, numbers: list[int], what: str) -> dict[int, dict[str, bytes | None]]:
    """Return what each checkpoint that is there changed; what a forgotten one wrote counts as the next one's."""
    parts: dict[int, dict[str, list[bytes] | None]] = {seq: {} for seq in numbers}
    current: list[bytes] | None = None
    for _, seq, key, data in _rows(database, no):
        if key is not None:
            index = bisect_left(numbers, seq)
            if index == len(numbers):
                raise CheckpointCorruptError(what, "it has records of a checkpoint that is not there")
            current = None if data is None else []
            parts[numbers[index]][key] = current
        if current is not None:
            current.append(as_bytes(data, what))
    return {
        seq: {key: None if rows is None else b"".join(rows) for key, rows in changed.items()}
        for seq, changed in parts.items()
    }


def _rows(database: Database, no: int) -> list[tuple[int, int, str | None, object]]:
    """Return all rows of a run in the order in which they were written, also those that lie in others."""
    rows = database.execute(_ROWS, (no,)).fetchall()
    packed = packed_records(database, no)
    if not packed:
        return rows
    bounds = database.execute(_BOUNDS, (no,)).fetchall()
    firsts = [first for first, _ in bounds]
    for record, data in read_packed(database, packed):
        rows.append((record.number, bounds[bisect_right(firsts, record.number) - 1][1], record.key, data))
    return sorted(rows, key=itemgetter(0))


def _no_time() -> float:
    return 0.0
