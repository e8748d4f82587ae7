"""A synchronous driver of the engine: made-up handlers over random graphs, finished in any order and in any batches.

No event loop, no store, no codec of values: a handler's effects are a pure function of what it was given and reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple
from zlib import crc32

import msgspec

from rehydrate.codecs.records import decode_record, encode_record
from rehydrate.engine.commands import (
    Commit,
    EndRun,
    MergeState,
    Publish,
    RouteAgain,
    StartInvocation,
    StopScope,
)
from rehydrate.engine.inputs import (
    Answer,
    AttemptBroken,
    Input,
    InvocationBroken,
    InvocationFinished,
    StateMerged,
    TimeUp,
    TurnArrived,
)
from rehydrate.engine.invariants import check_run
from rehydrate.engine.reading import attempts, open_requests
from rehydrate.engine.requests import get_request
from rehydrate.engine.run import COUNTED, Run
from rehydrate.engine.transition import Step, transition
from rehydrate.graph.definition import Definition
from rehydrate.ids import scope_of, slot
from rehydrate.model.checkpoint import Status
from rehydrate.model.effects import Ask, Effect, Failure, Output, Respond, Route, Send, SetState, UpdateState
from rehydrate.model.events import Event
from rehydrate.model.records import DoneRecord, Key, RunRecord, TimerRecord
from rehydrate.model.sealed import Items, Listed, Payload, Sealed

Records = list[tuple[Key, bytes]]
#: The time of the first call.
START = 1000.0


def mix(*parts: object) -> int:
    """Digest values into a number."""
    return crc32(repr(parts).encode())


def sealed(mark: int, fuel: int) -> Sealed:
    """A message; its fuel bounds all work that descends from it."""
    return Sealed("Item", b"%d %d" % (mark, fuel))


def listed(mark: int, fuel: int) -> Listed:
    """A list that a map edge takes apart."""
    return Listed(tuple(sealed(mix(mark, index), fuel // 4) for index in range(mark % 5)))


def marks_of(payload: Payload) -> list[tuple[int, int]]:
    """Mark and fuel of a message, or of each message in the list of a join."""
    items = payload.items if isinstance(payload, Listed) else (payload,)
    pairs = [item.data.split() for item in items]
    return [(int(mark), int(fuel)) for mark, fuel in pairs]


def encoded(run: Run) -> Records:
    """All records of a run as bytes, in the order of its tables."""
    return [(key, encode_record(record)) for key, record in run.records()]


def reloaded(records: Records, random: Random | None = None) -> Run:
    """A run from bytes, its records in any order: a store promises none."""
    shuffled = list(records)
    if random is not None:
        random.shuffle(shuffled)
    return Run((key, decode_record(key[1], data)) for key, data in shuffled)


def counted(run: Run, kind: str) -> int:
    """How many records there are of a kind, each open request counted by itself."""
    if kind == "request":
        return len(open_requests(run))
    return len([1 for key, _ in run.records() if key[1] == kind])


class Hands:
    """What handlers, conditions and reducers do: some handlers fail once or twice and are tried again.

    `stormy`: some handlers and conditions raise.
    """

    def __init__(self, graph: Definition, *, stormy: bool = False) -> None:
        self.graph = graph
        self.stormy = stormy

    def graph_at(self, path: str) -> Definition:
        """The definition that a scope runs."""
        if not path:
            return self.graph
        parent, segment = slot(path)
        return self.graph_at(parent).children[scope_of(segment)[0]]

    def finish(self, run: Run, start: StartInvocation) -> Input:
        """Handle a message."""
        delivery = start.delivery
        given = [pair for payload in start.payloads for pair in marks_of(payload)]
        seen = [encode_record(record) for record in (run.get(start.path, "state", "sum"),) if record]
        mark = mix(delivery.executor, given, seen)
        if delivery.kind == "request":
            return self._respond(run, start, mark)
        failed = attempts(run, start.path, delivery.executor, delivery.activation).failed
        if failed < (mark >> 3) % 7 - 4:
            failure, due = Failure("handler", "FlakyError", str(mark)), START + mark % 60
            return AttemptBroken(start.path, delivery.executor, delivery.activation, failure, due)
        if self.stormy and mark % 9 == 0:
            failure = Failure("handler", "StormError", str(mark))
            return InvocationBroken(start.path, delivery.executor, delivery.activation, failure)
        effects = self._effects(start, mark, sum(fuel for _, fuel in given) - 1)
        return self._routed(start.path, delivery.executor, delivery.activation, effects)

    def _respond(self, run: Run, start: StartInvocation, mark: int) -> Input:
        """Answer most of the intercepted requests that are still open."""
        delivery = start.delivery
        path, _, name = delivery.name.rpartition("/")
        is_open = get_request(run, path, name) is not None
        effects: tuple[Effect, ...] = (Respond(path, name, sealed(mark, 2)),) if is_open and mark % 4 else ()
        return InvocationFinished(start.path, delivery.executor, delivery.activation, effects)

    def route(self, run: Run, command: RouteAgain) -> Input:
        """Ask the conditions again."""
        delivery = command.delivery
        done = run.get(command.path, "unrouted", f"{delivery.executor}#{delivery.activation}")
        assert isinstance(done, DoneRecord)
        return self._routed(command.path, delivery.executor, delivery.activation, done.effects)

    def merge(self, command: MergeState) -> Input:
        """Call the reducers."""
        values = {item.key: sealed(mix(item.base, item.values) % 1000, 0) for item in command.contributions}
        return StateMerged(command.path, values)

    def _effects(self, start: StartInvocation, mark: int, fuel: int) -> tuple[Effect, ...]:
        delivery = start.delivery
        effects: list[Effect] = []
        if fuel < -5:
            return ()  # what sub-workflows in a ring yield to each other must end too
        width = len(self._edges(start.path, delivery.executor))
        share = min(fuel, max(0, fuel // (2 * width + 2)))
        sends = range(mark % 3 if width and fuel > 0 else 0)
        effects += [Send(sealed(mix(mark, number), share), None) for number in sends]
        for route in self._maps(start.path, delivery.executor) if fuel > 0 else ():
            effects.append(Send(listed(mix(mark, route), share), (route,)))
        if mark % 4 == 0 or not effects:
            effects.append(Output(sealed(mix(mark, "out"), share), None))
        if share > 0 and (mark >> 4) % 3 == 0:
            effects.append(Ask(0, sealed(mix(mark, "asked"), share), "int", "on_answer", None))
        if (mark >> 6) % 2:
            effects.append(SetState(f"own_{delivery.executor}_plain", sealed(mark, 0)))
            effects.append(UpdateState("sum", sealed(mark % 10, 0)))
        if (mark >> 7) % 3 == 0:
            effects.append(UpdateState("log", Items(b"\x01", 1)))
        if (mark >> 8) % 5 == 0:
            effects.append(UpdateState("bag", Items(b"\x01\x02", 2)))
        return tuple(effects)

    def _routed(self, path: str, executor: str, activation: int, effects: Sequence[Effect]) -> Input:
        """Decide where each message goes; in a storm some conditions raise, and the rest stays undecided."""
        routed: list[Effect] = list(effects)
        for index, effect in enumerate(routed):
            if not isinstance(effect, Send | Output | Ask) or effect.routes is not None:
                continue
            value = effect.data if isinstance(effect, Ask) else effect.value
            if self.stormy and mix(value) % 13 == 0:
                failure = Failure("routing", "PredicateError", "storm")
                return InvocationFinished(path, executor, activation, tuple(routed), failure=failure)
            routes = tuple(route for route in self._ways(path, executor, effect) if mix(value, route) % 5)
            routed[index] = msgspec.structs.replace(effect, routes=routes)
        return InvocationFinished(path, executor, activation, tuple(routed), instance=sealed(mix(effects), 0))

    def _ways(self, path: str, executor: str, effect: Send | Output | Ask) -> list[Route]:
        if isinstance(effect, Send):
            return self._edges(path, executor)
        return self._above(path) if isinstance(effect, Ask) else self._beyond(path)

    def _edges(self, path: str, executor: str, *, police: bool = False) -> list[Route]:
        """The edges of an executor that take a message as it is: those for intercepted requests, or all others."""
        return [
            Route(edge.index, edge.target)
            for edge in self.graph_at(path).edges
            if edge.source == executor and edge.into is None and edge.target.startswith("police") == police
        ]

    def _maps(self, path: str, executor: str) -> list[Route]:
        edges = self.graph_at(path).edges
        return [Route(edge.index, edge.target) for edge in edges if edge.source == executor and edge.into is not None]

    def _beyond(self, path: str) -> list[Route]:
        while path:
            path, segment = slot(path)
            if scope_of(segment)[0] in self.graph_at(path).forwards_messages:
                return self._edges(path, scope_of(segment)[0])
        return []

    def _above(self, path: str) -> list[Route]:
        """The edges along which a request goes at the level that intercepts it."""
        while path:
            path, segment = slot(path)
            if self.graph_at(path).nesting[scope_of(segment)[0]].intercepts:
                return self._edges(path, scope_of(segment)[0], police=True)
        return []


class Waiting(NamedTuple):
    """What will be told of something that runs in a scope."""

    path: str
    finish: Callable[[], Input]


class Driver:
    """One run in memory. Every transition is checked: pure, repeatable, valid, and made of storable records."""

    def __init__(self, hands: Hands, run: Run | None = None) -> None:
        self.hands = hands
        self.run = run or Run()
        self.waiting: list[Waiting] = []
        #: Scopes that were stopped: what runs in them is never told.
        self.over: list[str] = []
        self.events: list[Event] = []
        self.commits = 0
        self.clock = START
        self.ended: EndRun | None = None

    def take(self, *inputs: Input) -> Step:
        """Make one transition real and note what follows from it."""
        before = encoded(self.run)
        self.clock += 1.0
        step = transition(self.hands.graph, self.run, inputs, self.clock)
        assert transition(self.hands.graph, self.run, inputs, self.clock) == step
        assert encoded(self.run) == before
        for (_, kind), changed in step.delta.items():
            for record in changed.values():
                assert record is None or decode_record(kind, encode_record(record)) == record
        self.run.apply(step.delta)
        assert check_run(self.run) == []
        assert self.run.totals == {kind: counted(self.run, kind) for kind in COUNTED}
        for command in step.commands:
            self._obey(command)
        return step

    def _obey(self, command: object) -> None:
        hands, run = self.hands, self.run
        match command:
            case StartInvocation():
                self._wait(command.path, lambda: hands.finish(run, command))
            case RouteAgain():
                self._wait(command.path, lambda: hands.route(run, command))
            case MergeState():
                self._wait(command.path, lambda: hands.merge(command))
            case StopScope():
                self.over.append(command.path)
            case Publish():
                self.events += command.events
            case Commit():
                self.commits += 1
            case EndRun():
                self.ended = command

    def _wait(self, path: str, finish: Callable[[], Input]) -> None:
        self.waiting.append(Waiting(path, finish))

    def begin(self, arrived: TurnArrived) -> None:
        """Claim a turn or a continuation; whatever ran before is gone with its process."""
        self.waiting.clear()
        self.over.clear()
        self.ended = None
        self.take(arrived)

    def rest(self, random: Random, batch: int = 1) -> Status:
        """Let what waits finish in any order, so many at a time, until the run rests."""
        while self.ended is None:
            assert self.running(), "nothing runs, and the run has not ended"
            self.take(*self.some(random, batch))
        assert self.running() == []
        return self.ended.status

    def some(self, random: Random, batch: int) -> list[Input]:
        """Finish some of what waits."""
        waiting = self.running()
        random.shuffle(waiting)
        chosen, self.waiting = waiting[:batch], waiting[batch:]
        return [item.finish() for item in chosen]

    def running(self) -> list[Waiting]:
        """What waits in scopes that are not stopped."""
        return [
            item
            for item in self.waiting
            if not any(item.path == over or item.path.startswith(f"{over}/") for over in self.over)
        ]

    def timers(self) -> list[TimeUp]:
        """The times that run."""
        return [
            TimeUp(path, record.deadline)
            for (path, kind, _), record in self.run.records()
            if kind == "timer" and isinstance(record, TimerRecord) and record.deadline is not None
        ]

    def answers(self) -> tuple[Answer, ...]:
        """An answer to every open request."""
        return tuple(
            Answer(opened.path, opened.name, sealed(mix("answer", opened.record.data.data), 2))
            for opened in open_requests(self.run)
        )


def first_turn(fuel: int) -> TurnArrived:
    """The input that starts a run."""
    record = RunRecord("birth", "root", 1, "signature")
    return TurnArrived(message=sealed(1, fuel), base=None, digest="first", new_run=record, signature="signature")


def answering(driver: Driver) -> TurnArrived:
    """A turn that answers everything."""
    return TurnArrived(answers=driver.answers(), base="before", digest="answers")


def continuing(*, interrupted: bool, limit_anew: bool = False) -> TurnArrived:
    """A call without new input."""
    return TurnArrived(
        base="before", digest="continue", continuation=True, interrupted=interrupted, limit_anew=limit_anew
    )


def run_to_the_end(driver: Driver, random: Random, *, fuel: int, batch: int = 1) -> list[Status]:
    """Start a run and answer at each pause until nothing is open; a stopped one is continued in fair weather."""
    driver.begin(first_turn(fuel))
    found = [driver.rest(random, batch)]
    while found[-1] is not Status.IDLE and len(found) < 20:
        if found[-1] is Status.IDLE_WITH_PENDING_REQUESTS:
            driver.begin(answering(driver))
        else:
            driver.hands.stormy = False
            driver.begin(continuing(interrupted=False, limit_anew=found[-1] is Status.LIMIT_REACHED))
        found.append(driver.rest(random, batch))
    return found
