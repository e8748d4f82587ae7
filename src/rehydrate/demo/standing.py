"""How a run of the audit stands at its newest checkpoint, read from the store without running anything.

What is stored was written by others: a run of something else is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rehydrate import CheckpointStorage
from rehydrate.demo.environment import AuditInputError
from rehydrate.demo.workflow import NAME
from rehydrate.model.checkpoint import Latest

__all__ = ["OpenQuestion", "Standing", "read_standing"]


@dataclass(frozen=True)
class OpenQuestion:
    """A question as the store knows it: whom to answer, and about what."""

    request_id: str
    key: str
    name: str
    version: str


@dataclass(frozen=True)
class Standing:
    """How a run stands at its newest checkpoint: what it asks, and how many look-ups it has not finished."""

    questions: tuple[OpenQuestion, ...]
    in_work: int


@dataclass(frozen=True)
class _About:
    key: str
    name: str
    version: str


@dataclass(frozen=True)
class _Asked:
    about: _About


async def read_standing(storage: CheckpointStorage, run_id: str) -> Standing | None:
    """Return how a run stands, or None if there is no run of that name.

    Raises `AuditInputError` for a run of another workflow.
    """
    head = await storage.head(run_id)
    if head is None:
        return None
    if head.header.workflow != NAME:
        raise AuditInputError(
            f"run {run_id!r} in this store is one of workflow {head.header.workflow!r} and no audit; "
            "name another run with --run, or another store with --store"
        )
    inspection = await storage.inspect(Latest(run_id))
    questions = tuple(_question(each.request_id, each.data) for each in inspection.requests)
    return Standing(questions, sum(each.endswith("/examine") for each in inspection.next_executors))


def _question(request_id: str, data: object) -> OpenQuestion:
    try:
        about = msgspec.convert(data, type=_Asked).about
    except msgspec.ValidationError as error:
        raise AuditInputError(f"request {request_id!r} in this store is no question of an audit: {error}") from error
    return OpenQuestion(request_id, about.key, about.name, about.version)
