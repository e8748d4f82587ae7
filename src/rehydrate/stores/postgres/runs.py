"""A run's row: how a run stands, in columns, with a checksum over all that its writer said of it.

The end of the lease is what the server made of it, on its own clock unless the store was given another one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from psycopg.rows import TupleRow

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Commit
from rehydrate.stores.rows import row_check
from rehydrate.stores.standing import Standing, standing_after

from .names import text_of
from .session import Session

#: The time, in seconds since the epoch: as given, or the server's.
NOW: Final = "coalesce(%s::float8, extract(epoch FROM clock_timestamp())::float8)"
#: The columns that `run_of` reads, of `run`; the time is the one value that they take.
COLUMNS: Final = f"""
run.no, run.run_id, run.workflow, run.checkpoint_id, run.seq, run.epoch, run.owner, run.lease_end, run.seal,
run.owner IS NOT NULL AND run.lease_end > {NOW}
"""
#: How many these are.
WIDTH: Final = 10
_RUN: Final = f"SELECT {COLUMNS} FROM rehydrate.run AS run WHERE run.run_id = %s"


class RunRow(NamedTuple):
    """A run: its number in this database, how it stands, and whether its lease holds."""

    no: int
    standing: Standing
    alive: bool


def find_run(session: Session, run_id: str, now: float | None, *, lock: bool = False) -> RunRow | None:
    """Return a run's row, or `None`; `lock`: no other transaction moves it before this one ends."""
    rows = session.ask(f"{_RUN} FOR UPDATE" if lock else _RUN, (now, run_id.encode()))
    return run_of(session, rows[0], run_id) if rows else None


def run_of(session: Session, row: TupleRow, run_id: str | None = None) -> RunRow:
    """Return a run from the columns of its row, checked. `run_id` is whose row it must be, where that is known."""
    what = f"run {run_id!r} in store {session.store}" if run_id is not None else f"a run in store {session.store}"
    owner = text_of(row[6], what) if row[6] is not None else None
    standing = Standing(
        run_id=text_of(row[1], what),
        workflow=text_of(row[2], what),
        checkpoint_id=text_of(row[3], what),
        seq=row[4],
        epoch=row[5],
        owner=owner,
        lease_end=row[7],
    )
    if check_of(standing) != row[8]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    if run_id is not None and standing.run_id != run_id:
        raise CheckpointCorruptError(what, "its row belongs to another run")
    return RunRow(row[0], standing, bool(row[9]))


def check_of(standing: Standing) -> bytes:
    """Return the checksum of how a run stands."""
    return row_check(msgspec.structs.replace(standing, lease_end=0.0))


def check_after(commit: Commit) -> bytes:
    """Return the checksum that a run's row has once the commit is written."""
    return check_of(standing_after(commit, 0.0))
