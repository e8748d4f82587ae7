"""Errors of bringing a stored run up to the version of today: nothing has run, and the stored run is as it was.

They are restore errors like the others; each says at which version it went wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import WorkflowCheckpointException
from .restore import GraphChangedError


@dataclass(eq=False, repr=False)
class MissingMigrationError(GraphChangedError):
    """The checkpoint is of an older version, and no function brings that up."""

    code: ClassVar[str] = "missing-migration"
    version: int
    #: Where the workflow stands in the tree; empty for the root.
    path: str = ""

    def text(self) -> str:
        """Name the version and list the differences."""
        where = f" at {self.path}" if self.path else ""
        return f"no function brings version {self.version} of workflow {self.workflow!r}{where} up. {super().text()}"

    def action(self) -> str:
        """Say what to do next."""
        return (
            f"Pass migrate={{{self.version}: function}} to the builder of {self.workflow!r}; the function may do"
            " nothing. Or go on with this run under the old definition."
        )


@dataclass(eq=False, repr=False)
class NewerVersionError(WorkflowCheckpointException):
    """The checkpoint was made by a newer version of the workflow."""

    code: ClassVar[str] = "newer-version"
    workflow: str
    found: int
    known: int
    #: Where the workflow stands in the tree; empty for the root.
    path: str = ""

    def text(self) -> str:
        """Name both versions."""
        where = f" at {self.path}" if self.path else ""
        return (
            f"this checkpoint was made by version {self.found} of workflow {self.workflow!r}{where}; this is version"
            f" {self.known}."
        )

    def action(self) -> str:
        """Say what to do next."""
        return "It was made by newer code: upgrade this process."


@dataclass(eq=False, repr=False)
class MigrationError(WorkflowCheckpointException):
    """A migration failed, or used its view wrongly, or left a value that today's types cannot read."""

    code: ClassVar[str] = "migration"
    workflow: str
    version: int
    problem: str

    def text(self) -> str:
        """Name the version and the problem."""
        return f"version {self.version} of workflow {self.workflow!r} could not be brought up: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return f"Correct what migrate={{{self.version}: ...}} does; the stored run was not changed."


@dataclass(eq=False, repr=False)
class HomelessWorkError(WorkflowCheckpointException):
    """After its migration something in the run waits for what is not in the graph of today."""

    code: ClassVar[str] = "homeless-work"
    workflow: str
    version: int
    waiting: tuple[str, ...]

    def text(self) -> str:
        """List what waits, by path."""
        lines = "\n".join(f"  {line}" for line in self.waiting)
        return (
            f"in a run of version {self.version} of workflow {self.workflow!r} work waits that has no home:\n{lines}\n"
        )

    def action(self) -> str:
        """Say what to do next."""
        return (
            f"Let migrate={{{self.version}: ...}} give it one: rename_executor, move_messages or drop_executor; the"
            " stored run was not changed."
        )
