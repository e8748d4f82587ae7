"""What the SQLite store reads: heads, checkpoints with their records, requests, turns, the history of a run.

Every function runs inside a transaction of `sqlite_batch` and writes nothing. What does not fit together is
`CheckpointCorruptError`, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import CheckpointRef, Head, Header, Latest, RequestRow, Stored, StoredEvent, TurnRow

from .checkpoint_rows import Written, id_cell
from .records_sum import RecordSum
from .rows import TagRow, open_row
from .sqlite_checkpoints import CHECKPOINT, open_checkpoint
from .sqlite_database import Database
from .sqlite_versions import rows_at
from .standing import Standing

_Row = TypeVar("_Row", bound=msgspec.Struct)
_RUN: Final = "SELECT no, status, due, standing FROM rehydrate_run WHERE run_id = ?"
_RUN_OF: Final = "SELECT run_id FROM rehydrate_run WHERE no = ?"
_HEADER: Final = f"SELECT {CHECKPOINT} FROM rehydrate_checkpoint AS checkpoint WHERE run = ? AND seq = ?"  # noqa: S608
_PLACE: Final = "SELECT run, seq FROM rehydrate_checkpoint WHERE checkpoint_id = ? AND NOT forgotten"
_IS_THERE: Final = "SELECT 1 FROM rehydrate_checkpoint WHERE run = ? AND seq = ? AND NOT forgotten"
_TAGGED: Final = "SELECT body FROM rehydrate_tag WHERE run = ? AND name = ?"
_LIVE: Final = """
SELECT live.key, record.data FROM rehydrate_live AS live
JOIN rehydrate_record AS record ON record.id BETWEEN live.record AND live.record + live.parts - 1
WHERE live.run = ? ORDER BY live.key, record.id
"""
_LIVE_ONE: Final = """
SELECT record.key, record.data FROM rehydrate_live AS live
JOIN rehydrate_record AS record ON record.id BETWEEN live.record AND live.record + live.parts - 1
WHERE live.run = ? AND live.key = ? ORDER BY record.id
"""
_HISTORY: Final = f"""
SELECT {CHECKPOINT} FROM rehydrate_checkpoint AS checkpoint
WHERE run = ? AND seq < ? AND NOT forgotten ORDER BY seq DESC LIMIT ?
"""  # noqa: S608
_EVENTS: Final = "SELECT number, body FROM rehydrate_event WHERE run = ? AND number > ? ORDER BY number LIMIT ?"
_HAS_OFFERS: Final = "SELECT 1 FROM rehydrate_offer WHERE run = ? AND NOT is_taken LIMIT 1"
_REQUEST: Final = "SELECT body FROM rehydrate_request WHERE request_id = ?"
_TURN: Final = "SELECT body FROM rehydrate_turn WHERE workflow = ? AND key = ?"
#: Parts of a long record that are hashed together while the next are read; a shorter record is hashed when it is whole.
_PIECE: Final = 8
#: No sequence number is higher.
NO_END: Final = 2**63 - 1


class RunRow(NamedTuple):
    """A run's row: its number in this file, the status and the timer it is indexed by, and how it stands."""

    no: int
    status: str
    due: float | None
    standing: Standing


def find_run(database: Database, run_id: str) -> RunRow | None:
    """Return a run's row, or `None`."""
    row = database.execute(_RUN, (run_id,)).fetchone()
    if row is None:
        return None
    standing = open_row(row[3], Standing, f"run {run_id!r} in store {database.store}")
    if standing.run_id != run_id:
        raise CheckpointCorruptError(f"run {run_id!r} in store {database.store}", "its row belongs to another run")
    return RunRow(row[0], row[1], row[2], standing)


def is_alive(database: Database, standing: Standing, now: float) -> bool:
    """Say whether a run's lease holds and its owner's process is there."""
    owner = standing.owner
    return owner is not None and standing.lease_end > now and database.owners.lives(owner)


def read_head(database: Database, run_id: str, now: Callable[[], float]) -> Head | None:
    """Return the run's head, or `None`."""
    run = find_run(database, run_id)
    return _head(database, run, now()) if run else None


