"""Messages that were on their way in a run that was made elsewhere, or that its joins held.

They take the edges of the workflow here, whose conditions are asked as after a handler. Only the root has any.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from rehydrate.engine.plan import step_key
from rehydrate.engine.requests import name_of
from rehydrate.engine.run import Run, delta_of
from rehydrate.errors import CaptureError, EffectError, PredicateError
from rehydrate.ids import ABOVE_ROOT
from rehydrate.model.effects import Route
from rehydrate.model.records import (
    CounterRecord,
    InboxRecord,
    JoinRecord,
    Key,
    Record,
    RequestRecord,
    ScopeRecord,
    StepRecord,
)
from rehydrate.model.sealed import Sealed

from .program import Program

_ROOT_TRAIL: Final = (1,)


class Routed(Protocol):
    """A message with where it came from and where it is to go."""

    @property
    def data(self) -> object:
        """The message."""
        ...

    @property
    def source(self) -> str:
        """The executor that sent it; empty for one from outside."""
        ...

    @property
    def target(self) -> str:
        """Where it is to go; empty for wherever the edges lead."""
        ...


class Placing:
    """Puts messages into a run at rest, which then has an empty superstep at whose end they are taken."""

    def __init__(self, run: Run, program: Program) -> None:
        self._run = run
        self._program = program
        self._delta: dict[Key, Record | None] = {}
        self._waiting = 0
        self._joined = 0

    def put(self, message: Routed) -> None:
        """Place a message. Raises `CaptureError` where it has no way."""
        sealed = self._program.codec.seal(message.data)
        if not message.source:
            return self._from_outside(message, sealed)
        for route in self._routes(message, sealed):
            edge = self._program.graph.edges[route.edge]
            if edge.gathers:
                raise CaptureError(f"a message to {edge.target!r} would be one of a map.", "Leave it out.")
            if edge.fan_in:
                self._joined += 1
                record = JoinRecord(edge.target, edge.source, _ROOT_TRAIL, self._joined, sealed)
                self._delta["", "join", str(self._joined)] = record
            else:
                self._wait(InboxRecord("message", edge.target, sealed, _ROOT_TRAIL))
        return None

    def put_answer(self, answer: object, request: RequestRecord) -> None:
        """Place an answer to a question that is not open any more."""
        value = self._program.codec.seal(answer)
        name = name_of(request)
        self._wait(
            InboxRecord("answer", request.executor, value, request.trail, name, request.handler, data=request.data)
        )
        self._delta["", "counter", request.executor] = CounterRecord(request.activation)

    def finish(self) -> None:
        """Let the run go on with what was placed; where joins hold all of it, an open question does that later."""
        key = (ABOVE_ROOT, "scope", "")
        scope: ScopeRecord = self._run.get(*key)
        self._delta[key] = scope = msgspec.structs.replace(scope, joined=self._joined)
        if self._waiting or not self._run.totals["request"]:
            superstep = scope.superstep + 1
            self._delta[key] = msgspec.structs.replace(scope, superstep=superstep, used=superstep)
            self._delta[step_key("")] = StepRecord(superstep)
        self._run.apply(delta_of(self._delta))

    def _from_outside(self, message: Routed, sealed: Sealed) -> None:
        graph = self._program.graph
        target = graph.executors.get(message.target or graph.start)
        if target is None or not target.can_take(message.data):
            raise CaptureError(
                f"no executor {message.target or graph.start!r} takes a {type(message.data).__name__}.",
                "Name one that has a handler for it, or leave it out.",
            )
        self._wait(InboxRecord("message", target.id, sealed, _ROOT_TRAIL))

    def _routes(self, message: Routed, sealed: Sealed) -> tuple[Route, ...]:
        if message.source not in self._program.graph.executors:
            raise CaptureError(f"the root has no executor {message.source!r}.", "Name an executor of the workflow.")
        outlet = self._program.outlets.at(self._program.graph, message.source)
        target = message.target or None
        try:
            whole, apart = outlet.check_send(message.data, target, message.source)
            if apart:
                raise CaptureError(f"a map edge takes a message of {message.source!r} apart.", "Leave it out.")
            return outlet.route(message.data, sealed, target) if whole is None else whole
        except (EffectError, PredicateError) as error:
            raise CaptureError(f"a message has no way on: {error}", "Leave it out.") from error

    def _wait(self, record: InboxRecord) -> None:
        self._delta["", "inbox", str(self._waiting)] = record
        self._waiting += 1
