"""What a checkpoint says of itself without the workflow that made it, for people and tools.

It reads records only, and is given how a sealed value becomes a plain one. It builds no user type.
"""

from __future__ import annotations

from collections.abc import Callable

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header
from rehydrate.model.inspection import Inspection, OpenRequest
from rehydrate.model.plain import Plain
from rehydrate.model.records import RunRecord

from .reading import OpenedRequest, next_due, next_executors, open_requests, outputs
from .run import Run


def inspected(header: Header, run: Run, plain: Callable[[bytes], Plain]) -> Inspection:
    """Return what a checkpoint says. Raises `CheckpointCorruptError`."""
    what = f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r}"
    if not isinstance(run.get("", "run", ""), RunRecord):
        raise CheckpointCorruptError(what, "it has no record of its run")
    try:
        return Inspection(
            header=header,
            requests=tuple(_shown(opened, plain) for opened in open_requests(run)),
            next_executors=tuple(next_executors(run)),
            next_due=next_due(run),
            outputs=tuple(plain(output.value.data) for output in outputs(run)),
        )
    except (ValueError, KeyError, RecursionError) as error:
        # Keys whose parts are no paths and numbers: nothing that the engine writes.
        raise CheckpointCorruptError(what, f"its records do not fit together ({error})") from error


def _shown(opened: OpenedRequest, plain: Callable[[bytes], Plain]) -> OpenRequest:
    record = opened.record
    return OpenRequest(
        request_id=opened.request_id,
        path=opened.path,
        executor_id=record.executor,
        type=record.data.type,
        response_type=record.response_type,
        data=plain(record.data.data),
    )
