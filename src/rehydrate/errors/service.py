"""Errors of the service: what a host asks for that is not served here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError


@dataclass(eq=False, repr=False)
class UnknownWorkflowError(CallError):
    """A run, or a call, is of a workflow that this service does not have."""

    code: ClassVar[str] = "unknown-workflow"
    workflow: str
    served: tuple[str, ...]

    def text(self) -> str:
        """Name the workflow, and those that are served."""
        return (
            f"workflow {self.workflow!r} is not served here; served are {', '.join(map(repr, self.served)) or 'none'}."
        )

    def action(self) -> str:
        """Say what to do next."""
        return "Give the workflow to the service, or ask the process that has it."
