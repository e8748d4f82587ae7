"""Inspection: what a checkpoint says of itself without the workflow that made it, for people and tools.

Shared by all stores. It shows values as plain data and builds no user type.
"""

from __future__ import annotations

from rehydrate.codecs import plain
from rehydrate.codecs.records import decode_records
from rehydrate.engine.reading import OpenedRequest, next_due, next_executors, open_requests, outputs
from rehydrate.engine.run import Run
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import At, CheckpointRef, Latest, Stored
from rehydrate.model.records import RunRecord
from rehydrate.ports import Inspection, OpenRequest


def inspection(stored: Stored) -> Inspection:
    """Return what a stored checkpoint says. Raises `CheckpointCorruptError`."""
    header = stored.header
    what = f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r}"
    run = Run(decode_records(stored.records))
    if not isinstance(run.get("", "run", ""), RunRecord):
        raise CheckpointCorruptError(what, "it has no record of its run")
    try:
        return Inspection(
            header=header,
            requests=tuple(_shown(opened) for opened in open_requests(run)),
            next_executors=tuple(next_executors(run)),
            next_due=next_due(run),
            outputs=tuple(plain(output.value.data) for output in outputs(run)),
        )
    except (ValueError, KeyError, RecursionError) as error:
        # Keys whose parts are no paths and numbers: nothing that the engine writes.
        raise CheckpointCorruptError(what, f"its records do not fit together ({error})") from error


def ref_text(ref: CheckpointRef) -> str:
    """Return a reference as an error names it."""
    if isinstance(ref, Latest):
        return ref.run_id
    return f"{ref.run_id} at {ref.at!r}" if isinstance(ref, At) else ref


def _shown(opened: OpenedRequest) -> OpenRequest:
    record = opened.record
    return OpenRequest(
        request_id=opened.request_id,
        path=opened.path,
        executor_id=record.executor,
        type=record.data.type,
        response_type=record.response_type,
        data=plain(record.data.data),
    )
