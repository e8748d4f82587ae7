"""When a scope's barrier comes: once nothing in its superstep is left to do, and then perhaps that of the scope around.

It decides when; what a barrier does is in `barrier`.
"""

from __future__ import annotations

from rehydrate.model.sealed import Sealed

from .barrier import Barrier
from .change import Change, enclosing
from .plan import Plan, plan_of


def ready(change: Change, path: str, plan: Plan) -> bool:
    """Tell whether a scope's superstep is over: all invocations finished, no failure, no scope in it busy or stuck."""
    draft = change.draft
    if draft.count(path, "done") != plan.invocations:
        return False
    if draft.has(path, "step") and draft.count(path, "step"):
        return False
    if draft.totals["limit"] and draft.get(path, "limit", "") is not None:
        return False
    return not (draft.totals["failure"] and draft.count(path, "failure"))


def pass_barriers(change: Change, path: str, merged: dict[str, Sealed] | None = None) -> None:
    """Pass this scope's barrier and, where that lets them, those of the scopes around it."""
    at: str | None = path
    while at is not None:
        plan = plan_of(change, at)
        if plan is None or not ready(change, at, plan) or not Barrier(change, at, plan).run(merged or {}):
            return
        merged = None
        at = enclosing(at) if change.draft.step(at) is None else None
