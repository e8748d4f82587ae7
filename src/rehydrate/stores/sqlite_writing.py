"""What the SQLite store writes: commits, leases, and the end of a run.

Every function runs inside a write transaction of `sqlite_batch`, which undoes it where it raises. The rules of a
commit are `standing`'s; here they only become rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RehydrateError, RunBusyError
from rehydrate.model.checkpoint import Commit, Header, StoredEvent, TurnRow

from .checkpoint_rows import Written, id_cell, id_in_cell, seal_written
from .packing import LARGE
from .rows import seal_row
from .sqlite_checkpoints import CHECKPOINT, open_checkpoint
from .sqlite_database import Database, Value
from .sqlite_inbox import take_offers
from .sqlite_packing import Source, pack_records, replaced_records
from .sqlite_reading import RunRow, find_run, is_alive
from .standing import Standing, check_commit, id_in_use, numbered_events, standing_after, standing_renewed

_Rows: TypeAlias = list[tuple[Value, ...]]
#: Big data is cut into rows of this many bytes: SQLite writes them in half the time of one big row, and a huge record
#: can be hashed in pieces while the rest is read (docs/decisions/0003-sqlite-locking.md).
PART_BYTES: Final = 256 * 1024

_NEW_RUN: Final = "INSERT INTO rehydrate_run (run_id, workflow, status, seq, due, standing) VALUES (?, ?, ?, ?, ?, ?)"
_MOVE_RUN: Final = "UPDATE rehydrate_run SET seq = ?, standing = ? WHERE no = ?"
# Apart from the former, as naming an indexed column in an UPDATE costs the index even where nothing changes.
_MOVE_RUN_AND_STATUS: Final = "UPDATE rehydrate_run SET seq = ?, standing = ?, status = ?, due = ? WHERE no = ?"
_RENEW: Final = "UPDATE rehydrate_run SET standing = ? WHERE no = ?"
_CHECKPOINT: Final = "INSERT INTO rehydrate_checkpoint VALUES (NULL, ?, ?, ?, ?, ?, ?, 0)"
_IN_THE_WAY: Final = """
SELECT checkpoint.checkpoint_id, checkpoint.seq, run.run_id FROM rehydrate_checkpoint AS checkpoint
LEFT JOIN rehydrate_run AS run ON run.no = checkpoint.run
WHERE checkpoint.checkpoint_id = ? OR (checkpoint.run = ? AND checkpoint.seq = ?)
"""
_RECORD: Final = "INSERT INTO rehydrate_record VALUES (?, ?, ?)"
_LIVE: Final = "INSERT OR REPLACE INTO rehydrate_live VALUES (?, ?, ?, ?)"
_NOT_LIVE: Final = "DELETE FROM rehydrate_live WHERE run = ? AND key = ?"
_EVENT: Final = "INSERT INTO rehydrate_event VALUES (NULL, ?, ?, ?)"
_REQUEST: Final = """
INSERT INTO rehydrate_request VALUES (?, ?, ?, ?, ?)
ON CONFLICT (request_id) DO UPDATE SET body = excluded.body, is_open = excluded.is_open WHERE run = excluded.run
"""
_TURN: Final = """
INSERT INTO rehydrate_turn VALUES (?, ?, ?, ?, ?)
ON CONFLICT (workflow, key) DO UPDATE SET body = excluded.body WHERE run = excluded.run AND number = excluded.number
"""
_DELETE_RECORDS: Final = "DELETE FROM rehydrate_record WHERE id BETWEEN ? AND ?"
_WRITTEN: Final = f"SELECT {CHECKPOINT}, forgotten FROM rehydrate_checkpoint AS checkpoint WHERE run = ?"  # noqa: S608
_DELETE_ROWS: Final = (
    "DELETE FROM rehydrate_live WHERE run = ?",
    "DELETE FROM rehydrate_packed WHERE run = ?",
    "DELETE FROM rehydrate_request WHERE run = ?",
    "DELETE FROM rehydrate_turn WHERE run = ?",
    "DELETE FROM rehydrate_event WHERE run = ?",
    "DELETE FROM rehydrate_tag WHERE run = ?",
    "DELETE FROM rehydrate_offer WHERE run = ?",
    "DELETE FROM rehydrate_checkpoint WHERE run = ?",
    "DELETE FROM rehydrate_run WHERE no = ?",
)


def write_commit(database: Database, commit: Commit, now: Callable[[], float]) -> None:
    """Write a commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
    run = find_run(database, commit.header.run_id)
    check_commit(commit, run.standing if run else None)
    if commit.lease.seconds > 0:
        database.owners.hold(commit.lease.owner)
    no = _move_run(database, run, commit.header, standing_after(commit, now()))
    first = database.next_record()
    rows, live, sources = _record_rows(first, no, commit)
    database.use_records(first + len(rows))
    try:
        _write_checkpoint(database, no, Written(commit.header, first, first + len(rows)), run)
    except sqlite3.IntegrityError:
        raise _in_the_way(database, no, commit.header, is_new=run is None) from None
    old = replaced_records(database, no, commit)
    if commit.removes:
        database.execute_many(_NOT_LIVE, ((no, key) for key in commit.removes))
    if rows:
        database.execute_many(_RECORD, rows)
    if live:
        database.execute_many(_LIVE, live)
    if old:
        pack_records(database, no, old, sources, {key: first + index for index, key in enumerate(commit.removes)})
    if commit.events:
        write_events(database, no, numbered_events(commit))
    if commit.taken:
        take_offers(database, no, commit.header.run_id, commit.taken)
    if commit.requests or commit.turn is not None:
        _write_names(database, no, commit)


