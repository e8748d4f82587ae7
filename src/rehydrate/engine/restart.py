"""Unfinished supersteps of a run that is taken up again: what is finished stays, the rest starts anew.

Failures are cleared, since a call that goes on asks for another try; invocations that five processes in a row did not
survive fail for good instead.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rehydrate.model.effects import Failure
from rehydrate.model.records import AttemptRecord, Delivery, FailureRecord, LimitRecord, ScopeRecord

from .change import Change
from .commands import RouteAgain, StartInvocation
from .inputs import TurnArrived
from .plan import Plan, invocation_name, plan_of
from .steps import all_scopes, start_step

#: After so many attempts lost in a row an invocation fails.
LOST_LIMIT: Final = 5


def restart(change: Change, unfinished: list[str], arrived: TurnArrived) -> None:
    """Start what every unfinished superstep still needs."""
    progress = _progress(change, unfinished)
    for path in unfinished:
        plan = plan_of(change, path)
        assert plan is not None  # noqa: S101  (its superstep is unfinished)
        if change.draft.get(path, "limit", "") is not None:
            _lift_limit(change, path, plan)
            continue
        _clear_failures(change, path)
        _restart_chains(change, path, plan, progress if arrived.interrupted else None)


def _clear_failures(change: Change, path: str) -> None:
    """Give what failed another try; joins that wait for each other need something from outside first."""
    for name, record in change.draft.items(path, "failure"):
        if record.failure.kind != "deadlock":
            change.draft.remove(path, "failure", name)


def _lift_limit(change: Change, path: str, plan: Plan) -> None:
    """Start a superstep that the limit held back, where today's limit or a new allowance lets it."""
    draft = change.draft
    scope: ScopeRecord = draft.scope(path)
    record: LimitRecord = draft.get(path, "limit", "")
    allowance = change.allowance()
    anew = scope.allowance != allowance
    if not anew and change.graph_at(path).max_supersteps <= record.used:
        return
    draft.remove(path, "limit", "")
    used = 1 if anew else record.used + 1
    draft.put_scope(path, msgspec.structs.replace(scope, allowance=allowance, used=used))
    start_step(change, path, plan)


def _progress(change: Change, unfinished: list[str]) -> str:
    """Return a mark of how far a run is; as long as no invocation of it finishes, it stays the same."""
    draft = change.draft
    supersteps = sum(draft.scope(path).superstep for path in all_scopes(change))
    finished = sum(draft.count(path, kind) for path in unfinished for kind in ("done", "unrouted"))
    return f"{supersteps} {finished}"


def _restart_chains(change: Change, path: str, plan: Plan, lost_at: str | None) -> None:
    """Start what is left of every chain. Of the items of a map only so many could run as `max_concurrency` lets at
    once: no attempt of the others was lost."""
    items: dict[str, int] = {}
    most = change.graph.max_concurrency
    for (executor, trail), chain in plan.chains.items():
        started = _is_unfinished(change, path, chain)
        if trail and started:
            items[executor] = items.get(executor, 0) + 1
        if trail and most is not None and items.get(executor, 0) > most:
            _restart_chain(change, path, plan, chain, None, waited=True)
        else:
            _restart_chain(change, path, plan, chain, lost_at)


def _is_unfinished(change: Change, path: str, chain: list[Delivery]) -> bool:
    last = invocation_name(chain[-1].executor, chain[-1].activation)
    return all(change.draft.get(path, kind, last) is None for kind in ("done", "unrouted"))


def _restart_chain(
    change: Change, path: str, plan: Plan, chain: list[Delivery], lost_at: str | None, *, waited: bool = False
) -> None:
    """Start the first unfinished invocation of a chain, and ask conditions again that raised.

    `lost_at`: its attempt ended with its process, when the run was so far. `waited`: there was no attempt.
    """
    draft = change.draft
    superstep = plan.step.superstep
    before = 0
    for delivery in chain:
        name = invocation_name(delivery.executor, delivery.activation)
        if draft.get(path, "unrouted", name) is not None:
            change.then.append(RouteAgain(path, superstep, delivery))
        elif draft.get(path, "done", name) is None:
            if waited or _count_attempt(change, path, delivery, lost_at):
                payloads = plan.payloads(delivery)
                change.then.append(StartInvocation(path, superstep, delivery, payloads, before=before))
            return
        before = delivery.activation


def _count_attempt(change: Change, path: str, delivery: Delivery, lost_at: str | None) -> bool:
    """Count an attempt that was found unfinished; `False` where its process was lost once too often."""
    name = invocation_name(delivery.executor, delivery.activation)
    before: AttemptRecord | None = change.draft.get(path, "attempt", name)
    lost = 0
    if lost_at is not None:
        lost = 1 + (before.lost if before is not None and before.progress == lost_at else 0)
    started = 1 + (before.started if before is not None else 0)
    if lost < LOST_LIMIT:
        change.draft.put(path, "attempt", name, AttemptRecord(started, lost, lost_at or ""))
        return True
    change.draft.put(path, "attempt", name, AttemptRecord(started - 1, 0, ""))
    failure = Failure(
        "lost", "LostAttempts", f"each of {lost} attempts in a row was lost with its process, or taken over"
    )
    change.draft.put(path, "failure", name, FailureRecord(failure, delivery.executor, delivery.activation))
    return False
