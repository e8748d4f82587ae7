"""Errors of a store: what a commit, a read or the file underneath can answer.

They must not name user types; a store sees sealed bytes only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import StoreError


@dataclass(eq=False, repr=False)
class CommitConflictError(StoreError):
    """A commit lost: the head moved, or another owner took the run over."""

    code: ClassVar[str] = "commit-conflict"
    run_id: str
    expected: str
    found: str

    def text(self) -> str:
        """Name what was expected and found."""
        return f"commit on run {self.run_id!r} expected {self.expected} and found {self.found}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Another call went on with this run; load its head (checkpoint="latest").'


@dataclass(eq=False, repr=False)
class SaveFailedError(StoreError):
    """A checkpoint could not be saved, so the run stopped at its last saved one."""

    code: ClassVar[str] = "save-failed"
    run_id: str
    reason: str

    def text(self) -> str:
        """Name run and reason."""
        return f"a checkpoint of run {self.run_id!r} could not be saved: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Nothing after it ran. Repair the store and continue with checkpoint="latest".'


@dataclass(eq=False, repr=False)
class EventsNotKeptError(StoreError):
    """The store has not kept these events of a run."""

    code: ClassVar[str] = "events-not-kept"
    run_id: str
    #: Numbers of the first and the last one that are missing.
    first: int
    last: int

    def text(self) -> str:
        """Name run and events."""
        which = f"event {self.first}" if self.first == self.last else f"events {self.first} to {self.last}"
        return f"the store has not kept {which} of run {self.run_id!r}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            f"Read on with after={self.last}. To keep events, make the store with keep_events=True in every process"
            " that runs the workflow."
        )


@dataclass(eq=False, repr=False)
class StoreUnavailableError(StoreError):
    """The store cannot be opened or used."""

    code: ClassVar[str] = "store-unavailable"
    store: str
    problem: str
    fix: str

    def text(self) -> str:
        """Name store and problem."""
        return f"store {self.store} cannot be used: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class WrongStoreError(StoreUnavailableError):
    """What was named as the store is none, cannot be one, or does not let this process in: waiting is no help."""

    code: ClassVar[str] = "wrong-store"


@dataclass(eq=False, repr=False)
class StoreFullError(StoreUnavailableError):
    """The disk of the store has no room; what was to be written was not, and what is there can be used."""

    code: ClassVar[str] = "store-full"


@dataclass(eq=False, repr=False)
class StoreReadOnlyError(StoreUnavailableError):
    """The store, or the place that it is in, cannot be written."""

    code: ClassVar[str] = "store-read-only"


@dataclass(eq=False, repr=False)
class StoreBrokenError(StoreUnavailableError):
    """Reading or writing failed under the store, which then stopped: what it knows may not be what is on the disk."""

    code: ClassVar[str] = "store-broken"


@dataclass(eq=False, repr=False)
class StoreClosedError(StoreError):
    """The store was closed."""

    code: ClassVar[str] = "store-closed"
    store: str

    def text(self) -> str:
        """Name the store."""
        return f"store {self.store} is closed."

    def action(self) -> str:
        """Say what to do next."""
        return "Make a new store object."


@dataclass(eq=False, repr=False)
class ExportFileError(StoreError):
    """The file of an exported run cannot be written or read."""

    code: ClassVar[str] = "export-file"
    path: str
    #: `written` or `read`.
    done: str
    problem: str

    def text(self) -> str:
        """Name file and problem."""
        return f"the file {self.path!r} cannot be {self.done}: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        if self.done == "written":
            return "What was there before is unchanged. Check the folder, its permissions and the space on the disk."
        return "Check the path and its permissions."
