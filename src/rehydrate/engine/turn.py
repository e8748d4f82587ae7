"""The claim: how a call's input enters the records, before anything runs.

Answers are taken first, then what is still open and unfinished is dealt with by the call's policies, then the message
is seeded; all in one transition, so that a crash finds all of it or nothing.
"""

from __future__ import annotations

import msgspec

from rehydrate.ids import outer_id, slot
from rehydrate.model.events import OfferRefused, OfferTaken, RequestsKept, TurnStarted, WorkDiscarded
from rehydrate.model.records import (
    RestRecord,
    ScopeRecord,
    TurnRecord,
)
from rehydrate.model.sealed import Sealed
from rehydrate.model.signatures import signature_record

from .change import Change
from .discard import discard
from .inputs import OfferArrived, TurnArrived
from .passes import withdraw
from .passing import pass_barriers
from .reading import surfaced
from .requests import has_requests, requests_in
from .restart import restart
from .run import birth_of, is_live, known_name
from .steps import Arrival, all_scopes, stepping_scopes
from .timing import go_on, stand_still
from .waiting_passes import end_idle_passes, passes_due
from .waking import Arrivals, in_order, take_answer, wake


def begin_turn(change: Change, arrived: TurnArrived) -> None:
    """Put a call's input into the records and start what can go on."""
    draft = change.draft
    if arrived.new_run is not None:
        draft.put("", "run", "", arrived.new_run)
        draft.put("", "signature", "", signature_record(arrived.signature))
        draft.put_scope("", ScopeRecord(()))
    _put_turn(change, arrived)
    change.barriers = True
    change.events.append(TurnStarted(turn=draft.turn().number, continuation=arrived.continuation))
    if arrived.offer is not None:
        change.events.append(told_offer(arrived.offer))
    arrivals: Arrivals = {}
    for answer in in_order(arrived.answers):
        arrivals.setdefault(answer.path, []).append(take_answer(change, answer))
    woken: list[str] = []
    if draft.totals["timer"]:
        stand_still(change, stepping_scopes(change))
    if arrived.on_unfinished == "discard":
        woken = discard(change, arrivals)
    if arrived.dropped:
        change.events.append(WorkDiscarded(what=arrived.dropped))
    if arrived.freed:
        live = {path for path in arrived.freed if draft.get(slot(path)[0], "scope", slot(path)[1]) is not None}
        woken += _freed(change, live)
    unfinished = stepping_scopes(change)
    woken += _settle_pending(change, arrived, arrivals)
    for path, due in passes_due(change).items():
        arrivals.setdefault(path, []).extend(due)
    if arrived.message is not None:
        arrivals.setdefault("", []).append(seeded(change, arrived.message))
    restart(change, unfinished, arrived)
    wake(change, arrivals, woken)
    if change.graph.is_timed or draft.totals["timer"]:
        go_on(change, stepping_scopes(change))
    for path in reversed(stepping_scopes(change)):
        pass_barriers(change, path)


def told_offer(offer: OfferArrived) -> OfferTaken | OfferRefused:
    """Return the event that tells of an offer which left the inbox."""
    if offer.refused is None:
        return OfferTaken(number=offer.number, key=offer.key)
    code, text = offer.refused
    return OfferRefused(number=offer.number, key=offer.key, code=code, text=text)


def _put_turn(change: Change, arrived: TurnArrived) -> None:
    """Record the call: as a new turn, or as a continuation of the turn that was found."""
    draft = change.draft
    before: TurnRecord | None = draft.get("", "turn", "")
    if arrived.continuation and before is not None:
        run_args = arrived.run_args if arrived.run_args is not None else before.run_args
        allowance = before.allowance + 1 if arrived.limit_anew else before.allowance
        resumed = before.resumed if arrived.same else (arrived.base, arrived.digest)
        trace = arrived.trace or before.trace
        turn = msgspec.structs.replace(before, run_args=run_args, allowance=allowance, resumed=resumed, trace=trace)
        draft.put("", "turn", "", turn)
        return
    number = before.number + 1 if before else 1
    run_args = arrived.run_args
    if before is not None:
        if arrived.message is None and run_args is None:
            run_args = before.run_args
        if not arrived.interrupted:
            draft.clear("", "output")
    allowance = before.allowance + 1 if before else 1
    trace = arrived.trace or (before.trace if before else "")
    turn = TurnRecord(number, arrived.base, arrived.digest, allowance, arrived.key, run_args, trace=trace)
    draft.put("", "turn", "", turn)


def _settle_pending(change: Change, arrived: TurnArrived, arrivals: Arrivals) -> list[str]:
    """Keep or withdraw what is still open; return the scopes that need a superstep because of it."""
    draft = change.draft
    if not draft.totals["request"]:
        return []
    kept_unsaid = arrived.message is None or arrived.pending_given
    if not arrived.continuation and arrived.on_pending != "cancel" and kept_unsaid:
        return []
    if arrived.on_pending == "cancel" and not arrived.continuation:
        return _withdraw_all(change, arrivals)
    open_requests = [(path, *item) for path in all_scopes(change) for item in requests_in(draft, path)]
    if arrived.continuation:
        for path, name, record in open_requests:
            change.events.append(surfaced(_outer_id(change, path, name), path, record))
        return []
    ids = tuple(_outer_id(change, path, name) for path, name, _ in open_requests)
    change.events.append(RequestsKept(request_ids=ids))
    return []


def _withdraw_all(change: Change, arrivals: Arrivals) -> list[str]:
    """Withdraw what is open at every depth; return the scopes that need a superstep because of it."""
    draft = change.draft
    paths = {path for path in all_scopes(change) if has_requests(draft, path)}
    withdraw(change, all_scopes(change))
    end_idle_passes(change, {(path, item.name) for path, items in arrivals.items() for item in items})
    return _freed(change, {path for path in paths if is_live(draft, path)})


def _outer_id(change: Change, path: str, name: str) -> str:
    return outer_id(birth_of(change.draft), known_name(change.draft, path, name))


def _freed(change: Change, paths: set[str]) -> list[str]:
    """Return the scopes in which a withdrawn request ends a child or may free a join."""
    draft = change.draft
    found: set[str] = set()
    for path in paths:
        if draft.count(path, "join") or draft.count(path, "map"):
            found.add(path)
        if path:
            parent, segment = slot(path)
            found.add(parent)
            if draft.step(path) is None:
                draft.put(parent, "rest", segment, RestRecord())
    return sorted(found)


def seeded(change: Change, message: Sealed) -> Arrival:
    """Number a message as an input of the root; the number is its trail."""
    draft = change.draft
    scope: ScopeRecord = draft.scope("")
    scope = msgspec.structs.replace(scope, inputs=scope.inputs + 1)
    draft.put_scope("", scope)
    return Arrival(change.graph.start, message, (scope.inputs,))
