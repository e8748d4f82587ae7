"""What commands that look at runs print: headers and requests as JSON can hold them, and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from rehydrate.model.checkpoint import Header
from rehydrate.model.plain import Plain
from rehydrate.ports import OpenRequest
from rehydrate.service.differences import Cut, Shown
from rehydrate.service.history import HistoryEntry


def time_text(seconds: float) -> str:
    """Return seconds since the epoch as a time of UTC; what is no time as it is."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def header_document(header: Header) -> dict[str, object]:
    """Return how a run stands, by its newest checkpoint."""
    return {
        "run_id": header.run_id,
        "workflow": header.workflow,
        "status": header.status.value,
        "checkpoint_id": header.checkpoint_id,
        "number": header.seq,
        "turn": header.turn,
        "superstep": header.superstep,
        "open_requests": header.pending,
        "events": header.events,
        "created": header.created,
        "next_due": header.due,
    }


def entry_document(entry: HistoryEntry) -> dict[str, object]:
    """Return a checkpoint of a history."""
    return {
        "number": entry.number,
        "checkpoint_id": entry.checkpoint_id,
        "previous_checkpoint_id": entry.previous_checkpoint_id,
        "status": entry.status.value,
        "cause": entry.cause.value,
        "reason": entry.reason,
        "turn": entry.turn,
        "superstep": entry.superstep,
        "created": entry.created,
        "open_requests": entry.pending,
        "events": entry.events,
        "size": entry.size,
        "scopes": list(entry.scopes),
        "scopes_changed": entry.changed,
        "names": list(entry.tags),
    }


def request_document(request: OpenRequest) -> dict[str, object]:
    """Return an open request."""
    return {
        "request_id": request.request_id,
        "path": request.path,
        "executor_id": request.executor_id,
        "type": request.type,
        "response_type": request.response_type,
        "asks": request.data,
    }


def value_document(value: Shown) -> Plain:
    """Return a value of a comparison; one that was cut as its beginning and its size."""
    return {"start": value.start, "size": value.size} if isinstance(value, Cut) else value


def place_text(path: str, executor_id: str = "") -> str:
    """Return a scope, or an executor of it, as people read it."""
    return "/".join(part for part in (path, executor_id) if part) or "the root"
