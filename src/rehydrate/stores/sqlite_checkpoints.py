"""Checkpoints as SQLite reads them: the columns of a row, with the id of the one before. It writes nothing."""

from __future__ import annotations

from typing import Final

from .checkpoint_rows import Names, Written, id_in_cell, open_written
from .standing import Standing

#: A checkpoint's row, and the ids of it and of the one before, for `open_checkpoint`.
CHECKPOINT: Final = """
checkpoint.body, checkpoint.checkpoint_id, (
    SELECT before.checkpoint_id FROM rehydrate_checkpoint AS before
    WHERE before.run = checkpoint.run AND before.seq = checkpoint.seq - 1)
"""


def open_checkpoint(standing: Standing, row: tuple[object, ...], what: str, *, is_forgotten: bool = False) -> Written:
    """Return the checkpoint in a row of `CHECKPOINT`, of the run that stands so."""
    body, checkpoint_id, before = row
    names = Names(standing.run_id, standing.workflow, id_in_cell(checkpoint_id), id_in_cell(before))
    return open_written(body, names, what, is_forgotten=is_forgotten)
