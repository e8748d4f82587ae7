"""The log of a call: an observer that writes what goes on, turns as information and the rest for debugging.

It is there only while somebody reads it. No value of a run is written, and no text of an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from logging import DEBUG, INFO
from typing import TypedDict, Unpack

from rehydrate.errors import RehydrateError, RunFailedError
from rehydrate.model.events import Event, SuperstepCompleted, SuperstepStarted, TurnStarted
from rehydrate.ports.observer import Activity, Attempt, Ending, Found, Observed, Outcome, Restored, Saved

from .log import CHECKPOINT_LOG, EXECUTOR_LOG, RUN_LOG, fields


class Where(TypedDict, total=False):
    """Where in a run something happened."""

    scope: str
    superstep: int
    executor: str


class CallLog:
    """Writes the log of one call."""

    def __init__(self, workflow: str) -> None:
        self._workflow = workflow
        self._run_id = ""

    @property
    def trace(self) -> str:
        """Nothing: a log links to nothing."""
        return ""

    def say(
        self, log: logging.Logger, level: int, text: str, *values: object, code: str = "", **where: Unpack[Where]
    ) -> None:
        """Write a record of the run."""
        if log.isEnabledFor(level):
            extra = fields(run_id=self._run_id, workflow=self._workflow, code=code, **where)
            log.log(level, f"run %r: {text}", self._run_id, *values, extra=extra)

    def restored(self, restored: Restored) -> None:
        """Write that a checkpoint was restored."""
        self._run_id = restored.run_id
        if restored.error is None:
            text = "restored checkpoint %s with %d records"
            self.say(CHECKPOINT_LOG, DEBUG, text, restored.checkpoint_id, restored.records)

    def found(self, found: Found) -> None:
        """Take note of the run."""
        self._run_id = found.run_id

    def saved(self, saved: Saved) -> None:
        """Write that a commit was taken, or was not."""
        header, took = saved.commit.header, saved.seconds * 1000
        if saved.error is not None:
            text, code = "checkpoint %d was not saved: %s", code_of(saved.error)
            self.say(CHECKPOINT_LOG, INFO, text, header.seq, type(saved.error).__name__, code=code)
            return
        text = "saved checkpoint %d (%s) of %d bytes in %.1f ms"
        self.say(CHECKPOINT_LOG, DEBUG, text, header.seq, header.cause.value, header.size, took)

    def told(self, events: Sequence[Event]) -> None:
        """Write that a turn or a superstep has begun or ended."""
        detailed = RUN_LOG.isEnabledFor(DEBUG)
        for event in events:
            match event:
                case TurnStarted():
                    kind = "gives its result again" if event.replayed else "goes on" if event.continuation else "begins"
                    self.say(RUN_LOG, INFO, "turn %d %s", event.turn, kind)
                case SuperstepStarted() if detailed:
                    self.say(RUN_LOG, DEBUG, "a superstep begins", scope=event.path, superstep=event.superstep)
                case SuperstepCompleted() if detailed:
                    self.say(RUN_LOG, DEBUG, "a superstep is complete", scope=event.path, superstep=event.superstep)
                case _:
                    pass

    def began(self, attempt: Attempt) -> Activity:
        """Write that an attempt begins."""
        begun = _LoggedAttempt(self, attempt)
        if EXECUTOR_LOG.isEnabledFor(DEBUG):
            begun.say(DEBUG, " begins")
        return begun

    def ended(self, ending: Ending) -> None:
        """Write how the call has ended."""
        error, failure, took = ending.error, ending.failure, ending.seconds
        if error is not None:
            text, name = "the call ended after %.3f s with %s", type(error).__name__
            self.say(RUN_LOG, INFO, text, took, name, code=code_of(error))
        elif failure is not None:
            scope, _, executor = ending.where.rpartition("/")
            text = "the turn ended FAILED after %.3f s with %s"
            self.say(RUN_LOG, INFO, text, took, failure.type, scope=scope, executor=executor, code=RunFailedError.code)
        else:
            text = "the turn ended %s after %.3f s; open requests: %d"
            self.say(RUN_LOG, INFO, text, ending.status, took, ending.pending)


class _LoggedAttempt:
    """An attempt of which begin and end are written."""

    __slots__ = ("_attempt", "_log")

    def __init__(self, log: CallLog, attempt: Attempt) -> None:
        self._log = log
        self._attempt = attempt

    def say(self, level: int, text: str, *values: object, code: str = "") -> None:
        """Write a record of the attempt."""
        attempt = self._attempt
        what = f"step {attempt.step!r}, attempt" if attempt.step else "attempt"
        place: Where = {"scope": attempt.path, "superstep": attempt.superstep, "executor": attempt.executor_id}
        self._log.say(EXECUTOR_LOG, level, f"%s %d{text}", what, attempt.number, *values, code=code, **place)

    def end(self, outcome: Outcome) -> None:
        """Write what became of it."""
        if outcome.kind == "failed":
            name = outcome.failure.type if outcome.failure is not None else type(outcome.error).__name__
            self.say(INFO, " failed with %s", name, code=code_of(outcome.error))
        elif EXECUTOR_LOG.isEnabledFor(DEBUG):
            self.say(DEBUG, ": %s", outcome.kind)


class LogObserver:
    """Gives each call its log."""

    def begin(self, observed: Observed) -> CallLog:
        """Return the log of a call that begins."""
        return CallLog(observed.workflow)


def is_read() -> bool:
    """Tell whether anybody reads the log of a call."""
    return any(log.isEnabledFor(INFO) for log in (RUN_LOG, EXECUTOR_LOG, CHECKPOINT_LOG))


def code_of(error: BaseException | None) -> str:
    """Return the code of an error of this library, and nothing for others."""
    return error.code if isinstance(error, RehydrateError) else ""