def has_news(database: Database, run_id: str, after: int, now: Callable[[], float]) -> bool:
    """Say whether a run has events behind a number, or is driven by nobody."""
    head = read_head(database, run_id, now)
    return head is None or not head.alive or head.header.events > after


def read_checkpoint(database: Database, ref: CheckpointRef, now: Callable[[], float]) -> Stored | None:
    """Return a checkpoint with its records, checked against its header's sum, or `None`."""
    place = _place(database, ref)
    if place is None:
        return None
    run, seq = place
    head = _head(database, run, now())
    header = head.header if seq == head.header.seq else _header(database, run, seq)
    if isinstance(ref, str) and header.checkpoint_id != ref:
        raise CheckpointCorruptError(f"checkpoint {ref!r} in store {database.store}", "its header is another one's")
    rows = database.execute(_LIVE, (run.no,)) if seq == head.header.seq else rows_at(database, run.no, seq)
    records, digests = _records(database, header, rows)
    return Stored(header=header, records=records, digests=digests, head=head)


def find_checkpoint(database: Database, checkpoint_id: str) -> tuple[int, int] | None:
    """Return the number of a checkpoint's run, and its own number in it."""
    return database.execute(_PLACE, (id_cell(checkpoint_id),)).fetchone()


def _place(database: Database, ref: CheckpointRef) -> tuple[RunRow, int] | None:
    """Return the run of a reference, and the number of the checkpoint in it."""
    if isinstance(ref, str):
        place = find_checkpoint(database, ref)
        return (_run_of(database, place[0], ref), place[1]) if place else None
    run = find_run(database, ref.run_id)
    if run is None:
        return None
    if isinstance(ref, Latest):
        return run, run.standing.seq
    if isinstance(ref.at, int):
        there = abs(ref.at) <= NO_END and database.execute(_IS_THERE, (run.no, ref.at)).fetchone()
        return (run, ref.at) if there else None
    row = database.execute(_TAGGED, (run.no, ref.at)).fetchone()
    if row is None:
        return None
    what = f"name {ref.at!r} of run {ref.run_id!r} in store {database.store}"
    tag = open_row(row[0], TagRow, what)
    place = find_checkpoint(database, tag.checkpoint_id)
    if (tag.run_id, tag.name) != (ref.run_id, ref.at) or place is None or place[0] != run.no:
        raise CheckpointCorruptError(what, "it stands for nothing that is there")
    return run, place[1]


