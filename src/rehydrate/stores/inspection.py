"""Inspection of what a store has loaded, and how a reference is named. Shared by all stores."""

from __future__ import annotations

from rehydrate.codecs import plain
from rehydrate.codecs.records import decode_records
from rehydrate.engine.inspecting import inspected
from rehydrate.engine.run import Run
from rehydrate.model.checkpoint import At, CheckpointRef, Latest, Stored
from rehydrate.ports import Inspection


def inspection(stored: Stored) -> Inspection:
    """Return what a stored checkpoint says. Raises `CheckpointCorruptError`."""
    return inspected(stored.header, Run(decode_records(stored.records)), plain)


def ref_text(ref: CheckpointRef) -> str:
    """Return a reference as an error names it."""
    if isinstance(ref, Latest):
        return ref.run_id
    return f"{ref.run_id} at {ref.at!r}" if isinstance(ref, At) else ref
