"""What the SQLite store lists over its runs: open requests, and the heads of runs, by pages.

Every function runs inside a transaction of `sqlite_batch` and writes nothing.
"""

from __future__ import annotations

from typing import Final

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header, RequestRow

from .arguments import RunsAsked
from .checkpoint_rows import Names, id_in_cell, open_written
from .rows import open_row
from .sqlite_checkpoints import CHECKPOINT
from .sqlite_database import Database
from .sqlite_reading import NO_END, find_run

_PAGE: Final = f"""
SELECT run.run_id, run.workflow, {CHECKPOINT} FROM {{source}}
LEFT JOIN rehydrate_checkpoint AS checkpoint ON checkpoint.run = run.no AND checkpoint.seq = run.seq
WHERE {{{{where}}}} ORDER BY run.run_id LIMIT ?
"""  # noqa: S608
_RUNS: Final = _PAGE.format(source="rehydrate_run AS run")
# Begins at what waits in inboxes, which is little, and sorts that.
_OFFERED: Final = _PAGE.format(
    source="""(SELECT DISTINCT run FROM rehydrate_offer WHERE NOT is_taken) AS offer
CROSS JOIN rehydrate_run AS run ON run.no = offer.run"""
)
_IS_OFFERED: Final = "EXISTS (SELECT 1 FROM rehydrate_offer WHERE run = run.no AND NOT is_taken)"
# Begins at the timers that are up, and sorts their runs.
_DUE: Final = _PAGE.format(
    source="""(SELECT no FROM rehydrate_run WHERE due <= ?) AS up
CROSS JOIN rehydrate_run AS run ON run.no = up.no"""
)
_OPEN: Final = """
SELECT request_id, body FROM rehydrate_request WHERE is_open AND {where} ORDER BY request_id LIMIT ?
"""


def read_requests(
    database: Database, *, workflow: str | None, run_id: str | None, after: str | None, limit: int
) -> list[RequestRow]:
    """Return open requests behind `after`, ordered by id."""
    wanted: dict[str, str | int | None] = {"workflow = ?": workflow, "request_id > ?": after}
    if run_id is not None:
        run = find_run(database, run_id)
        if run is None:
            return []
        wanted["run = ?"] = run.no
    given = {condition: value for condition, value in wanted.items() if value is not None}
    statement = _OPEN.format(where=" AND ".join(given) or "1")
    rows = database.execute(statement, (*given.values(), min(limit, NO_END))).fetchall()
    return [_open_request(database, request_id, body) for request_id, body in rows]


def _open_request(database: Database, request_id: str, body: object) -> RequestRow:
    what = f"request {request_id!r} in store {database.store}"
    row = open_row(body, RequestRow, what)
    if row.request_id != request_id or row.state != "open":
        raise CheckpointCorruptError(what, "its row is another request's, or it is not open")
    return row


def read_runs(database: Database, asked: RunsAsked) -> list[Header]:
    """Return the heads of runs behind `after`, ordered by run id."""
    wanted = {"run.workflow = ?": asked.workflow, "run.status = ?": asked.status, "run.run_id > ?": asked.after}
    given = {condition: value for condition, value in wanted.items() if value is not None}
    where, values = " AND ".join(given) or "1", (*given.values(), min(asked.limit, NO_END))
    if asked.due_by is not None:
        statement = _DUE.format(where=f"{where} AND {_IS_OFFERED}" if asked.offered else where)
        rows = database.execute(statement, (asked.due_by, *values)).fetchall()
    else:
        rows = database.execute((_OFFERED if asked.offered else _RUNS).format(where=where), values).fetchall()
    found: list[Header] = []
    for run_id, its_workflow, body, checkpoint_id, before in rows:
        what = f"the head of run {run_id!r} in store {database.store}"
        found.append(
            open_written(body, Names(run_id, its_workflow, id_in_cell(checkpoint_id), id_in_cell(before)), what).header
        )
    return found