def read_records(database: Database, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
    """Return those of the head's records that exist."""
    run = find_run(database, run_id)
    if run is None:
        return {}
    records: dict[str, bytes] = {}
    for key in keys:
        parts = database.execute(_LIVE_ONE, (run.no, key)).fetchall()
        if not parts:
            continue
        what = f"record {key!r} of run {run_id!r} in store {database.store}"
        if parts[0][0] != key:
            raise CheckpointCorruptError(what, "the record in its place belongs to another key")
        records[key] = b"".join(as_bytes(part, what) for _, part in parts)
    return records


def read_request(database: Database, request_id: str) -> RequestRow | None:
    """Return a request of any run."""
    what = f"request {request_id!r} in store {database.store}"
    found = _find(database, _REQUEST, (request_id,), RequestRow, what)
    if found is not None and found.request_id != request_id:
        raise CheckpointCorruptError(what, "its row is another request's")
    return found


def read_turn(database: Database, workflow: str, key: str) -> TurnRow | None:
    """Return the turn that a key belongs to."""
    what = f"the turn of key {key!r} in store {database.store}"
    found = _find(database, _TURN, (workflow, key), TurnRow, what)
    if found is not None and (found.workflow, found.key) != (workflow, key):
        raise CheckpointCorruptError(what, "its row is another turn's")
    return found


def read_history(database: Database, run_id: str, before: int | None, limit: int) -> list[Header]:
    """Return headers of a run, newest first, below `before`."""
    run = find_run(database, run_id)
    if run is None:
        return []
    end = NO_END if before is None else max(min(before, NO_END), -NO_END)
    rows = database.execute(_HISTORY, (run.no, end, min(limit, NO_END))).fetchall()
    what = f"a checkpoint of run {run_id!r} in store {database.store}"
    return [open_checkpoint(run.standing, row, what).header for row in rows]


def read_events(database: Database, run_id: str, after: int, limit: int) -> list[StoredEvent]:
    """Return the kept events of a run by number, behind `after`."""
    run = find_run(database, run_id)
    if run is None:
        return []
    rows = database.execute(_EVENTS, (run.no, min(after, NO_END), min(limit, NO_END))).fetchall()
    what = f"an event of run {run_id!r} in store {database.store}"
    return [StoredEvent(number, as_bytes(body, what)) for number, body in rows]


def _find(database: Database, statement: str, names: tuple[str, ...], kind: type[_Row], what: str) -> _Row | None:
    row = database.execute(statement, names).fetchone()
    return open_row(row[0], kind, what) if row else None


def _run_of(database: Database, no: int, checkpoint_id: str) -> RunRow:
    row = database.execute(_RUN_OF, (no,)).fetchone()
    run = find_run(database, row[0]) if row else None
    if run is None:
        raise CheckpointCorruptError(f"checkpoint {checkpoint_id!r} in store {database.store}", "its run is not there")
    return run


def _head(database: Database, run: RunRow, now: float) -> Head:
    standing = run.standing
    header = _header(database, run, standing.seq)
    if header.checkpoint_id != standing.checkpoint_id:
        raise CheckpointCorruptError(f"run {standing.run_id!r} in store {database.store}", "its head is another's")
    offered = database.execute(_HAS_OFFERS, (run.no,)).fetchone() is not None
    return Head(header, standing.owner, standing.epoch, is_alive(database, standing, now), offered)


def _header(database: Database, run: RunRow, seq: int) -> Header:
    return read_written(database, run, seq).header


def read_written(database: Database, run: RunRow, seq: int) -> Written:
    """Return a checkpoint by its number. Raises `CheckpointCorruptError` where it is not there, or another one is."""
    run_id = run.standing.run_id
    what = f"checkpoint number {seq} of run {run_id!r} in store {database.store}"
    row = database.execute(_HEADER, (run.no, seq)).fetchone()
    if row is None:
        raise CheckpointCorruptError(what, "it is not there")
    written = open_checkpoint(run.standing, row, what)
    if written.header.seq != seq:
        raise CheckpointCorruptError(what, "its header is another one's")
    return written


def _records(
    database: Database, header: Header, rows: Iterable[tuple[object, object]]
) -> tuple[dict[str, bytes], dict[str, int]]:
    """Collect rows, in which the parts of a record follow each other, and check them against the header.

    Returns the records and their digests.
    """
    what = f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r} in store {database.store}"
    records: dict[str, bytes] = {}
    with RecordSum() as record_sum:
        for key, parts in groupby(rows, itemgetter(0)):
            if not isinstance(key, str):
                raise CheckpointCorruptError(what, "a key is not text")
            records[key] = _record(key, parts, record_sum, what)
        return records, record_sum.checked(header)


def _record(key: str, parts: Iterator[tuple[object, object]], record_sum: RecordSum, what: str) -> bytes:
    """Return a record from the rows of its parts, and add it to the sum."""
    first = as_bytes(next(parts)[1], what)
    second = next(parts, None)
    if second is not None:
        return _joined(key, (as_bytes(data, what) for _, data in chain([second], parts)), first, record_sum)
    record_sum.add(key, first)
    return first


def _joined(key: str, parts: Iterator[bytes], first: bytes, record_sum: RecordSum) -> bytes:
    # A list of all parts would need the memory, and the time to get it, twice.
    joined = BytesIO()
    joined.write(first)
    piece, is_long = [first], False
    for part in parts:
        joined.write(part)
        piece.append(part)
        if len(piece) == _PIECE:
            record_sum.add_piece(key, piece)
            piece, is_long = [], True
    data = joined.getvalue()
    if is_long:
        record_sum.add_piece(key, piece)
    else:
        record_sum.add(key, data)
    return data


def as_bytes(value: object, what: str) -> bytes:
    """Return what a row holds as its data. Raises `CheckpointCorruptError` for what is no bytes."""
    if not isinstance(value, bytes):
        raise CheckpointCorruptError(what, "a record is not bytes")
    return value
