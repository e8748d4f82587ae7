"""Unfinished supersteps of a run that is taken up again: what is finished stays, the rest starts anew.

Failures are cleared, since a call that goes on asks for another try; invocations that five processes in a row did not
survive fail for good instead.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from rehydrate.model.effects import Failure
from rehydrate.model.records import AttemptRecord, Delivery, FailureRecord, LimitRecord, ScopeRecord

from .change import Change
from .commands import RouteAgain, StartInvocation
from .inputs import TurnArrived
from .plan import Plan, invocation_name, plan_of
from .steps import start_step

#: After so many attempts lost in a row an invocation fails.
LOST_LIMIT: Final = 5


def restart(change: Change, unfinished: list[str], arrived: TurnArrived) -> None:
    """Start what every unfinished superstep still needs."""
    for path in unfinished:
        if change.draft.get(path, "limit", "") is not None:
            _lift_limit(change, path)
            continue
        _clear_failures(change, path)
        if not arrived.interrupted:
            change.draft.clear(path, "attempt")
        plan = cast("Plan", plan_of(change, path))
        for chain in plan.chains.values():
            _restart_chain(change, path, plan, chain, lost=arrived.interrupted)


def _clear_failures(change: Change, path: str) -> None:
    """Give what failed another try; joins that wait for each other need something from outside first."""
    for name, record in change.draft.items(path, "failure"):
        if cast("FailureRecord", record).failure.kind != "deadlock":
            change.draft.remove(path, "failure", name)


def _lift_limit(change: Change, path: str) -> None:
    """Start a superstep that the limit held back, where today's limit or a new allowance lets it."""
    draft = change.draft
    scope = cast("ScopeRecord", draft.scope(path))
    record = cast("LimitRecord", draft.get(path, "limit", ""))
    allowance = change.allowance()
    anew = scope.allowance != allowance
    if not anew and change.graph_at(path).max_supersteps <= record.used:
        return
    draft.remove(path, "limit", "")
    used = 1 if anew else record.used + 1
    draft.put_scope(path, msgspec.structs.replace(scope, allowance=allowance, used=used))
    start_step(change, path)


def _restart_chain(change: Change, path: str, plan: Plan, chain: list[Delivery], *, lost: bool) -> None:
    """Start the first unfinished invocation of a chain, and ask conditions again that raised."""
    draft = change.draft
    superstep = plan.step.superstep
    for delivery in chain:
        name = invocation_name(delivery.executor, delivery.activation)
        if draft.get(path, "done", name) is not None:
            continue
        if draft.get(path, "unrouted", name) is not None:
            change.then.append(RouteAgain(path, superstep, delivery))
            continue
        if not lost or _count_lost(change, path, delivery):
            change.then.append(StartInvocation(path, superstep, delivery, plan.payloads(delivery)))
        return


def _count_lost(change: Change, path: str, delivery: Delivery) -> bool:
    """Count an attempt that ended with its process; `False` where it was one too many."""
    name = invocation_name(delivery.executor, delivery.activation)
    before = cast("AttemptRecord | None", change.draft.get(path, "attempt", name))
    lost = (before.lost if before else 0) + 1
    if lost < LOST_LIMIT:
        change.draft.put(path, "attempt", name, AttemptRecord(lost))
        return True
    change.draft.remove(path, "attempt", name)
    failure = Failure("lost", "LostAttempts", f"its process ended during each of {lost} attempts in a row")
    change.draft.put(path, "failure", name, FailureRecord(failure, delivery.executor, delivery.activation))
    return False
