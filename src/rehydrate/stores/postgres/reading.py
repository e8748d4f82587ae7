"""What the PostgreSQL store reads: heads, checkpoints with their records, requests, turns, pages of headers.

What does not fit together is `CheckpointCorruptError`, never a shorter answer. Records are read by `records`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec
from psycopg.rows import TupleRow

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import At, CheckpointRef, Head, Header, Latest, RequestRow, Stored, StoredEvent, TurnRow
from rehydrate.stores.arguments import RunsAsked
from rehydrate.stores.records_sum import RecordSum
from rehydrate.stores.rows import TagRow, open_row

from .headers import HEADER_WIDTH, Named, header_columns, open_header
from .names import data_of, id_cell, text_of, turn_name
from .records import bytes_at, head_of, head_places, live_records, records_at
from .runs import COLUMNS, WIDTH, RunRow, run_of
from .session import Session

_Row = TypeVar("_Row", bound=msgspec.Struct)
#: Whether something is in a run's inbox; the last column of what it is read with.
_OFFERED: Final = "EXISTS (SELECT 1 FROM rehydrate.offer AS o WHERE o.run = run.no AND o.data IS NOT NULL)"
_HEAD: Final = f"""
SELECT {COLUMNS}, {header_columns("head")}, {_OFFERED} FROM rehydrate.run AS run
LEFT JOIN rehydrate.checkpoint AS head ON head.run = run.no AND head.seq = run.seq
WHERE run.run_id = %s
"""
_PLACE: Final = f"""
SELECT {COLUMNS}, {header_columns("head")}, {header_columns("at")}, {_OFFERED} FROM rehydrate.checkpoint AS at
LEFT JOIN rehydrate.run AS run ON run.no = at.run
LEFT JOIN rehydrate.checkpoint AS head ON head.run = run.no AND head.seq = run.seq
WHERE at.checkpoint_id = %s
"""
_AT_NUMBER: Final = f"""
SELECT {COLUMNS}, {header_columns("head")}, {header_columns("at")}, {_OFFERED} FROM rehydrate.run AS run
JOIN rehydrate.checkpoint AS at ON at.run = run.no AND at.seq = %s AND at.body IS NOT NULL
LEFT JOIN rehydrate.checkpoint AS head ON head.run = run.no AND head.seq = run.seq
WHERE run.run_id = %s
"""
_TAGGED: Final = """
SELECT t.body FROM rehydrate.tag AS t JOIN rehydrate.run AS run ON run.no = t.run WHERE run.run_id = %s AND t.name = %s
"""
_HISTORY: Final = f"""
SELECT run.run_id, run.workflow, {header_columns("c")} FROM rehydrate.run AS run
JOIN rehydrate.checkpoint AS c ON c.run = run.no AND c.seq < %s AND c.body IS NOT NULL
WHERE run.run_id = %s ORDER BY c.seq DESC LIMIT %s
"""
_EVENTS: Final = """
SELECT e.number, e.body FROM rehydrate.event AS e
WHERE e.run = (SELECT no FROM rehydrate.run WHERE run_id = %s) AND e.number > %s ORDER BY e.number LIMIT %s
"""
_RUNS: Final = f"""
SELECT run.run_id, run.workflow, run.seq, {header_columns("head")} FROM (
    SELECT no, run_id, workflow, seq FROM rehydrate.run AS run WHERE {{where}} ORDER BY run_id LIMIT %s
) AS run
LEFT JOIN rehydrate.checkpoint AS head ON head.run = run.no AND head.seq = run.seq ORDER BY run.run_id
"""
_IS_DUE: Final = "run.no IN (SELECT d.no FROM rehydrate.run AS d WHERE d.due <= %s)"
_IS_OFFERED: Final = "run.no IN (SELECT o.run FROM rehydrate.offer AS o WHERE o.data IS NOT NULL)"
_REQUEST: Final = "SELECT body FROM rehydrate.request WHERE request_id = %s"
_OPEN: Final = """
SELECT request_id, body FROM rehydrate.request WHERE is_open AND {where} ORDER BY request_id LIMIT %s
"""
_TURN: Final = "SELECT body FROM rehydrate.turn WHERE name = %s"
#: No number is higher.
_NO_END: Final = 2**63 - 1


def read_head(session: Session, run_id: str, now: float | None) -> Head | None:
    """Return the run's head, or `None`."""
    rows = session.ask(_HEAD, (now, run_id.encode()))
    return _head(session, run_of(session, rows[0], run_id), rows[0]) if rows else None