def write_events(database: Database, no: int, events: Iterable[StoredEvent]) -> None:
    """Write events that have their numbers."""
    database.execute_many(_EVENT, ((no, event.number, event.data) for event in events))


def write_turn(database: Database, no: int, turn: TurnRow) -> None:
    """Write a turn by its key. Raises `CommitConflictError` where the key is another turn's."""
    cursor = database.execute(_TURN, (turn.workflow, turn.key, no, turn.number, seal_row(turn)))
    if cursor.rowcount != 1:
        raise CommitConflictError(turn.run_id, f"key {turn.key!r} as its own", "another turn's")


def renew_lease(database: Database, run_id: str, owner: str, epoch: int, until: float) -> None:
    """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
    run = find_run(database, run_id)
    renewed = standing_renewed(run.standing if run else None, run_id, owner, epoch, until)
    if run is not None:
        database.owners.hold(owner)
        database.execute(_RENEW, (seal_row(renewed), run.no))


def delete_run(database: Database, run_id: str, now: Callable[[], float]) -> bool:
    """Delete a run and all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
    run = find_run(database, run_id)
    if run is None:
        return False
    owner = run.standing.owner
    if owner is not None and is_alive(database, run.standing, now()):
        raise RunBusyError(run_id, owner)
    what = f"a checkpoint of run {run_id!r} in store {database.store}"
    written = [
        open_checkpoint(run.standing, tuple(row), what, is_forgotten=bool(forgotten))
        for *row, forgotten in database.execute(_WRITTEN, (run.no,)).fetchall()
    ]
    database.execute_many(_DELETE_RECORDS, ((row.first, row.end - 1) for row in written))
    for statement in _DELETE_ROWS:
        database.execute(statement, (run.no,))
    return True


def _move_run(database: Database, run: RunRow | None, header: Header, standing: Standing) -> int:
    sealed, status = seal_row(standing), header.status.value
    if run is None:
        row = (header.run_id, header.workflow, status, header.seq, header.due, sealed)
        no = database.execute(_NEW_RUN, row).lastrowid
        if no is None:
            raise CommitConflictError(header.run_id, "a new run", "no row was made")
        return no
    if (status, header.due) == (run.status, run.due):
        database.execute(_MOVE_RUN, (header.seq, sealed, run.no))
    else:
        database.execute(_MOVE_RUN_AND_STATUS, (header.seq, sealed, status, header.due, run.no))
    return run.no


def _write_checkpoint(database: Database, no: int, written: Written, run: RunRow | None) -> None:
    header = written.header
    before = run.standing.checkpoint_id if run is not None and run.standing.seq == header.seq - 1 else None
    sealed = seal_written(written, before)
    database.execute(
        _CHECKPOINT, (no, header.seq, id_cell(header.checkpoint_id), sealed, written.first, written.end - 1)
    )


def _in_the_way(database: Database, no: int, header: Header, *, is_new: bool) -> RehydrateError:
    """Return what keeps a checkpoint from being written: another one of its id, or one that a lost run left behind."""
    row = database.execute(_IN_THE_WAY, (id_cell(header.checkpoint_id), no, header.seq)).fetchone()
    what = f"a checkpoint in store {database.store}"
    if row is None:
        return CheckpointCorruptError(what, "an index has it and its table does not")
    checkpoint_id, seq, run_id = id_in_cell(row[0]), row[1], row[2]
    if run_id is None or (is_new and run_id == header.run_id):
        what = f"checkpoint {checkpoint_id} in store {database.store}"
        return CheckpointCorruptError(what, "it is there and the row of its run is not")
    if checkpoint_id != header.checkpoint_id:
        what = f"number {seq} taken by its checkpoint {checkpoint_id}"
        return CommitConflictError(header.run_id, "a free number", what)
    return id_in_use(header, run_id, seq)


def _record_rows(number: int, no: int, commit: Commit) -> tuple[_Rows, _Rows, list[Source]]:
    """Return the rows of the commit's records, numbered from `number` on, the rows of what is live, and large records.

    The removals come first.
    """
    rows: _Rows = []
    live: _Rows = []
    sources: list[Source] = []
    for key in commit.removes:
        rows.append((number, key, None))
        number += 1
    for key, data in ((put.key, put.data) for put in commit.puts):
        if len(data) <= PART_BYTES:
            parts: list[tuple[Value, ...]] = [(number, key, data)]
        else:
            parts = _part_rows(number, key, memoryview(data))
        rows += parts
        live.append((no, key, number, len(parts)))
        if len(data) >= LARGE:
            sources.append(Source(number, len(parts), data))
        number += len(parts)
    return rows, live, sources


def _part_rows(number: int, key: str, data: memoryview) -> list[tuple[Value, ...]]:
    starts = range(0, len(data), PART_BYTES)
    return [
        (number + index, None if index else key, data[start : start + PART_BYTES]) for index, start in enumerate(starts)
    ]


def _write_names(database: Database, no: int, commit: Commit) -> None:
    header, requests, turn = commit.header, commit.requests, commit.turn
    if requests:
        rows = ((row.request_id, no, header.workflow, int(row.state == "open"), seal_row(row)) for row in requests)
        written = database.execute_many(_REQUEST, rows)
        if written != len(requests):
            raise CommitConflictError(header.run_id, "requests of its own", "one of another run")
    if turn is not None:
        write_turn(database, no, turn)
