"""Logging: the names of the loggers, and the fields that every record has beside its text.

Names, numbers, types and codes only: no value of a run, and no text of an exception, which may hold one. Nothing is
logged as a warning that is raised as an error.
"""

from __future__ import annotations

import logging
from typing import Final, TypedDict

#: Turns: their begin and end, and what a caller should know of a run.
RUN_LOG: Final = logging.getLogger("rehydrate.run")
#: Attempts at messages and steps.
EXECUTOR_LOG: Final = logging.getLogger("rehydrate.executor")
#: What was restored and saved.
CHECKPOINT_LOG: Final = logging.getLogger("rehydrate.checkpoint")
#: Notes of building.
BUILD_LOG: Final = logging.getLogger("rehydrate.build")
#: What a worker cannot take up.
WORKER_LOG: Final = logging.getLogger("rehydrate.worker")
#: Observers that raised.
OBSERVER_LOG: Final = logging.getLogger("rehydrate.observer")


class Fields(TypedDict):
    """What every record has, empty or 0 where it means nothing."""

    run_id: str
    workflow: str
    scope: str
    superstep: int
    executor: str
    code: str


def fields(
    *, run_id: str = "", workflow: str = "", scope: str = "", superstep: int = 0, executor: str = "", code: str = ""
) -> Fields:
    """Return the fields of a record, for `extra=`."""
    return {
        "run_id": run_id,
        "workflow": workflow,
        "scope": scope,
        "superstep": superstep,
        "executor": executor,
        "code": code,
    }
