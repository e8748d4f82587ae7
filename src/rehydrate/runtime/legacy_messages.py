"""Messages that were on their way in a run that was made elsewhere, or that its joins held, at any depth.

They take the edges of the workflow here, whose conditions are asked as after a handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from rehydrate.codecs import type_name
from rehydrate.engine.change import Change
from rehydrate.engine.joins import deadlocked, fire_joins
from rehydrate.engine.plan import step_key
from rehydrate.engine.requests import name_of
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.scopes import is_over
from rehydrate.engine.steps import Arrival
from rehydrate.errors import CaptureError, EffectError, PredicateError
from rehydrate.graph.definition import Definition
from rehydrate.ids import ancestors, slot
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
    Trail,
)
from rehydrate.model.sealed import Sealed

from .program import Program

#: Nothing that was made elsewhere says which input of its scope it descends from. All of it counts as of one: joins
#: then pair what comes in its order, and wait for what may still come. With trails that were guessed, they would fire
#: without a part that is still to come.
ONE_INPUT: Final[Trail] = (1,)


@dataclass(frozen=True)
class LegacyRequest:
    """A question that was open: the executor that asked, what it asked, and the type of the answer."""

    executor_id: str
    data: object
    response_type: object


@dataclass(frozen=True)
class LegacyMessage:
    """A message that was on its way, or that a join held.

    From an executor (`source`) it takes the edges that it takes here, or the one to `target`. Without one it came from
    outside: to `target`, else to the start executor. With `answers` it is the answer to that question.
    """

    data: object
    source: str = ""
    target: str = ""
    answers: LegacyRequest | None = None


class Placing:
    """Puts messages into one scope of a run at rest."""

    def __init__(self, run: Run, program: Program, path: str, graph: Definition) -> None:
        self._run = run
        self._program = program
        self._path = path
        self._graph = graph
        self._delta: dict[Key, Record | None] = {}
        self._answered: dict[str, int] = {}
        self._waiting = 0
        self._joined = 0

    def put(self, message: LegacyMessage) -> None:
        """Place a message. Raises `CaptureError` where it has no way."""
        sealed = self._program.codec.seal(message.data)
        if message.answers is not None:
            return self._put_answer(sealed, message.answers)
        if not message.source:
            return self._from_outside(message, sealed)
        for route in self._routes(message, sealed):
            edge = self._graph.edges[route.edge]
            if edge.gathers:
                raise CaptureError(f"a message to {edge.target!r} would be one of a map.", "Leave it out.")
            if edge.fan_in:
                self._joined += 1
                record = JoinRecord(edge.target, edge.source, ONE_INPUT, self._joined, sealed)
                self._delta[self._path, "join", str(self._joined)] = record
            else:
                self._wait(InboxRecord("message", edge.target, sealed, ONE_INPUT))
        return None

    def finish(self) -> None:
        """Write what was placed."""
        parent, segment = slot(self._path)
        scope: ScopeRecord = self._run.get(parent, "scope", segment)
        self._delta[parent, "scope", segment] = msgspec.structs.replace(scope, joined=self._joined)
        self._run.apply(delta_of(self._delta))

    def _put_answer(self, answer: Sealed, question: LegacyRequest) -> None:
        """Place an answer to a question that is not open any more."""
        executor_id = question.executor_id
        counter = self._run.get(self._path, "counter", executor_id)
        before = counter.value if isinstance(counter, CounterRecord) else 0
        number = self._answered[executor_id] = self._answered.get(executor_id, before) + 1
        request = request_record(self._program, self._graph, self._path, number, question)
        self._wait(
            InboxRecord(
                "answer", executor_id, answer, request.trail, name_of(request), request.handler, data=request.data
            )
        )
        self._delta[self._path, "counter", executor_id] = CounterRecord(number)

    def _from_outside(self, message: LegacyMessage, sealed: Sealed) -> None:
        name = message.target or self._graph.start
        target = self._graph.executors.get(name)
        if target is None or not target.can_take(message.data):
            raise CaptureError(
                f"no executor {name!r} takes a {type(message.data).__name__}.",
                "Name one that has a handler for it, or leave it out.",
            )
        self._wait(InboxRecord("message", target.id, sealed, ONE_INPUT))

    def _routes(self, message: LegacyMessage, sealed: Sealed) -> tuple[Route, ...]:
        if message.source not in self._graph.executors:
            where = self._path or "the root"
            raise CaptureError(f"{where} has no executor {message.source!r}.", "Name an executor of the workflow.")
        outlet = self._program.outlets.at(self._graph, message.source)
        target = message.target or None
        try:
            whole, apart = outlet.check_send(message.data, target, message.source)
            if apart:
                raise CaptureError(f"a map edge takes a message of {message.source!r} apart.", "Leave it out.")
            return outlet.route(message.data, sealed, target) if whole is None else whole
        except (EffectError, PredicateError) as error:
            raise CaptureError(f"a message has no way on: {error}", "Leave it out.") from error

    def _wait(self, record: InboxRecord) -> None:
        self._delta[self._path, "inbox", str(self._waiting)] = record
        self._waiting += 1


def go_on(run: Run, program: Program, paths: Iterable[str]) -> None:
    """Give the scopes that messages were put into, and those above, an empty superstep at whose end these are taken.

    A scope whose joins hold all of it and wait for the answer to a question stays at rest.
    """
    busy = {path for path in paths if _can_go_on(run, program, path)}
    busy |= {above for path in busy for above in ancestors(path)}
    delta: dict[Key, Record | None] = {}
    for path in busy:
        parent, segment = slot(path)
        scope: ScopeRecord = run.get(parent, "scope", segment)
        number = scope.superstep + 1
        delta[parent, "scope", segment] = msgspec.structs.replace(scope, superstep=number, used=number)
        delta[step_key(path)] = StepRecord(number)
    run.apply(delta_of(delta))


def _can_go_on(run: Run, program: Program, path: str) -> bool:
    """Tell whether something would come of a barrier of a scope. It is tried on a draft that nobody takes over."""
    if run.count(path, "inbox"):
        return True
    change = Change(program.graph, run)
    if is_over(change, path):
        return True
    graph = change.graph_at(path)
    arrivals: list[Arrival] = []
    fire_joins(change, path, graph, arrivals)
    return bool(arrivals) or deadlocked(change, path, graph)


def request_record(
    program: Program, graph: Definition, path: str, activation: int, request: LegacyRequest
) -> RequestRecord:
    """Return the record of an open question. Raises `CaptureError` where nobody takes an answer to it."""
    executor = graph.executors.get(request.executor_id)
    where = path or "the root"
    if executor is None:
        raise CaptureError(f"{where} has no executor {request.executor_id!r}.", "Name an executor of the workflow.")
    try:
        spec = executor.response_handler_for(request.data, request.response_type)
    except EffectError as error:
        raise CaptureError(f"nothing takes an answer to it: {error}", "Ask for what a handler answers.") from error
    sealed = program.codec.seal(request.data)
    asked = type_name(request.response_type)
    return RequestRecord(request.executor_id, activation, 0, sealed, asked, spec.name, ONE_INPUT)
