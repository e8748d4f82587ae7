"""Headers of checkpoints in PostgreSQL: what of one stands in its row, and what in that of its run and the one before.

Nothing here writes. Each row's checksum covers the id of the checkpoint before it, so that none can be lost unseen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header
from rehydrate.stores.checkpoint_rows import Names, Written, open_written, seal_written

from .names import id_in_cell
from .session import Session

#: The columns of a checkpoint's row, of `{0}`, for `open_header`.
_COLUMNS: Final = """
{0}.seq, {0}.checkpoint_id, {0}.body, (
    SELECT before.checkpoint_id FROM rehydrate.checkpoint AS before
    WHERE before.run = {0}.run AND before.seq < {0}.seq AND before.body IS NOT NULL ORDER BY before.seq DESC LIMIT 1
)
"""
#: How many these are.
HEADER_WIDTH: Final = 4


class Named(NamedTuple):
    """What of a header stands in the row of its run."""

    run_id: str
    workflow: str


def header_columns(table: str) -> str:
    """Return the columns of a checkpoint's row, as a table is called in a statement."""
    return _COLUMNS.format(table)


def seal_header(header: Header, before: str | None) -> bytes:
    """Return a header as it is stored; `before` is the checkpoint before it in its run."""
    return seal_written(Written(header, 0, 0), before, chained=True)


def open_header(session: Session, run: Named, seq: int, row: tuple[object, ...]) -> Header:
    """Return the header in a checkpoint's row. Raises `CheckpointCorruptError` where it is another one's."""
    what = f"checkpoint number {seq} of run {run.run_id!r} in store {session.store}"
    number, cell, body, before = row
    if body is None:
        raise CheckpointCorruptError(what, "it is not there")
    names = Names(run.run_id, run.workflow, id_in_cell(cell, what), id_in_cell(before, what))
    header = open_written(body, names, what, chained=True).header
    if header.seq != seq or number != seq:
        raise CheckpointCorruptError(what, "its header is another one's")
    return header