def read_checkpoint(session: Session, ref: CheckpointRef, now: float | None) -> Stored | None:
    """Return a checkpoint with its records, checked against its header's sum, or `None`."""
    if not isinstance(ref, At):
        # Of a head all that is small comes in one round trip. Where a checkpoint was forgotten before the rest was
        # read, that is not what the header says, and it is looked for again.
        with contextlib.suppress(CheckpointCorruptError):
            found = _head_at_once(session, ref, now)
            if found is not None:
                return found
    with session.reading():
        place = _place(session, ref, now)
        if place is None:
            return None
        run, head, header = place
        seq = None if header.seq == head.header.seq else header.seq
        records = records_at(session, run.no, seq, _what(session, header))
    return _checked(head, header, records)


def read_records(session: Session, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
    """Return those of the head's records that exist."""
    if not keys:
        return {}
    with session.reading():
        return live_records(session, run_id, keys)


def read_request(session: Session, request_id: str) -> RequestRow | None:
    """Return a request of any run."""
    what = f"request {request_id!r} in store {session.store}"
    found = _find(session, _REQUEST, request_id.encode(), RequestRow, what)
    if found is not None and found.request_id != request_id:
        raise CheckpointCorruptError(what, "its row is another request's")
    return found


def read_turn(session: Session, workflow: str, key: str) -> TurnRow | None:
    """Return the turn that a key belongs to."""
    what = f"the turn of key {key!r} in store {session.store}"
    found = _find(session, _TURN, turn_name(workflow, key), TurnRow, what)
    if found is not None and (found.workflow, found.key) != (workflow, key):
        raise CheckpointCorruptError(what, "its row is another turn's")
    return found


def read_requests(
    session: Session, *, workflow: str | None, run_id: str | None, after: str | None, limit: int
) -> list[RequestRow]:
    """Return open requests behind `after`, ordered by id."""
    wanted = {
        "workflow = %s": workflow,
        "run = (SELECT no FROM rehydrate.run WHERE run_id = %s)": run_id,
        "request_id > %s": after,
    }
    given = {condition: value.encode() for condition, value in wanted.items() if value is not None}
    statement = _OPEN.format(where=" AND ".join(given) or "true")
    found: list[RequestRow] = []
    for request_id, body in session.ask(statement, (*given.values(), min(limit, _NO_END))):
        name = text_of(request_id, f"a request in store {session.store}")
        what = f"request {name!r} in store {session.store}"
        row = open_row(body, RequestRow, what)
        if row.request_id != name or row.state != "open":
            raise CheckpointCorruptError(what, "its row is another request's, or it is not open")
        found.append(row)
    return found


def read_history(session: Session, run_id: str, before: int | None, limit: int) -> list[Header]:
    """Return headers of a run, newest first, below `before`."""
    end = _NO_END if before is None else max(min(before, _NO_END), -_NO_END)
    rows = session.ask(_HISTORY, (end, run_id.encode(), min(limit, _NO_END)))
    what = f"run {run_id!r} in store {session.store}"
    return [
        open_header(session, Named(text_of(name, what), text_of(workflow, what)), row[0], tuple(row))
        for name, workflow, *row in rows
    ]


def read_events(session: Session, run_id: str, after: int, limit: int) -> list[StoredEvent]:
    """Return the kept events of a run by number, behind `after`."""
    rows = session.ask(_EVENTS, (run_id.encode(), min(after, _NO_END), min(limit, _NO_END)))
    what = f"an event of run {run_id!r} in store {session.store}"
    return [StoredEvent(number, data_of(body, what)) for number, body in rows]


def read_runs(session: Session, asked: RunsAsked) -> list[Header]:
    """Return the heads of runs behind `after`, ordered by run id."""
    wanted: dict[str, object] = {
        "run.workflow = %s": None if asked.workflow is None else asked.workflow.encode(),
        "run.status = %s": asked.status,
        _IS_DUE: asked.due_by,
        "run.run_id > %s": None if asked.after is None else asked.after.encode(),
    }
    given = {condition: value for condition, value in wanted.items() if value is not None}
    conditions = [*given, _IS_OFFERED] if asked.offered else list(given)
    statement = _RUNS.format(where=" AND ".join(conditions) or "true")
    headers: list[Header] = []
    what = f"a run in store {session.store}"
    for run_id, named, seq, *row in session.ask(statement, (*given.values(), min(asked.limit, _NO_END))):
        headers.append(open_header(session, Named(text_of(run_id, what), text_of(named, what)), seq, tuple(row)))
    return headers


def _find(session: Session, statement: str, name: bytes, kind: type[_Row], what: str) -> _Row | None:
    rows = session.ask(statement, (name,))
    return open_row(rows[0][0], kind, what) if rows else None


def _place(session: Session, ref: CheckpointRef, now: float | None) -> tuple[RunRow, Head, Header] | None:
    """Return the run of a reference, its head, and the header of the checkpoint."""
    if isinstance(ref, str):
        return _of_id(session, ref, now)
    if not isinstance(ref, At):
        return _of_run(session, ref.run_id, now)
    if isinstance(ref.at, int):
        return _of_number(session, ref.run_id, ref.at, now)
    rows = session.ask(_TAGGED, (ref.run_id.encode(), ref.at.encode()))
    if not rows:
        return None
    what = f"name {ref.at!r} of run {ref.run_id!r} in store {session.store}"
    tag = open_row(rows[0][0], TagRow, what)
    found = _of_id(session, tag.checkpoint_id, now)
    if (tag.run_id, tag.name) != (ref.run_id, ref.at) or found is None or found[0].standing.run_id != ref.run_id:
        raise CheckpointCorruptError(what, "it stands for nothing that is there")
    return found


def _of_number(session: Session, run_id: str, number: int, now: float | None) -> tuple[RunRow, Head, Header] | None:
    if abs(number) > _NO_END:
        return None
    rows = session.ask(_AT_NUMBER, (now, number, run_id.encode()))
    if not rows:
        return None
    return _at(session, run_of(session, rows[0], run_id), rows[0], number)


def _of_run(session: Session, run_id: str, now: float | None) -> tuple[RunRow, Head, Header] | None:
    rows = session.ask(_HEAD, (now, run_id.encode()))
    if not rows:
        return None
    run = run_of(session, rows[0], run_id)
    head = _head(session, run, rows[0])
    return run, head, head.header


def _of_id(session: Session, checkpoint_id: str, now: float | None) -> tuple[RunRow, Head, Header] | None:
    rows = session.ask(_PLACE, (now, id_cell(checkpoint_id)))
    if not rows:
        return None
    row, what = rows[0], f"checkpoint {checkpoint_id!r} in store {session.store}"
    if row[0] is None:
        raise CheckpointCorruptError(what, "its run is not there")
    found = _at(session, run_of(session, row), row, row[WIDTH + HEADER_WIDTH])
    if found[2].checkpoint_id != checkpoint_id:
        raise CheckpointCorruptError(what, "its header is another one's")
    return found


def _at(session: Session, run: RunRow, row: TupleRow, seq: int) -> tuple[RunRow, Head, Header]:
    named = Named(run.standing.run_id, run.standing.workflow)
    return (
        run,
        _head(session, run, row),
        open_header(session, named, seq, tuple(row[WIDTH + HEADER_WIDTH : WIDTH + 2 * HEADER_WIDTH])),
    )


def _head(session: Session, run: RunRow, row: TupleRow) -> Head:
    standing = run.standing
    named = Named(standing.run_id, standing.workflow)
    header = open_header(session, named, standing.seq, tuple(row[WIDTH : WIDTH + HEADER_WIDTH]))
    if header.checkpoint_id != standing.checkpoint_id:
        raise CheckpointCorruptError(f"run {standing.run_id!r} in store {session.store}", "its head is another's")
    return Head(header, standing.owner, standing.epoch, run.alive, bool(row[-1]))


def _head_at_once(session: Session, ref: str | Latest, now: float | None) -> Stored | None:
    """Return a run's head with its records; `None` where the checkpoint is another one, or there is none."""
    name = id_cell(ref) if isinstance(ref, str) else ref.run_id.encode()
    rows, live, window = session.look((_PLACE if isinstance(ref, str) else _HEAD, (now, name)), *head_of(ref))
    if not rows or rows[0][0] is None:
        return None
    run = run_of(session, rows[0], None if isinstance(ref, str) else ref.run_id)
    head = _head(session, run, rows[0])
    if isinstance(ref, str) and ref != head.header.checkpoint_id:
        return None
    what = _what(session, head.header)
    return _checked(head, head.header, bytes_at(session, run.no, head_places(live, window, what), what))


def _checked(head: Head, header: Header, found: Iterable[tuple[str, bytes]]) -> Stored:
    """Return a checkpoint whose records were checked against its header."""
    records: dict[str, bytes] = {}
    with RecordSum() as record_sum:
        for key, data in found:
            records[key] = data
            record_sum.add(key, data)
        return Stored(header=header, records=records, digests=record_sum.checked(header), head=head)


def _what(session: Session, header: Header) -> str:
    return f"run {header.run_id!r} in store {session.store}"
