"""What is tried again: attempts that failed within their budget, and unfinished supersteps of a run that is taken up.

At a restart failures are cleared, since a call that goes on asks for another try, with a new budget; what waited for
its next attempt waits on; invocations that five processes in a row did not survive fail for good.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from rehydrate.model.effects import Failure
from rehydrate.model.records import AttemptRecord, Delivery, FailureRecord, LimitRecord, ScopeRecord

from .change import Change
from .commands import RouteAgain, StartInvocation
from .inputs import AttemptBroken, TurnArrived
from .plan import Plan, chain_key, invocation_name, plan_of
from .steps import all_scopes, start_step

#: After so many attempts lost in a row an invocation fails.
LOST_LIMIT: Final = 5


class _Found(NamedTuple):
    """How unfinished work was found: the time, how far the run was if its process was lost, and what had failed."""

    now: float
    lost_at: str | None
    failed: frozenset[str]


def try_again(change: Change, broken: AttemptBroken) -> None:
    """Record a failed attempt and start the next one, not before it is due.

    It is saved at once, so that a process that takes the run up in between finds the time.
    """
    draft = change.draft
    plan = plan_of(change, broken.path)
    left = plan.from_here(broken.executor, broken.activation) if plan is not None else []
    if plan is None or not left:
        return
    name = invocation_name(broken.executor, broken.activation)
    before: AttemptRecord = draft.get(broken.path, "attempt", name) or AttemptRecord(0)
    record = AttemptRecord(before.started + 1, failed=before.failed + 1, due=broken.due)
    draft.put(broken.path, "attempt", name, record)
    change.barriers = True
    chain = plan.chains[chain_key(left[0])]
    before_it = chain[-len(left) - 1].activation if len(chain) > len(left) else 0
    payloads = plan.payloads(left[0])
    change.then.append(
        StartInvocation(broken.path, plan.step.superstep, left[0], payloads, before=before_it, due=broken.due)
    )


def restart(change: Change, unfinished: list[str], arrived: TurnArrived) -> None:
    """Start what every unfinished superstep still needs."""
    lost_at = _progress(change, unfinished) if arrived.interrupted and not arrived.handed_on else None
    for path in unfinished:
        plan = plan_of(change, path)
        assert plan is not None  # noqa: S101  (its superstep is unfinished)
        if change.draft.get(path, "limit", "") is not None:
            _lift_limit(change, path, plan)
            continue
        found = _Found(change.time, lost_at, _clear_failures(change, path))
        _restart_chains(change, path, plan, found)


def _clear_failures(change: Change, path: str) -> frozenset[str]:
    """Give what failed another try; joins that wait for each other need something from outside first."""
    cleared = [name for name, record in change.draft.items(path, "failure") if record.failure.kind != "deadlock"]
    for name in cleared:
        change.draft.remove(path, "failure", name)
    return frozenset(cleared)


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
    finished = sum(draft.count(path, kind) for path in unfinished for kind in ("done", "unrouted", "call", "calls"))
    return f"{supersteps} {finished}"


def _restart_chains(change: Change, path: str, plan: Plan, found: _Found) -> None:
    """Start what is left of every chain. Of the items of a map only so many could run as `max_concurrency` lets at
    once: no attempt of the others was lost."""
    items: dict[str, int] = {}
    most = change.graph.max_concurrency
    for (executor, trail), chain in plan.chains.items():
        started = _is_unfinished(change, path, chain)
        if trail and started:
            items[executor] = items.get(executor, 0) + 1
        waited = bool(trail) and most is not None and items.get(executor, 0) > most
        _restart_chain(change, path, plan, chain, found, waited=waited)


def _is_unfinished(change: Change, path: str, chain: list[Delivery]) -> bool:
    last = invocation_name(chain[-1].executor, chain[-1].activation)
    return all(change.draft.get(path, kind, last) is None for kind in ("done", "unrouted"))


def _restart_chain(
    change: Change, path: str, plan: Plan, chain: list[Delivery], found: _Found, *, waited: bool
) -> None:
    """Start the first unfinished invocation of a chain, and ask conditions again that raised.

    `waited`: it had no slot, so no attempt of it was lost.
    """
    draft = change.draft
    superstep = plan.step.superstep
    before = 0
    for delivery in chain:
        name = invocation_name(delivery.executor, delivery.activation)
        if draft.get(path, "unrouted", name) is not None:
            change.then.append(RouteAgain(path, superstep, delivery))
        elif draft.get(path, "done", name) is None:
            _restart_invocation(change, path, plan, delivery, before, found, waited=waited)
            return
        before = delivery.activation


def _restart_invocation(
    change: Change, path: str, plan: Plan, delivery: Delivery, before: int, found: _Found, *, waited: bool
) -> None:
    """Start an unfinished invocation, with the attempt that was found counted."""
    draft = change.draft
    name = invocation_name(delivery.executor, delivery.activation)
    record: AttemptRecord | None = draft.get(path, "attempt", name)
    if not waited or name in found.failed:
        record = _counted(record, found, failed=name in found.failed)
        if record.lost >= LOST_LIMIT:
            _lose(change, path, delivery, record)
            return
        draft.put(path, "attempt", name, record)
    due = record.due if record is not None else None
    payloads = plan.payloads(delivery)
    change.then.append(StartInvocation(path, plan.step.superstep, delivery, payloads, before=before, due=due))


def _counted(before: AttemptRecord | None, found: _Found, *, failed: bool) -> AttemptRecord:
    """Return the record of an unfinished invocation with the attempt that was found counted, if there was one.

    One that was due already may have begun, so it counts.
    """
    if before is None:
        before = AttemptRecord(0)
    if failed:
        return AttemptRecord(before.started + 1)
    if before.due is not None and before.due > found.now:
        return before
    lost = 0
    if found.lost_at is not None:
        lost = 1 + (before.lost if before.progress == found.lost_at else 0)
    return AttemptRecord(before.started + 1, lost, found.lost_at or "", before.failed)


def _lose(change: Change, path: str, delivery: Delivery, record: AttemptRecord) -> None:
    """Let an invocation fail for good whose attempts were lost once too often; a call that goes on tries anew."""
    name = invocation_name(delivery.executor, delivery.activation)
    change.draft.put(path, "attempt", name, AttemptRecord(record.started - 1))
    text = f"each of {record.lost} attempts in a row was lost with its process, or taken over"
    failure = Failure("lost", "LostAttempts", text)
    change.draft.put(path, "failure", name, FailureRecord(failure, delivery.executor, delivery.activation))
