"""One audit in one store: how it stands, and the single call that takes it further.

Knows the library's calls; it talks to no person and formats no report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rehydrate import (
    CheckpointStorage,
    SqliteCheckpointStorage,
    WorkflowRunResult,
    checkpoint_storage_from_url,
)
from rehydrate.demo.environment import AuditInputError
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest
from rehydrate.demo.progress import ProgressLines
from rehydrate.demo.standing import Standing, read_standing
from rehydrate.demo.workflow import audit_workflow
from rehydrate.errors import StoreUnavailableError, WrongCallError

__all__ = ["Audit", "open_store"]


def open_store(address: str) -> CheckpointStorage:
    """Return the store at a URL, or in the SQLite file of that name.

    Raises `AuditInputError`.
    """
    if "://" not in address:
        return SqliteCheckpointStorage(Path(address))
    try:
        return checkpoint_storage_from_url(address)
    except (StoreUnavailableError, WrongCallError) as error:
        raise AuditInputError(f"--store: {error}") from error


@dataclass(frozen=True)
class Audit:
    """One run in a store, with the settings that each call gives to its handlers."""

    storage: CheckpointStorage
    run_id: str
    journal: str | None
    look_up_seconds: float
    at_a_time: int

    async def standing(self) -> Standing | None:
        """Return how the run stands, or None if there is no run of that name."""
        return await read_standing(self.storage, self.run_id)

    async def call(
        self, request: AuditRequest | None, answers: Mapping[str, str], write: Callable[[str], None]
    ) -> WorkflowRunResult:
        """Start the run, or restore it and go on: with answers, with a new input, or with both, in one call."""
        standing = await self.standing()
        lines = ProgressLines(write, self.journal)
        if standing is not None:
            lines.restored(standing, answers)
        stream = audit_workflow(self.storage).run(
            request,
            run_id=self.run_id,
            checkpoint=None if standing is None else "latest",
            responses=dict(answers) or None,
            stream=True,
            run_args={"journal": self.journal},
            resources={"look_up": LookUp(self.look_up_seconds, self.at_a_time)},
            on_pending="keep" if request is not None and standing is not None else None,
        )
        async with stream:
            async for event in stream:
                lines.take(event)
            return await stream.result()
