"""How a command ends: its exit code, and what it says of an error.

The codes are a promise to scripts; `docs/cli.md` has the table.
"""

from __future__ import annotations

from enum import IntEnum

from rehydrate.errors import (
    CallError,
    CheckpointNotFoundError,
    CommitConflictError,
    DefinitionError,
    DrainingError,
    EventsNotKeptError,
    ExportFileError,
    ForeignCheckpointError,
    OfferConflictError,
    RehydrateError,
    RunBusyError,
    RunDrainedError,
    StaleCheckpointError,
    StoreBrokenError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    WorkflowCheckpointException,
    WrongStoreError,
)
from rehydrate.model.checkpoint import Status


class Ending(IntEnum):
    """The exit codes."""

    DONE = 0
    #: The run failed, or something that no error of ours describes went wrong.
    FAILED = 1
    #: The command, the message or an answer is wrong, or what it names is not there: nothing has run or changed.
    WRONG_CALL = 2
    #: The run waits for answers.
    WAITING = 3
    #: The run stopped before its end: it was cancelled, or has reached a limit.
    STOPPED = 4
    #: Not now: another process drives the run, or the store cannot be reached. The same command may do it later.
    BUSY = 5
    #: A checkpoint or the store cannot be used: damaged, full, of another graph.
    UNUSABLE = 6
    #: Standard output or standard error cannot be written, as on a full disk. What has run is saved.
    UNWRITTEN = 7
    INTERRUPTED = 130
    #: Whoever read the output has gone, as `head` does: what a shell says of a program that SIGPIPE has ended.
    READER_LEFT = 141
    #: SIGTERM: the run is handed on.
    DRAINED = 143


def ending_of_error(error: RehydrateError) -> Ending:
    """Return the exit code of an error."""
    match error:
        case RunBusyError() | CommitConflictError():
            return Ending.BUSY
        case DrainingError() | RunDrainedError():
            return Ending.DRAINED
        case CallError() | DefinitionError():
            return Ending.WRONG_CALL
        case WorkflowCheckpointException():
            named = CheckpointNotFoundError | ForeignCheckpointError | StaleCheckpointError
            return Ending.WRONG_CALL if isinstance(error, named) else Ending.UNUSABLE
        case StoreError():
            return _ending_of_store(error)
        case _:
            return Ending.FAILED


def _ending_of_store(error: StoreError) -> Ending:
    match error:
        case WrongStoreError() | OfferConflictError() | EventsNotKeptError() | ExportFileError():
            return Ending.WRONG_CALL
        case StoreFullError() | StoreReadOnlyError() | StoreBrokenError():
            return Ending.UNUSABLE
        case StoreUnavailableError():
            return Ending.BUSY
        case _:
            return Ending.UNUSABLE


def ending_of_status(status: Status) -> Ending:
    """Return the exit code of a command that leaves a run like this."""
    match status:
        case Status.IDLE:
            return Ending.DONE
        case Status.IDLE_WITH_PENDING_REQUESTS:
            return Ending.WAITING
        case Status.CANCELLED | Status.LIMIT_REACHED | Status.RUNNING:
            return Ending.STOPPED
        case Status.FAILED:
            return Ending.FAILED
