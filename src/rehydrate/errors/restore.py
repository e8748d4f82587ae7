"""Errors of restoring a checkpoint: missing, foreign, stale, damaged, newer or of another graph; and of capturing one.

Each is its own class, so that no caller has to read a text to tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import WorkflowCheckpointException


@dataclass(eq=False, repr=False)
class CheckpointNotFoundError(WorkflowCheckpointException):
    """The store has no such checkpoint."""

    code: ClassVar[str] = "checkpoint-not-found"
    ref: str
    #: True where a run has this id.
    is_run: bool = False
    #: What is there instead.
    near: tuple[str, ...] = ()
    #: The run that was looked into, where one was.
    run_id: str = ""

    def text(self) -> str:
        """Name what was looked for."""
        if self.run_id:
            return f"no checkpoint {self.ref!r:.250} of run {self.run_id!r:.250} in this store."
        return f"no checkpoint {self.ref!r:.250} in this store{'; it is the id of a run' if self.is_run else ''}."

    def action(self) -> str:
        """Say what to do next."""
        if self.is_run:
            return f'Pass checkpoint="latest" with run_id={self.ref!r} for the newest checkpoint of that run.'
        if self.near:
            return f"There is {', '.join(self.near)}; RunHistory(storage, run_id) lists all."
        return "Check the id and the store; storage.runs() and storage.history(run_id) list what is there."


@dataclass(eq=False, repr=False)
class RunNotFoundError(CheckpointNotFoundError):
    """The store has no such run."""

    code: ClassVar[str] = "run-not-found"

    def text(self) -> str:
        """Name the run."""
        return f"no run {self.ref!r:.250} in this store."

    def action(self) -> str:
        """Say what to do next."""
        return "Check the run id and the store (storage.runs() lists the runs), or pass no checkpoint to start it."


@dataclass(eq=False, repr=False)
class ForeignCheckpointError(WorkflowCheckpointException):
    """The checkpoint belongs to another run or workflow than the call names."""

    code: ClassVar[str] = "foreign-checkpoint"
    checkpoint_id: str
    belongs_to: str
    expected: str

    def text(self) -> str:
        """Name both."""
        return f"checkpoint {self.checkpoint_id!r} belongs to {self.belongs_to}, not to {self.expected}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Use the workflow, run_id and store that it was made with; the head of a run is checkpoint="latest".'


@dataclass(eq=False, repr=False)
class StaleCheckpointError(WorkflowCheckpointException):
    """The checkpoint is not the head of its run."""

    code: ClassVar[str] = "stale-checkpoint"
    run_id: str
    checkpoint_id: str
    head: str

    def text(self) -> str:
        """Name checkpoint and head."""
        return f"checkpoint {self.checkpoint_id!r} is not the head of run {self.run_id!r}; the head is {self.head!r}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Use the head (checkpoint="latest"), or fork=True to go on from this one in a new run.'


@dataclass(eq=False, repr=False)
class CheckpointCorruptError(WorkflowCheckpointException):
    """Stored bytes are damaged."""

    code: ClassVar[str] = "checkpoint-corrupt"
    what: str
    problem: str

    def text(self) -> str:
        """Name the damaged piece."""
        return f"{self.what} is damaged: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return "It was not used. Restore the store from a backup, or go on from an earlier checkpoint with fork=True."


@dataclass(eq=False, repr=False)
class CheckpointFormatError(WorkflowCheckpointException):
    """Stored bytes were written in a newer format."""

    code: ClassVar[str] = "checkpoint-format"
    what: str
    found: int
    known: int

    def text(self) -> str:
        """Name both versions."""
        return f"{self.what} has format {self.found}; this version reads up to {self.known}."

    def action(self) -> str:
        """Say what to do next."""
        return "It was made by newer code: upgrade this process."


@dataclass(eq=False, repr=False)
class GraphChangedError(WorkflowCheckpointException):
    """The workflow's graph is not the one the checkpoint was made with."""

    code: ClassVar[str] = "graph-changed"
    workflow: str
    differences: tuple[str, ...]

    def text(self) -> str:
        """List the differences by path."""
        lines = "\n".join(f"  {line}" for line in self.differences)
        return f"workflow {self.workflow!r} has changed since this checkpoint was made:\n{lines}\n"

    def action(self) -> str:
        """Say what to do next."""
        return (
            "If that is meant, raise version= and pass migrate={old version: function} to the builder of what changed;"
            " else go on with this run under the old definition."
        )


@dataclass(eq=False, repr=False)
class InconsistentRunError(WorkflowCheckpointException):
    """The records of a run do not fit together."""

    code: ClassVar[str] = "inconsistent-run"
    violations: tuple[str, ...]

    def text(self) -> str:
        """List the broken invariants."""
        return f"the records of this run do not fit together: {'; '.join(self.violations[:5])}."

    def action(self) -> str:
        """Say what to do next."""
        return "This is a bug in rehydrate or in a store; report it with the checkpoint's inspect() output."


@dataclass(eq=False, repr=False)
class CaptureError(WorkflowCheckpointException):
    """A checkpoint cannot be captured at this moment."""

    code: ClassVar[str] = "capture"
    problem: str
    fix: str

    def text(self) -> str:
        """Return the problem."""
        return self.problem

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class AgentFrameworkImportError(WorkflowCheckpointException):
    """Files of Microsoft Agent Framework are damaged, of an unknown form, or have no place in the workflow."""

    code: ClassVar[str] = "agent-framework-import"
    folder: str
    #: Each refused file and why.
    refused: tuple[tuple[str, str], ...]

    def text(self) -> str:
        """Name the files and why they are refused."""
        return f"nothing of {self.folder!r} was imported: {'; '.join(f'{file}: {why}' for file, why in self.refused)}."

    def action(self) -> str:
        """Say what to do next."""
        return "See docs/import-agent-framework.md for types= and leave_out=; skip_refused=True takes in the others."
