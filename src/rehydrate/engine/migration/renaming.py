"""Another id for an executor, in everything that is stored of it: a pass over all records of a run.

What the outside knows by a name keeps it: requests and unfinished invocations leave an alias where their name changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import assert_never

import msgspec

from rehydrate.engine.plan import invocation_name
from rehydrate.engine.run import Run, delta_of, known_name
from rehydrate.graph.recorded import RecordedGraph
from rehydrate.ids import ABOVE_ROOT, join_slot, scope_of, slot
from rehydrate.model.effects import (
    Again,
    Ask,
    Effect,
    Failure,
    Output,
    Pause,
    Respond,
    Route,
    Routes,
    Send,
    SetState,
    UpdateState,
)
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord, ReadRecord
from rehydrate.model.records import (
    AliasRecord,
    AttemptRecord,
    CounterRecord,
    Delivery,
    DoneRecord,
    FailureRecord,
    GatherRecord,
    InboxRecord,
    InputRecord,
    InstanceRecord,
    JoinRecord,
    Key,
    LimitRecord,
    MapRecord,
    OutboxRecord,
    OutputRecord,
    PartRecord,
    ReceiptRecord,
    ReceiptsRecord,
    Record,
    RequestRecord,
    RestRecord,
    RunRecord,
    ScopeRecord,
    SignatureRecord,
    StateRecord,
    StepRecord,
    TimerRecord,
    TurnRecord,
)
from rehydrate.model.request_packs import ClosedRecord, RequestsRecord

from .levels import Level, graph_of, interceptor_of, level_of, outlet_of

#: Kinds that stand in the parent of the scope they are about.
_LISTED = frozenset({"scope", "step", "rest"})
#: Kinds that are named by an invocation, or begin with its name.
_OF_INVOCATIONS = frozenset({"done", "unrouted", "attempt", "request"})


def rename_executor(run: Run, root: RecordedGraph, levels: Set[Level], old: str, new: str) -> Callable[[str], str]:
    """Rename an executor in every scope of some levels, and in the recorded graphs; returns how paths have changed."""
    renaming = Renaming(run, root, levels, old, new)
    delta: dict[Key, Record | None] = dict.fromkeys(key for key, _ in run.records())
    for key, record in run.records():
        delta.update(renaming.renamed(key, record))
    run.apply(delta_of(delta))
    for level in levels:
        graph = graph_of(root, level)
        if graph is not None:
            _rename_recorded(graph, old, new)
    return renaming.path


def _rename_recorded(graph: RecordedGraph, old: str, new: str) -> None:
    def named(name: str) -> str:
        return new if name == old else name

    graph.kinds = {named(name): kind for name, kind in graph.kinds.items()}
    graph.children = {named(name): child for name, child in graph.children.items()}
    graph.edges = [
        edge._replace(source=named(edge.source), target=named(edge.target), into=edge.into and named(edge.into))
        for edge in graph.edges
    ]
    graph.start = named(graph.start)
    graph.nesting = {named(name): facts for name, facts in graph.nesting.items()}


@dataclass(frozen=True)
class Here:
    """What a record stands in: the scope's path before and after, and whether it, its outlet, and the level that
    intercepts its requests see the new id."""

    path: str
    after: str
    own: bool
    beyond: bool
    above: bool


class Renaming:
    """One renaming; gives each record under its new key."""

    def __init__(self, run: Run, root: RecordedGraph, levels: Set[Level], old: str, new: str) -> None:
        self.run = run
        self.root = root
        self.levels = levels
        self.old = old
        self.new = new
        self._places: dict[str, Here] = {}

    def renamed(self, key: Key, record: Record) -> Iterator[tuple[Key, Record]]:
        """Give a record under its new key, with the alias that it needs."""
        path, kind, name = key
        if kind in _LISTED:
            here = self._here(join_slot(path, name))
            parent, segment = slot(here.after)
            yield (parent, kind, segment), self._record(here, name, record)
            if isinstance(record, StepRecord):
                yield from self._aliases(here, self._unfinished(here.path, record))
            return
        if kind == "alias":  # made anew where it is still needed
            return
        here = self._here(path)
        if here.own and kind == "instance" and name == self.new:  # of an executor that is gone
            return
        if here.own and kind == "counter" and name == self.old:
            # It stays, too: an executor that gets the id later must not repeat names that the outside knows.
            yield (here.after, kind, name), record
        yield (here.after, kind, self._key_name(here, kind, name)), self._record(here, name, record)
        if kind == "request":
            yield from self._aliases(here, [name])

    def _here(self, path: str) -> Here:
        found = self._places.get(path)
        if found is None:
            outlet = outlet_of(self.root, path)
            beyond = outlet is not None and level_of(outlet[0]) in self.levels
            asked = interceptor_of(self.root, path)
            above = asked is not None and level_of(asked[0]) in self.levels
            found = Here(path, self.path(path), level_of(path) in self.levels, beyond, above)
            self._places[path] = found
        return found

    def path(self, path: str) -> str:
        """Return the path that a scope gets."""
        above: list[str] = []
        found: list[str] = []
        for segment in path.split("/") if path and path != ABOVE_ROOT else ():
            executor, number = scope_of(segment)
            named = self.new if executor == self.old and tuple(above) in self.levels else executor
            above.append(executor)
            found.append(f"{named}#{number}")
        return "/".join(found)

    def _unfinished(self, path: str, step: StepRecord) -> list[str]:
        """Return the invocations of a superstep that may have told the outside their key and will do so again."""
        done = self.run.table(path, "done")
        graph = graph_of(self.root, level_of(path))
        below = graph.children if graph is not None else {}
        names = [invocation_name(d.executor, d.activation) for d in step.deliveries if d.executor not in below]
        return [name for name in names if name not in done]

    def _aliases(self, here: Here, names: list[str]) -> Iterator[tuple[Key, Record]]:
        for name in names:
            known = known_name(self.run, here.path, name)
            after = self._invocation(name) if here.own else name
            if known != f"{here.after}/{after}":
                yield (here.after, "alias", after), AliasRecord(known)

    def _id(self, name: str) -> str:
        return self.new if name == self.old else name

    def _invocation(self, name: str) -> str:
        executor, sign, rest = name.partition("#")
        return f"{self._id(executor)}{sign}{rest}"

    def _key_name(self, here: Here, kind: str, name: str) -> str:
        if not here.own:
            return name
        if kind in _OF_INVOCATIONS:
            return self._invocation(name)
        if kind == "failure":  # of an invocation, or of a join or state key by its bare name
            failure: FailureRecord = self.run.get(here.path, kind, name)
            return self._invocation(name) if failure.executor == self.old else name
        return self._id(name) if kind in {"counter", "instance"} else name

    def _record(self, here: Here, name: str, record: Record) -> Record:
        own = here.own
        match record:
            case StepRecord():
                return self._step(here, record)
            case DoneRecord():
                effects = tuple(self._effect(here, effect) for effect in record.effects)
                return msgspec.structs.replace(record, effects=effects)
            case OutboxRecord():
                return self._outbox(here, record)
            case InboxRecord() if record.kind == "request":
                executor = self._id(record.executor) if own else record.executor
                return msgspec.structs.replace(record, executor=executor, name=self._whole(record.name))
            case OutputRecord() if own:
                return msgspec.structs.replace(record, executor_id=self._id(record.executor_id))
            case RequestRecord() | InboxRecord() | FailureRecord() if own:
                return self._of_executor(record)
            case JoinRecord() | MapRecord() if own:
                return self._held(record)
            case CallRecord() | CallsRecord() if own:
                return self._calls(record)
            case CounterRecord() if own and name in {self.old, self.new}:
                return self._counter(here)
            case (
                RequestRecord() | OutputRecord() | InboxRecord() | InputRecord() | TimerRecord() | FailureRecord()
                | JoinRecord() | CounterRecord() | RunRecord() | SignatureRecord() | TurnRecord()
                | ReceiptRecord() | ReceiptsRecord() | ScopeRecord() | LimitRecord() | RestRecord() | AttemptRecord()
                | MapRecord() | GatherRecord() | InstanceRecord() | StateRecord() | PartRecord() | AliasRecord()
                | RequestsRecord() | ClosedRecord()
                | PassRecord() | ReadRecord() | CallRecord() | CallsRecord()
            ):  # fmt: skip
                return record
            case _:
                assert_never(record)

    def _held(self, record: JoinRecord | MapRecord) -> Record:
        if isinstance(record, MapRecord):
            return msgspec.structs.replace(record, into=self._id(record.into))
        return msgspec.structs.replace(record, join=self._id(record.join), source=self._id(record.source))

    def _calls(self, record: CallRecord | CallsRecord) -> Record:
        """Return calls of a function, of which those of a workflow are by its name."""
        if isinstance(record, CallsRecord):
            return CallsRecord({at: self._call(call) for at, call in record.calls.items()})
        return self._call(record)

    def _call(self, call: CallRecord) -> CallRecord:
        return msgspec.structs.replace(call, name=self._id(call.name)) if call.kind == "workflow" else call

    def _of_executor(self, record: RequestRecord | InboxRecord | FailureRecord) -> Record:
        executor = self._id(record.executor)
        if isinstance(record, InboxRecord):
            name = record.name if record.kind == "pass" else self._invocation(record.name)
            return msgspec.structs.replace(record, executor=executor, name=name)
        if isinstance(record, FailureRecord):
            return msgspec.structs.replace(record, executor=executor, failure=self._failure(record.failure))
        return msgspec.structs.replace(record, executor=executor)

    def _counter(self, here: Here) -> CounterRecord:
        """Return what both ids have counted."""
        both = (self.run.get(here.path, "counter", name) for name in (self.old, self.new))
        return CounterRecord(max(item.value for item in both if item is not None))

    def _outbox(self, here: Here, record: OutboxRecord) -> OutboxRecord:
        turns = here.above if record.request else here.beyond
        return msgspec.structs.replace(
            record,
            routes=self._turned(record.routes) if turns else record.routes,
            executor=self._id(record.executor) if here.own else record.executor,
            request=self._whole(record.request) if record.request else "",
        )

    def _step(self, here: Here, record: StepRecord) -> StepRecord:
        deliveries = tuple(self._delivery(here, delivery) for delivery in record.deliveries)
        return msgspec.structs.replace(record, deliveries=deliveries)

    def _delivery(self, here: Here, delivery: Delivery) -> Delivery:
        executor = self._id(delivery.executor) if here.own else delivery.executor
        name = delivery.name
        if delivery.kind == "request":
            name = self._whole(name)
        elif executor != delivery.executor and delivery.kind != "pass":
            name = self._invocation(name)
        return msgspec.structs.replace(delivery, executor=executor, name=name)

    def _whole(self, name: str) -> str:
        """Return the name of a request that stands with its path."""
        path, _, inner = name.rpartition("/")
        return f"{self.path(path)}/{self._invocation(inner) if level_of(path) in self.levels else inner}"

    def _effect(self, here: Here, effect: Effect) -> Effect:
        match effect:
            case Send() if here.own:
                target = None if effect.target is None else self._id(effect.target)
                return msgspec.structs.replace(effect, routes=self._routes(effect.routes), target=target)
            case Output() if here.beyond:
                return msgspec.structs.replace(effect, routes=self._routes(effect.routes))
            case Ask() if here.above:
                return msgspec.structs.replace(effect, routes=self._routes(effect.routes))
            case Respond():
                path, _, name = self._whole(f"{effect.path}/{effect.name}").rpartition("/")
                return msgspec.structs.replace(effect, path=path, name=name)
            case Send() | Output() | Ask() | SetState() | UpdateState() | Pause() | Again():
                return effect
            case _:
                assert_never(effect)

    def _routes(self, routes: Routes) -> Routes:
        return None if routes is None else self._turned(routes)

    def _turned(self, routes: tuple[Route, ...]) -> tuple[Route, ...]:
        return tuple(Route(route.edge, self._id(route.target)) for route in routes)

    def _failure(self, failure: Failure) -> Failure:
        if failure.kind == "response":  # its facts are of another scope, and a restart clears it
            return failure
        first = 1 if failure.kind == "conflict" else 0  # a conflict's first fact is the state key
        facts = (*failure.facts[:first], *map(self._id, failure.facts[first:]))
        return msgspec.structs.replace(failure, facts=facts)
