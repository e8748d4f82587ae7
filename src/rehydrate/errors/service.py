"""Errors of the service: what a host asks for that is not served here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError, DefinitionError


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


@dataclass(eq=False, repr=False)
class MessageShapeError(CallError, ValueError):
    """A text is no JSON of a message that the workflow can begin with."""

    code: ClassVar[str] = "message-shape"
    workflow: str
    problem: str
    shapes: tuple[str, ...]

    def text(self) -> str:
        """Say what does not fit."""
        return f"this is no message for workflow {self.workflow!r}: {self.problem}."

    def action(self) -> str:
        """Show what does."""
        return f"Expected is JSON of this shape: {' or '.join(self.shapes)}"


@dataclass(eq=False, repr=False)
class AppError(DefinitionError):
    """The Python file that a command line names cannot be loaded."""

    code: ClassVar[str] = "app"
    path: str
    problem: str

    def text(self) -> str:
        """Name the file and what is wrong with it."""
        return f"{self.path} cannot be loaded: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return "Make it a file that can be imported: what it is to do as a program stands below `if __name__`."
