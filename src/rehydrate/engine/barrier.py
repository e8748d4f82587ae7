"""The barrier: where the effects of a superstep become real, and what that leads to.

All of it happens in one transition. Executors are taken in their canonical order, their messages in the order in which
they were handled, so that nothing depends on what finished first.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import Edge
from rehydrate.ids import join_slot, outer_id, request_name, scope_of, slot
from rehydrate.model.effects import (
    STATE_EFFECTS,
    Again,
    Ask,
    Effect,
    Failure,
    Output,
    Pause,
    Respond,
    Route,
    Send,
    SetState,
    UpdateState,
)
from rehydrate.model.events import MessageDropped, ScopeEnded, SuperstepCompleted
from rehydrate.model.records import (
    Delivery,
    DoneRecord,
    FailureRecord,
    GatherRecord,
    InstanceRecord,
    JoinRecord,
    MapRecord,
    OutboxRecord,
    OutputRecord,
    RequestRecord,
    Trail,
)
from rehydrate.model.sealed import Listed, Payload, Sealed

from .change import Change
from .commands import MergeState
from .intercept import Response, answer_below, going_up, is_intercepted, is_open, refused, setting_out
from .joins import deadlocked, fire_joins
from .mapping import add_left
from .maps import close_maps, map_of
from .passes import come_back, pass_number, settle_pass, still_alive
from .plan import ChainKey, Plan, invocation_name
from .reading import edge_of, surfaced, yielded
from .requests import take_requests
from .run import birth_of, is_live
from .scopes import is_over, trail_of
from .sharing import come_to_rest, forget_inputs
from .state import Write, Writes, apply_writes, contributions, find_conflict, note_write
from .steps import Arrival, close_step, drop_scope, open_step
from .timing import note_time
from .waking import take_inbox


class Barrier:
    """One scope's barrier. `arrivals` gathers what stands at executors in the next superstep."""

    __slots__ = (
        "arrivals", "asked", "chains", "change", "done", "draft", "graph", "path", "plan", "responses", "resting",
        "scope", "superstep",
    )  # fmt: skip

    def __init__(self, change: Change, path: str, plan: Plan) -> None:
        self.change = change
        self.draft = change.draft
        self.path = path
        self.graph: Definition = change.graph_at(path)
        self.plan = plan
        self.superstep = plan.step.superstep
        self.scope = self.draft.scope(path)
        chains = plan.chains
        self.chains: list[ChainKey] = list(chains) if len(chains) < 2 else self._in_order()
        self.arrivals: list[Arrival] = []
        self.asked: list[RequestRecord] = []
        self.responses: list[Response] = []
        self.done: dict[str, list[tuple[Delivery, DoneRecord]]] = {}
        self.resting: dict[str, list[tuple[int, str]]] = {}
        if self.draft.has(path, "rest"):
            for segment, _ in self.draft.items(path, "rest"):
                executor, number = scope_of(segment)
                self.resting.setdefault(executor, []).append((number, segment))

    def run(self, merged: dict[str, Sealed]) -> bool:
        """Make the superstep real; `False` where a conflict or a reducer keeps it from that."""
        writes = self._read()
        if self.responses and (late := refused(self.draft, self.responses)):
            for executor, activation, failure in late:
                self._fail(executor, activation, failure)
            return False
        if writes:
            conflict = find_conflict(self.graph, writes)
            if conflict is not None:
                for write in (conflict.first, conflict.second):
                    self._fail(write.executor, write.activation, conflict.failure())
                return False
            wanted = contributions(self.change, self.path, self.graph, writes) if self.graph.reducers else ()
            if any(item.key not in merged for item in wanted):
                order = MergeState(self.path, wanted)
                if order not in self.change.now:  # another scope's end may have led here in this transition
                    self.change.now.append(order)
                return False
            apply_writes(self.draft, self.path, self.graph, writes, merged)
        if self.draft.totals["inbox"]:
            self.arrivals += take_inbox(self.draft, self.path)
        for executor in self._executors():
            for delivery, done in self.done.get(executor, ()):
                self._take_invocation(delivery, done)
            if executor in self.resting:
                self._take_scopes(executor)
        if self.graph.body is not None:
            self.arrivals = still_alive(self.draft, self.path, self.arrivals)
        take_requests(self.draft, self.path, self.asked, self.change.graph.requests_apart)
        self.change.events.append(SuperstepCompleted(path=self.path, superstep=self.superstep))
        if self.draft.totals["join"]:
            fire_joins(self.change, self.path, self.graph, self.arrivals)
        if self.draft.totals["map"]:
            close_maps(self.change, self.path, self.arrivals)
        self._go_on()
        return True

    def _executors(self) -> list[str]:
        """Return the executors that have a part in this superstep, in canonical order."""
        if len(self.chains) == 1 and not self.resting:
            return [self.chains[0][0]]
        found = {executor for executor, _ in self.chains}
        found.update(self.resting)
        return sorted(found, key=self.graph.position.__getitem__) if len(found) > 1 else list(found)

    def _in_order(self) -> list[ChainKey]:
        """Return the chains by executor and, of a map, by item."""
        position = self.graph.position
        return sorted(self.plan.chains, key=lambda key: (position[key[0]], key[1]))

    def _read(self) -> Writes:
        """Gather the finished invocations in canonical order, and return what they wrote."""
        writes: Writes = {}
        for key in self.chains:
            finished = self.done.get(key[0])
            if finished is None:
                finished = self.done[key[0]] = []
            for delivery in self.plan.chains[key]:
                name = invocation_name(key[0], delivery.activation)
                done: DoneRecord = self.draft.get(self.path, "done", name)
                finished.append((delivery, done))
                for effect in done.effects:
                    if isinstance(effect, STATE_EFFECTS):
                        note_write(writes, Write(key, delivery.activation, effect))
                    elif isinstance(effect, Respond):
                        self.responses.append(Response(key[0], delivery.activation, effect))
        if self.resting:
            add_left(self.change, self.path, self.resting, writes)
        return writes

    def _fail(self, executor: str, activation: int, failure: Failure) -> None:
        """Mark an invocation as failed; what its executor handled after it is unfinished again."""
        for delivery in self.plan.from_here(executor, activation):
            self.draft.remove(self.path, "done", invocation_name(executor, delivery.activation))
        record = FailureRecord(failure, executor, activation)
        self.draft.put(self.path, "failure", invocation_name(executor, activation), record)
        self.change.barriers = True

    def _take_invocation(self, delivery: Delivery, done: DoneRecord) -> None:
        for effect in done.effects:
            self._take_effect(delivery, effect)
        if delivery.executor == self.graph.body:
            again = settle_pass(self.change, self.path, delivery, done)
            if again is not None:
                self.arrivals.append(again)
        if done.instance is not None:
            self.draft.put(self.path, "instance", delivery.executor, InstanceRecord(done.instance))
        name = invocation_name(delivery.executor, delivery.activation)
        for kind in ("done", "alias") if self.draft.totals["alias"] else ("done",):
            self.draft.remove(self.path, kind, name)

    def _take_effect(self, delivery: Delivery, effect: Effect) -> None:
        match effect:
            case Send():
                if not effect.routes:
                    self._drop(delivery.executor, delivery.activation, effect.value)
                for route in effect.routes or ():
                    self._send(effect.value, route, delivery.trail)
            case Output():
                self._yield(effect.value, effect.routes or (), delivery.executor, delivery.activation, delivery.trail)
            case Ask():
                self._ask(delivery, effect)
            case SetState() | UpdateState() | Respond() | Pause() | Again():
                pass
            case _:
                assert_never(effect)

    def _drop(self, executor: str, activation: int, value: Payload) -> None:
        """Tell of a message that every condition declined."""
        self.change.events.append(
            MessageDropped(
                path=self.path,
                executor_id=executor,
                superstep=self.superstep,
                activation=activation,
                type=value.type if isinstance(value, Sealed) else "list",
            )
        )

    def _send(self, value: Payload, route: Route, trail: Trail) -> None:
        edge = edge_of(self.graph, route)
        if isinstance(value, Listed):
            self._take_apart(value, edge, trail)
        elif edge.fan_in:
            self._hold("join", JoinRecord(edge.target, edge.source, trail, self.scope.joined + 1, value))
        elif edge.gathers:
            number = map_of(self.draft, self.path, edge.target, trail)
            self._hold("gather", GatherRecord(number, trail, self.scope.joined + 1, value))
        else:
            self.arrivals.append(Arrival(route.target, value, trail))

    def _hold(self, kind: str, record: JoinRecord | GatherRecord) -> None:
        self.scope = msgspec.structs.replace(self.scope, joined=record.number)
        self.draft.put(self.path, kind, str(record.number), record)

    def _take_apart(self, value: Listed, edge: Edge, trail: Trail) -> None:
        """Send the items of a list on their ways; of an empty one nothing can come."""
        assert edge.into is not None  # noqa: S101  (nothing else is given a list)
        if not value.items:
            self.arrivals.append(Arrival(edge.into, value, trail, "list"))
            return
        number = self.scope.maps + 1
        self.scope = msgspec.structs.replace(self.scope, maps=number)
        self.draft.put(self.path, "map", str(number), MapRecord(edge.into, trail))
        self.arrivals += [Arrival(edge.target, item, (*trail, number, i)) for i, item in enumerate(value.items)]

    def _yield(self, value: Payload, routes: tuple[Route, ...], executor: str, activation: int, trail: Trail) -> None:
        if not self.path:
            assert isinstance(value, Sealed)  # noqa: S101  (no map edge lies beyond the root)
            number = self.draft.count("", "output") + 1
            record = OutputRecord(value, executor, self.superstep, activation)
            self.draft.put("", "output", f"{number:08d}", record)
            self.change.events.append(yielded(record))
            return
        self._put_out(OutboxRecord(value, routes, executor, trail[0]))

    def _put_out(self, record: OutboxRecord) -> None:
        number = self.scope.outbox + 1
        self.scope = msgspec.structs.replace(self.scope, outbox=number)
        self.draft.put(self.path, "outbox", str(number), record)

    def _ask(self, delivery: Delivery, ask: Ask) -> None:
        activation = delivery.activation if self.graph.body is None else pass_number(delivery)
        name = f"{delivery.executor}#{activation}?{ask.count}"
        intercepted = is_intercepted(self.change, self.path)
        record = RequestRecord(
            delivery.executor, activation, ask.count, ask.data, ask.response_type, ask.handler,
            delivery.trail, self.superstep, intercepted,
        )  # fmt: skip
        self.asked.append(record)
        if intercepted:
            inner = request_name(self.path, delivery.executor, activation, ask.count)
            self._put_out(setting_out(delivery, ask, inner))
        self.change.events.append(surfaced(outer_id(birth_of(self.draft), f"{self.path}/{name}"), self.path, record))

    def _take_scopes(self, executor: str) -> None:
        """Take the outboxes of the executor's scopes that came to rest, and end those with nothing open."""
        for number, segment in sorted(self.resting.get(executor, ())):
            child = join_slot(self.path, segment)
            if not is_live(self.draft, child):  # the pass that called it has ended in this superstep
                continue
            finished = is_over(self.change, child)
            if self.graph.body is None or not finished:
                self._take_outbox(executor, child, finished=finished)
            self.draft.remove(self.path, "rest", segment)
            if self.graph.body is not None:
                back = come_back(self.change, child) if finished else None
                if back is not None:
                    self.arrivals.append(back)
                continue
            if self.graph.nesting[executor].shared:
                forget_inputs(self.change, child)
            elif finished:
                drop_scope(self.change, child)
                self.change.events.append(
                    ScopeEnded(path=child, executor_id=executor, superstep=self.superstep, activation=number)
                )

    def _take_outbox(self, executor: str, child: str, *, finished: bool) -> None:
        """Take what a scope yielded and asked; of one that a function called, the outputs wait until it is over."""
        for name, record in sorted(self.draft.items(child, "outbox"), key=lambda item: int(item[0])):
            item: OutboxRecord = record
            if self.graph.body is not None and not item.request:
                continue
            trail = trail_of(self.draft, child, item)
            if item.request:
                self._take_request(executor, child, item, trail)
                self.draft.remove(child, "outbox", name)
                continue
            if executor not in self.graph.forwards_messages:
                self._yield(item.value, item.routes, executor, scope_of(slot(child)[1])[1], trail)
                self.draft.remove(child, "outbox", name)
                continue
            if not item.routes:
                self._drop(executor, scope_of(slot(child)[1])[1], item.value)
            now = [r for r in item.routes if finished or edge_of(self.graph, r).forward_when == "rest"]
            for route in now:
                self._send(item.value, route, trail)
            later = tuple(r for r in item.routes if r not in now)
            if later:
                self.draft.put(child, "outbox", name, msgspec.structs.replace(item, routes=later))
            else:
                self.draft.remove(child, "outbox", name)

    def _take_request(self, executor: str, child: str, item: OutboxRecord, trail: Trail) -> None:
        """Take a request on its way up to where it is answered; one that was answered meanwhile goes no further."""
        if not is_open(self.draft, item):
            return
        if not self.graph.nesting[executor].intercepts:
            self._put_out(msgspec.structs.replace(item, input=trail[0]))
        elif item.routes:
            self.arrivals += going_up(item, trail)
        else:
            self._drop(executor, scope_of(slot(child)[1])[1], item.value)

    def _go_on(self) -> None:
        """Begin the next superstep, or come to rest."""
        self.change.barriers = True
        if self.draft.totals["timer"]:
            note_time(self.change, self.path)
        if self.responses:
            open_step(self.change, self.path, self.scope, self.arrivals)
            answer_below(self.change, self.responses)
            return
        if self.arrivals or (self.draft.totals["join"] and deadlocked(self.change, self.path, self.graph)):
            open_step(self.change, self.path, self.scope, self.arrivals)
            return
        self.draft.put_scope(self.path, self.scope)
        close_step(self.change, self.path)
        if self.path:
            come_to_rest(self.change, self.path, shared=not self.scope.trail)
