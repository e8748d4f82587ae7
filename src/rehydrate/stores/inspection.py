"""Inspection of what a store has loaded, and how a reference is named. Shared by all stores."""

from __future__ import annotations

from rehydrate.codecs import plain
from rehydrate.codecs.records import decode_records
from rehydrate.engine.inspecting import inspected
from rehydrate.engine.run import Run
from rehydrate.errors import CheckpointNotFoundError
from rehydrate.model.checkpoint import At, CheckpointRef, Latest, Stored
from rehydrate.ports import Inspection


def inspection(stored: Stored) -> Inspection:
    """Return what a stored checkpoint says. Raises `CheckpointCorruptError`."""
    return inspected(stored.header, Run(decode_records(stored.records)), plain)


def not_found(ref: CheckpointRef) -> CheckpointNotFoundError:
    """Return the error for a checkpoint that is not there."""
    if isinstance(ref, At):
        return CheckpointNotFoundError(str(ref.at), run_id=ref.run_id)
    return CheckpointNotFoundError(ref.run_id if isinstance(ref, Latest) else ref)
