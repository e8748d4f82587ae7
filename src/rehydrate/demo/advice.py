"""What an error of the library means to somebody at the command line: the same text, with an action that can be typed.

The library's own actions name arguments of its calls, which the command does not have.
"""

from __future__ import annotations

from rehydrate.errors import (
    CheckpointCorruptError,
    CommitConflictError,
    InconsistentRunError,
    RehydrateError,
    RunBusyError,
    RunFailedError,
    SaveFailedError,
    StaleCheckpointError,
    WorkflowCheckpointException,
)

__all__ = ["explain"]


def explain(error: RehydrateError, again: str) -> str:
    """Return the text of an error with what to do; `again` is said only where going on can work."""
    match error:
        case RunBusyError():
            action = f"Wait for that process, or end it: its run is free at once. {again}"
        case CommitConflictError() | StaleCheckpointError():
            action = f"Another process went on with this run, and what it committed is safe. {again}"
        case RunFailedError() | SaveFailedError():
            action = f"What was committed is safe; repair the cause first. {again}"
        case CheckpointCorruptError() | InconsistentRunError():
            action = "It was not used. Restore the store from a backup, or begin anew in another one (--store)."
        case WorkflowCheckpointException():
            action = "Nothing was changed. Name another run (--run) or another store (--store)."
        case _:
            return f"error: {error}"
    return f"error: {error.text().rstrip()} {action}"
