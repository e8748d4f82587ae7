"""The spans of one call: the call and its scopes, attempts, messages, and what was saved and restored.

Spans of scopes stand under those of their parents, for as long as this call sees them. Beside them it measures what
the instruments are for.
"""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from opentelemetry.trace import Span, set_span_in_context

from rehydrate.errors import (
    CommitConflictError,
    RunBusyError,
    RunDrainedError,
    RunExistsError,
    StaleCheckpointError,
)
from rehydrate.model.events import (
    Event,
    InvocationFailed,
    ScopeEnded,
    ScopeStarted,
    SuperstepCompleted,
    SuperstepStarted,
    TurnStarted,
)
from rehydrate.ports.observer import Activity, Attempt, Ending, Found, Observed, Restored, Saved

from .attempt_span import AttemptSpan
from .telemetry import Attributes, Telemetry, began_at, link_to, trace_parent

#: Errors that say that another call was there first; `TurnInProgressError` is one of them.
_CONFLICTS: Final = (CommitConflictError, RunBusyError, RunExistsError, StaleCheckpointError)
#: How a call may end although its run goes on, which is no error.
_STOPS: Final = (CancelledError, RunDrainedError)
_NUMBERS: Final = re.compile(r"#\d+")


class CallSpans:
    """Makes the spans of one call, and measures it."""

    def __init__(self, telemetry: Telemetry, observed: Observed) -> None:
        self._telemetry = telemetry
        self._instruments = telemetry.instruments
        self._opener = observed.opener
        #: What every measurement of this call has.
        self._named: Attributes = {"rehydrate.workflow.name": observed.workflow}
        self._root = telemetry.tracer.start_span(
            "workflow.run", attributes={**self._named, "rehydrate.workflow.version": observed.version}
        )
        self._run_id = ""
        self._linked = ""
        self._pending = 0
        #: By path: sub-workflows that this call has seen and that have not ended.
        self._scopes: dict[str, Span] = {}
        #: By path: when its superstep began.
        self._supersteps: dict[str, float] = {}
        self._is_over = False

    @property
    def trace(self) -> str:
        """The context of the call's span."""
        return trace_parent(self._root)

    def restored(self, restored: Restored) -> None:
        """Make the span of a restore."""
        telemetry = self._telemetry
        span = telemetry.tracer.start_span(
            "checkpoint.restore",
            set_span_in_context(self._root),
            attributes={
                **self._named,
                "rehydrate.run.id": restored.run_id,
                "rehydrate.checkpoint.id": restored.checkpoint_id,
                "rehydrate.checkpoint.records": restored.records,
            },
            start_time=began_at(restored.seconds),
        )
        measured = dict(self._named)
        if restored.error is not None:
            measured["error.type"] = telemetry.fail(span, None, restored.error)
        self._instruments.restore_duration.record(restored.seconds, measured)
        span.end()

    def found(self, found: Found) -> None:
        """Say whose run it is, and link to the call before."""
        self._run_id, self._pending = found.run_id, found.pending
        self._root.set_attribute("rehydrate.run.id", found.run_id)
        self._root.set_attribute("rehydrate.turn.cause", found.cause.value)
        link = link_to(found.trace)
        if link is not None and found.trace != self._linked:
            self._root.add_link(link.context, link.attributes)
            self._linked = found.trace

    def saved(self, saved: Saved) -> None:
        """Make the span of a commit."""
        telemetry, header = self._telemetry, saved.commit.header
        span = telemetry.tracer.start_span(
            "checkpoint.save",
            set_span_in_context(self._root),
            attributes={
                **self._named,
                "rehydrate.run.id": header.run_id,
                "rehydrate.checkpoint.id": header.checkpoint_id,
                "rehydrate.checkpoint.number": header.seq,
                "rehydrate.checkpoint.cause": header.cause.value,
                "rehydrate.checkpoint.size": header.size,
                "rehydrate.checkpoint.records": len(saved.commit.puts),
            },
            start_time=began_at(saved.seconds),
        )
        measured = dict(self._named)
        if saved.error is None:
            self._instruments.save_size.record(header.size, measured)
            self._count_requests(header.pending)
        else:
            measured["error.type"] = telemetry.fail(span, None, saved.error)
            self._count_conflict(saved.error)
        self._instruments.save_duration.record(saved.seconds, measured)
        span.end()

    def told(self, events: Sequence[Event]) -> None:
        """Follow scopes and supersteps."""
        self._count_conflicting_writes(events)
        for event in events:
            match event:
                case TurnStarted():
                    self._root.set_attribute("rehydrate.turn.number", event.turn)
                    self._root.set_attribute("rehydrate.turn.replayed", event.replayed)
                    if event.replayed:
                        self._instruments.replayed_turns.add(1, self._named)
                case SuperstepStarted():
                    self._supersteps[event.path] = perf_counter()
                case SuperstepCompleted():
                    self._measure_superstep(event.path)
                case ScopeStarted():
                    self._scope(event.path)
                case ScopeEnded():
                    span = self._scopes.pop(event.path, None)
                    if span is not None:
                        span.end()
                case InvocationFailed() if event.path:
                    self._telemetry.fail(self._scope(event.path), event.failure, None)
                case _:
                    pass

    def _measure_superstep(self, path: str) -> None:
        began = self._supersteps.pop(path, None)
        if began is None:
            return  # it began in an earlier call
        measured = {**self._named, "rehydrate.scope.node": _NUMBERS.sub("", path)} if path else self._named
        self._instruments.superstep_duration.record(perf_counter() - began, measured)

    def _count_conflicting_writes(self, events: Sequence[Event]) -> None:
        """Count a conflict once, although each of its writers has failed with it."""
        failed = [event for event in events if isinstance(event, InvocationFailed) and event.failure.kind == "conflict"]
        if failed:
            met = {(event.path, event.failure.facts) for event in failed}
            self._instruments.conflicts.add(len(met), {**self._named, "error.type": failed[0].failure.type})

    def _scope(self, path: str) -> Span:
        """Return the span of a scope, which begins when this call first sees it."""
        if not path or self._is_over:
            return self._root
        span = self._scopes.get(path)
        if span is None:
            parent = self._scope(path.rpartition("/")[0])
            attributes: Attributes = {
                **self._named,
                "rehydrate.run.id": self._run_id,
                "rehydrate.scope.path": path,
            }
            span = self._telemetry.tracer.start_span("workflow.run", set_span_in_context(parent), attributes=attributes)
            self._scopes[path] = span
        return span

    def began(self, attempt: Attempt) -> Activity:
        """Begin the span of an attempt: under its scope, or for a step where it is called."""
        parent = None if attempt.step else set_span_in_context(self._scope(attempt.path))
        return AttemptSpan(self._telemetry, attempt, self._named, self._opener, parent)

    def ended(self, ending: Ending) -> None:
        """End what is open."""
        self._is_over = True
        for path in reversed(self._scopes):
            self._scopes[path].end()
        self._scopes.clear()
        measured = dict(self._named)
        if ending.status is not None:
            measured["rehydrate.run.status"] = ending.status.value
            self._root.set_attribute("rehydrate.run.status", ending.status.value)
            self._root.set_attribute("rehydrate.run.open_requests", ending.pending)
        error = None if isinstance(ending.error, _STOPS) else ending.error
        if ending.failure is not None or error is not None:
            measured["error.type"] = self._telemetry.fail(self._root, ending.failure, error)
        if ending.where:
            self._root.set_attribute("rehydrate.failure.place", ending.where)
        if error is None and ending.status is not None:
            self._count_requests(ending.pending)
        elif error is not None and not isinstance(error, CommitConflictError):  # that one was counted with its commit
            self._count_conflict(error)
        self._instruments.run_duration.record(ending.seconds, measured)
        self._root.end()

    def _count_requests(self, pending: int) -> None:
        if pending != self._pending:
            self._instruments.open_requests.add(pending - self._pending, self._named)
            self._pending = pending

    def _count_conflict(self, error: BaseException) -> None:
        if isinstance(error, _CONFLICTS):
            self._instruments.conflicts.add(1, {**self._named, "error.type": type(error).__qualname__})
