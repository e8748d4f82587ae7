"""Errors of a process that is being drained: of the calls that it refuses, and of those that it interrupts.

Both say where to go on; neither means that anything was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import CallError, RunError


@dataclass(eq=False, repr=False)
class DrainingError(CallError):
    """This process is being drained and claims no turn any more."""

    code: ClassVar[str] = "draining"
    run_id: str

    def text(self) -> str:
        """Name the run."""
        return f"this process is being drained and takes no turn of run {self.run_id!r}."

    def action(self) -> str:
        """Say what to do next."""
        return "Make the same call in another process, or in this one once it has started anew."


@dataclass(eq=False, repr=False)
class RunDrainedError(RunError):
    """A turn was interrupted because its process was drained; all that had finished is saved."""

    code: ClassVar[str] = "run-drained"
    run_id: str
    checkpoint_id: str
    stored: bool
    #: The `WorkflowRunResult` of the interrupted run.
    result: Any = None  # `Any`: its class stands in a layer above

    def text(self) -> str:
        """Name the run and where it stands."""
        kept = (
            f"its work is saved in checkpoint {self.checkpoint_id!r}" if self.stored else "its work is in error.result"
        )
        return f"the process of run {self.run_id!r} was drained before its turn ended; {kept}."

    def action(self) -> str:
        """Say what to do next."""
        if not self.stored:
            return "Keep error.result.checkpoint.to_bytes(), and continue with run(checkpoint=...) in another process."
        return (
            f'Continue it in another process: run(checkpoint="latest", run_id={self.run_id!r}), or the same call again.'
        )
