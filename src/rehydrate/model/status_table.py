"""The status table: every legal change of a run's status, and what makes it.

The ledger of a run lets no other change into a header, and the diagram in the documentation is made from this table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .checkpoint import Status


class StatusChange(NamedTuple):
    """One legal change; `before` is `None` for a run that is not there yet."""

    before: Status | None
    after: Status
    by: str


STATUS_TABLE: Final = (
    StatusChange(None, Status.RUNNING, "first message, or a fork"),
    StatusChange(Status.RUNNING, Status.IDLE, "nothing left to do"),
    StatusChange(Status.RUNNING, Status.IDLE_WITH_PENDING_REQUESTS, "only answers are missing"),
    StatusChange(Status.RUNNING, Status.LIMIT_REACHED, "superstep limit"),
    StatusChange(Status.RUNNING, Status.FAILED, "failed for good"),
    StatusChange(Status.RUNNING, Status.CANCELLED, "cancelled"),
    StatusChange(Status.RUNNING, Status.RUNNING, "taken up after its process was lost"),
    StatusChange(Status.IDLE, Status.RUNNING, "message"),
    StatusChange(Status.IDLE_WITH_PENDING_REQUESTS, Status.RUNNING, "answers, message"),
    StatusChange(Status.LIMIT_REACHED, Status.RUNNING, "continuation, answers, message"),
    StatusChange(Status.FAILED, Status.RUNNING, "continuation, answers, message"),
    StatusChange(Status.CANCELLED, Status.RUNNING, "continuation, answers, message"),
)

_LEGAL: Final = frozenset((change.before, change.after) for change in STATUS_TABLE)


def is_legal(before: Status | None, after: Status) -> bool:
    """Tell whether a run may change so."""
    return (before, after) in _LEGAL
