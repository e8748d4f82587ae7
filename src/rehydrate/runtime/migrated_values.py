"""What a migrated run holds, held against the definition of today: lists in state, values, handlers that take them.

Every value is opened once. Nothing of it reaches a handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

import msgspec

from rehydrate.codecs import ValueCodec, type_name
from rehydrate.codecs.rewriting import items_of, list_of
from rehydrate.engine.migration.homes import definition_at
from rehydrate.engine.migration.routes import outlet_now
from rehydrate.engine.migration.values import Values
from rehydrate.engine.plan import step_key
from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import part_name
from rehydrate.errors import WorkflowCheckpointException
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.graph.handlers import ResponseHandlerSpec
from rehydrate.graph.hints import matches
from rehydrate.model.effects import Ask, Effect, Output, Route, Send
from rehydrate.model.records import (
    DoneRecord,
    Key,
    PartRecord,
    Record,
    RequestRecord,
    StateRecord,
    StepRecord,
)
from rehydrate.model.sealed import Items, Listed, Payload, Sealed

from .requests import hint_named
from .state_view import committed_parts

#: A request to the parent is checked where it was asked, and a pass that goes on by its message.
_CHECKED_ELSEWHERE: Final = frozenset({"request", "pass"})
#: Gets a place and an error of the codec; raises.
Refuse = Callable[[str, WorkflowCheckpointException], None]


def fit_lists(run: Run, graph: Definition) -> list[str]:
    """Store each state key in the form that its reducer of today needs; return what cannot be."""
    wrong: list[str] = []
    delta: dict[Key, Record | None] = {}
    for path in scopes(run):
        here = definition_at(graph, path)
        for key, record in run.items(path, "state") if here is not None else ():
            reducer = here.reducers.get(key) if here is not None else None
            grows = reducer is not None and reducer.name in LIST_REDUCERS
            if grows == (record.value is None):
                continue
            if not grows:
                parts = committed_parts(run, path, key)
                prefix = part_name(key, 0)[:-1]
                delta |= {(path, "part", name): None for name in run.table(path, "part") if name.startswith(prefix)}
                delta[path, "state", key] = StateRecord(list_of(parts))
            elif record.value.type == "list":
                items = items_of(record.value)
                delta[path, "part", part_name(key, 0)] = PartRecord(items)
                delta[path, "state", key] = StateRecord(None, items.count, merged=1, next=1)
            else:
                wrong.append(
                    f"{path or 'the root'}: state key {key!r} is a {record.value.type} and grows as a list now"
                )
    run.apply(delta_of(delta))
    return wrong


def open_all(codec: ValueCodec, run: Run, graph: Definition, refuse: Refuse) -> None:
    """Open every value; those of instances whose executor is gone are of no use to anyone."""
    for (path, kind, name), record in sorted(run.records(), key=lambda item: item[0]):
        if kind == "instance":
            here = definition_at(graph, path)
            if here is None or name not in here.executors:
                continue
        place = f"{path or 'the root'}, {kind} {name}".replace("\x1f", " ").rstrip()

        def one(sealed: Sealed, place: str = place) -> Sealed:
            try:
                codec.open(sealed)
            except WorkflowCheckpointException as error:
                refuse(place, error)
            return sealed

        def items(items: Items, place: str = place) -> Items:
            try:
                codec.open_items([items.data], items.count)
            except WorkflowCheckpointException as error:
                refuse(place, error)
            return items

        Values(one, items).of(record)


class Fit:
    """Whether what waits in a run is taken by the executors that it waits for."""

    def __init__(self, codec: ValueCodec, run: Run, graph: Definition) -> None:
        self.codec = codec
        self.run = run
        self.graph = graph

    def lines(self) -> Iterator[str]:
        """Give what is not taken, one line each; all executors must be there."""
        for path in scopes(self.run):
            here = definition_at(self.graph, path)
            if here is None:
                continue
            where = f"{path}/" if path else ""
            for line in (*self._step(path, here), *self._inbox(path, here), *self._joins(path, here)):
                yield f"{where}{line}"
            for line in (*self._requests(path, here), *self._effects(path, here), *self._passes(path, here)):
                yield f"{where}{line}"

    def _step(self, path: str, here: Definition) -> Iterator[str]:
        step: StepRecord | None = self.run.get(*step_key(path))
        for delivery in step.deliveries if step is not None else ():
            if delivery.kind in _CHECKED_ELSEWHERE:
                continue
            payload = step.payloads[delivery.payload] if step is not None else Listed(())
            data = step.payloads[delivery.payload + 1] if step is not None and delivery.kind == "answer" else None
            yield from self._taken(here, delivery.executor, payload, data, delivery.handler)

    def _inbox(self, path: str, here: Definition) -> Iterator[str]:
        for record in self.run.table(path, "inbox").values():
            if record.kind in _CHECKED_ELSEWHERE:
                continue
            yield from self._taken(here, record.executor, record.payload, record.data, record.handler)

    def _taken(
        self, here: Definition, name: str, payload: Payload, data: Payload | None, handler: str
    ) -> Iterator[str]:
        executor = here.executors[name]
        value = self._value(payload)
        if data is None:
            if not executor.can_take(value):
                yield f"{name}: a {_kind(payload)} waits for it and it takes none"
            return
        spec = self._handler(here, name, handler, self._value(data))
        if spec is None:
            yield f"{name}: an answer waits for its response handler {handler!r}, which does not take it"
        elif not matches(value, spec.response, exact=True):
            yield f"{name}: a {_kind(payload)} waits as an answer for {handler!r}, which takes another type"

    def _joins(self, path: str, here: Definition) -> Iterator[str]:
        for record in self.run.table(path, "join").values():
            if not here.executors[record.join].can_take([self._value(record.payload)]):
                yield f"{record.join}: a {record.payload.type} waits in its join and it takes no list of such"
        for record in self.run.table(path, "gather").values():
            into = self.run.get(path, "map", str(record.map)).into
            if not here.executors[into].can_take([self._value(record.payload)]):
                yield f"{into}: a {record.payload.type} waits at the end of its map and it takes no list of such"

    def _passes(self, path: str, here: Definition) -> Iterator[str]:
        """Check the message of each pass of a function that waits."""
        for found in self.run.table(path, "pass").values():
            payload: Payload | None = found.payload
            if here.body is None:
                yield f"{here.start}: a function waits, and the workflow is a graph now"
            elif payload is not None and not here.executors[here.body].can_take(self._value(payload)):
                yield f"{here.body}: it waits with a {_kind(payload)} and takes none"

    def _requests(self, path: str, here: Definition) -> Iterator[str]:
        """Check each open request, and note in it the type that it expects today."""
        for name, found in self.run.items(path, "request"):
            record: RequestRecord = found
            expected = self._expected(here, record.executor, record)
            if expected is None:
                yield _unanswered(record.executor, "an open request", record)
                continue
            record = msgspec.structs.replace(record, response_type=expected)
            self.run.apply(delta_of({(path, "request", name): record}))

    def _effects(self, path: str, here: Definition) -> Iterator[str]:
        """Check what finished invocations ask and send, and what the scope's outbox holds."""
        for kind in ("done", "unrouted"):
            for name, found in self.run.items(path, kind):
                done: DoneRecord = found
                executor = name.partition("#")[0]
                for effect in done.effects:
                    yield from self._effect(path, here, executor, effect)
                effects = tuple(self._with_type(here, executor, effect) for effect in done.effects)
                self.run.apply(delta_of({(path, kind, name): msgspec.structs.replace(done, effects=effects)}))
        for _, item in self.run.items(path, "outbox"):
            if not item.request:
                yield from self._left(path, item.value, item.routes)

    def _effect(self, path: str, here: Definition, executor: str, effect: Effect) -> Iterator[str]:
        if isinstance(effect, Send):
            yield from self._sent(here, effect.value, effect.routes or ())
        elif isinstance(effect, Output):
            yield from self._left(path, effect.value, effect.routes or ())
        elif isinstance(effect, Ask) and self._expected(here, executor, effect) is None:
            yield _unanswered(executor, "a request on its way", effect)

    def _with_type(self, here: Definition, executor: str, effect: Effect) -> Effect:
        """Return a request on its way with the type that it expects today."""
        expected = self._expected(here, executor, effect) if isinstance(effect, Ask) else None
        return effect if expected is None else msgspec.structs.replace(effect, response_type=expected)

    def _left(self, path: str, value: Payload, routes: tuple[Route, ...]) -> Iterator[str]:
        outlet = outlet_now(self.graph, path)
        here = definition_at(self.graph, outlet[0]) if outlet is not None else None
        if here is not None:
            yield from self._sent(here, value, routes)

    def _sent(self, here: Definition, value: Payload, routes: tuple[Route, ...]) -> Iterator[str]:
        message = self._value(value) if routes else None
        for route in routes:
            edge, executor = here.edges[route.edge], here.executors[route.target]
            given = [message] if edge.fan_in or edge.gathers else message
            each = cast("list[object]", message) if edge.into is not None else [given]
            if not all(map(executor.can_take, each)):
                yield f"{route.target}: a {_kind(value)} is on its way to it and it takes none"

    def _expected(self, here: Definition, executor: str, asked: RequestRecord | Ask) -> str | None:
        """Return the type of answers that a request's handler takes today, `None` where it does not take them."""
        if executor == here.body:
            known = hint_named(here.executors[executor], self.codec, asked.response_type) is not None
            return asked.response_type if known else None
        spec = self._handler(here, executor, asked.handler, self._value(asked.data))
        return None if spec is None else type_name(spec.response)

    def _handler(self, here: Definition, executor: str, name: str, data: object) -> ResponseHandlerSpec | None:
        for spec in here.executors[executor].response_handlers:
            if spec.name == name and matches(data, spec.request):
                return spec
        return None

    def _value(self, payload: Payload) -> object:
        if isinstance(payload, Listed):
            return [self.codec.open(item) for item in payload.items]
        return self.codec.open(payload)


def _unanswered(executor: str, what: str, asked: RequestRecord | Ask) -> str:
    if not asked.handler.isidentifier():  # the call of a function
        return f"{executor}: {what} ({asked.data.type}) waits for a {asked.response_type}, which is not declared now"
    waits = f"{what} ({asked.data.type}) waits for its response handler {asked.handler!r}"
    return f"{executor}: {waits}, which does not take it"


def _kind(payload: Payload) -> str:
    if isinstance(payload, Sealed):
        return payload.type
    return f"list of {', '.join(sorted({item.type for item in payload.items}))}"
