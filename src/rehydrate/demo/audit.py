"""One audit in one store: how it stands, and the single call that takes it further.

Knows the library's calls; it talks to no person and formats no report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rehydrate import CheckpointStorage, SqliteCheckpointStorage, WorkflowRunResult
from rehydrate.demo.environment import AuditInputError
from rehydrate.demo.messages import AuditRequest
from rehydrate.demo.progress import ProgressLines
from rehydrate.demo.workflow import audit_workflow
from rehydrate.model.checkpoint import Latest

__all__ = ["Audit", "OpenQuestion", "open_store"]


@dataclass(frozen=True)
class OpenQuestion:
    """A question as the store knows it: whom to answer, and about what."""

    request_id: str
    name: str
    version: str


def open_store(address: str) -> CheckpointStorage:
    """Return the store at `sqlite:///FILE` or `FILE`.

    Raises `AuditInputError` for any other address, and where the file cannot be there.
    """
    scheme, separator, rest = address.partition("://")
    if separator and scheme != "sqlite":
        raise AuditInputError(f"{address}: only sqlite:///FILE is known here")
    path = Path(rest.removeprefix("/") if separator else address)
    if not path.name:
        raise AuditInputError(f"{address}: it names no file")
    if not path.parent.is_dir() or path.is_dir():
        raise AuditInputError(f"{address}: there can be no file {path}")
    return SqliteCheckpointStorage(str(path))


@dataclass(frozen=True)
class Audit:
    """One run in a store, with the settings that each call gives to its handlers."""

    storage: CheckpointStorage
    run_id: str
    journal: str | None
    look_up_seconds: float
    max_concurrency: int | None

    async def open_questions(self) -> tuple[OpenQuestion, ...] | None:
        """Return what is asked at the run's newest checkpoint, or None if there is no run of that name."""
        if await self.storage.head(self.run_id) is None:
            return None
        inspection = await self.storage.inspect(Latest(self.run_id))
        return tuple(_question(each.request_id, each.data) for each in inspection.requests)

    async def call(
        self, request: AuditRequest | None, answers: Mapping[str, str], write: Callable[[str], None]
    ) -> WorkflowRunResult:
        """Start the run, or restore it and go on: with answers, with a new input, or with both, in one call."""
        known = await self.open_questions()
        lines = ProgressLines(write, self.journal, len(known or ()) - len(answers))
        stream = audit_workflow(self.storage, self.max_concurrency).run(
            request,
            run_id=self.run_id,
            checkpoint=None if known is None else "latest",
            responses=dict(answers) or None,
            stream=True,
            run_args={"journal": self.journal, "look_up_seconds": self.look_up_seconds},
            on_pending="keep" if request is not None and known is not None else None,
        )
        async with stream:
            async for event in stream:
                lines.take(event)
            return await stream.result()


def _question(request_id: str, data: object) -> OpenQuestion:
    about = cast("dict[str, dict[str, str]]", data)["about"]
    return OpenQuestion(request_id, about["name"], about["version"])
