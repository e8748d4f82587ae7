"""Errors of functional workflows: raised in the function, or by the run that it failed.

They must not be used for anything that happens before the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import RunError


@dataclass(eq=False, repr=False)
class StepFailedError(RunError):
    """A step of a functional workflow failed for good; `type` and `reason` are of what its last attempt raised.

    The same error is raised there whenever the function runs anew.
    """

    code: ClassVar[str] = "step-failed"
    where: str
    step: str
    type: str
    reason: str

    def text(self) -> str:
        """Name the step and the reason."""
        return f"step {self.step!r} of {self.where} failed: {self.type}: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Catch this error to go on without the step, or give the step a retry=; a resume of the run tries it again."
        )


@dataclass(eq=False, repr=False)
class NonDeterminismError(RunError):
    """A functional workflow did not call what it had called before at this place; `call` names the place."""

    code: ClassVar[str] = "non-determinism"
    where: str
    call: str
    before: str
    now: str

    def text(self) -> str:
        """Name the place, and what was called there."""
        branch, _, position = self.call.rpartition(":")
        place = f"call {position}" + (f" of branch {branch}" if branch else "")
        return f"{self.where} has changed: its {place} was {self.before} before, and is {self.now}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Keep what was called for passes that began before (`if ctx.version < 2: ...` with version=2 and migrate=),"
            " start a new run, or let it begin again in a migration (restart_passes); the clock, random numbers and ids"
            " come from ctx."
        )
