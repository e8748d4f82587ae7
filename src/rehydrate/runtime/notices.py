"""What a call should know of its run and gets no error for, as warnings of the log.

Ids, paths and names only.
"""

from __future__ import annotations

from rehydrate.engine import reading
from rehydrate.model.records import RunRecord

from .log import RUN_LOG, fields
from .opening import Opened
from .program import Program


def kept_requests(opened: Opened) -> list[str]:
    """Return the requests that a new message leaves open without having been told to."""
    arrived = opened.arrived
    if arrived is None or arrived.message is None or arrived.pending_given or arrived.continuation:
        return []
    answered = {(answer.path, answer.name) for answer in arrived.answers}
    return [o.request_id for o in reading.open_requests(opened.run) if (o.path, o.name) not in answered]


def warn_of(program: Program, opened: Opened, kept: list[str]) -> None:
    """Log what is to be said once: requests that stay open, and what a checkpoint did not hold or has lost."""
    run_id, workflow = opened.run_id, program.graph.name
    record = opened.run.get("", "run", "")
    if isinstance(record, RunRecord) and record.legacy:
        RUN_LOG.warning(
            "run %r goes on from a legacy checkpoint: inner state of its sub-workflows may be missing",
            run_id,
            extra=fields(run_id=run_id, workflow=workflow, code="legacy"),
        )
    if opened.migrated is not None and opened.migrated.dropped:
        RUN_LOG.warning(
            "run %r was brought up to another version, which dropped: %s",
            run_id,
            "; ".join(opened.migrated.dropped),
            extra=fields(run_id=run_id, workflow=workflow, code="migration-dropped"),
        )
    if kept:
        RUN_LOG.warning(
            "run %r was given a new message while %d request(s) are open; they stay open: %s",
            run_id,
            len(kept),
            ", ".join(kept),
            extra=fields(run_id=run_id, workflow=workflow, code="requests-kept"),
        )
