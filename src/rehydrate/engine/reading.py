"""Questions about a run: what is open, what is busy, what failed, what would run next.

Reads records only; the same functions serve the engine, the runtime and a store's `inspect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rehydrate.errors import CheckpointCorruptError
from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import Edge
from rehydrate.ids import join_slot, order_key, outer_id, scope_of
from rehydrate.model.checkpoint import Status
from rehydrate.model.effects import Failure, Route
from rehydrate.model.events import OutputYielded, RequestOpened
from rehydrate.model.records import (
    AttemptRecord,
    FailureRecord,
    OutputRecord,
    RequestRecord,
    ScopeRecord,
    StepRecord,
)

from .change import Change
from .plan import Plan, invocation_name, plan_of, step_key
from .requests import requests_in
from .run import Draft, Run, birth_of, known_name


class OpenedRequest(NamedTuple):
    """An open request: where it stands, by what name, its id for the outside, and the name that is made from."""

    path: str
    name: str
    request_id: str
    record: RequestRecord
    known: str


class FailedPlace(NamedTuple):
    """A failure and where it happened."""

    path: str
    name: str
    executor: str
    activation: int
    failure: Failure


def scopes(run: Run, path: str = "") -> Iterator[str]:
    """Yield every live scope, parents first, in order of number."""
    yield path
    for segment in sorted(run.table(path, "scope"), key=order_key):
        yield from scopes(run, join_slot(path, segment))


def open_requests(run: Run, place: str = "") -> list[OpenedRequest]:
    """Return the open requests by path and name; `place` is where the records stand in the whole run, for a view."""
    if not run.totals["request"]:
        return []
    return [
        opened_request(run, path, name, record, place)
        for path in scopes(run)
        for name, record in requests_in(run, path)
    ]


def opened_request(run: Run, path: str, name: str, record: RequestRecord, place: str = "") -> OpenedRequest:
    """Return an open request with its id; `place` is that of `open_requests`."""
    known = known_name(run, path, name)
    if place and run.get(path, "alias", name) is None:
        known = f"{place}/{known}" if path else f"{place}{known}"
    return OpenedRequest(path, name, outer_id(birth_of(run), known), record, known)


def surfaced(request_id: str, path: str, record: RequestRecord) -> RequestOpened:
    """Return the event that tells of an open request."""
    return RequestOpened(
        path=path,
        executor_id=record.executor,
        superstep=record.superstep,
        activation=record.activation,
        request_id=request_id,
        data=record.data,
        response_type=record.response_type,
        intercepted=record.intercepted,
    )


def yielded(record: OutputRecord) -> OutputYielded:
    """Return the event that tells of an output."""
    return OutputYielded(
        executor_id=record.executor_id, superstep=record.superstep, activation=record.activation, data=record.value
    )


def outputs(run: Run) -> list[OutputRecord]:
    """Return the outputs of the turn in canonical order."""
    table = run.table("", "output")
    return [table[name] for name in sorted(table)]


def unfinished_scopes(run: Run) -> list[str]:
    """Return the scopes that have an unfinished superstep."""
    return [path for path in scopes(run) if run.get(*step_key(path)) is not None]


def next_due(run: Run) -> float | None:
    """Return when the first timer of a waiting function is up, in seconds since the epoch; `None` for none."""
    if not run.totals["pass"]:
        return None
    dues = (record.due for path in scopes(run) for record in run.table(path, "pass").values())
    return min((due for due in dues if due is not None), default=None)


def next_executors(run: Run) -> list[str]:
    """Return the executors with unfinished invocations, with their paths."""
    found: set[str] = set()
    for path in unfinished_scopes(run):
        step: StepRecord = run.get(*step_key(path))
        done = run.table(path, "done")
        begun: dict[tuple[str, int], ScopeRecord] = {scope_of(s): record for s, record in run.items(path, "scope")}
        for delivery in step.deliveries:
            name = invocation_name(delivery.executor, delivery.activation)
            shared = begun.get((delivery.executor, 1))
            taken = shared is not None and not shared.trail and delivery.activation <= shared.inputs
            if name not in done and (delivery.executor, delivery.activation) not in begun and not taken:
                found.add(f"{path}/{delivery.executor}" if path else delivery.executor)
    return sorted(found)


def attempts(run: Run, path: str, executor: str, activation: int) -> AttemptRecord:
    """Return what is recorded of the earlier attempts of an unfinished invocation."""
    record = run.get(path, "attempt", invocation_name(executor, activation))
    return record if isinstance(record, AttemptRecord) else AttemptRecord(0)


def failures(records: Run | Draft, graph: Definition, paths: Iterable[str]) -> list[FailedPlace]:
    """Return the failures in the given scopes, those of one scope in executor order."""
    found: list[FailedPlace] = []
    for path in paths:
        here: list[tuple[str, FailureRecord]] = records.items(path, "failure")
        if not here:
            continue
        position = graph_at(graph, path).position
        here.sort(key=lambda item: (position.get(item[1].executor, -1), order_key(item[0])))
        found += [FailedPlace(path, name, r.executor, r.activation, r.failure) for name, r in here]
    return found


def graph_at(graph: Definition, path: str) -> Definition:
    """Return the definition that the scope at `path` runs."""
    for segment in path.split("/") if path else ():
        graph = graph.children[scope_of(segment)[0]]
    return graph


def edge_of(graph: Definition, route: Route) -> Edge:
    """Return the edge that a message goes along. Raises `CheckpointCorruptError` where the graph has no such edge."""
    edge = graph.edges[route.edge] if 0 <= route.edge < len(graph.edges) else None
    if edge is None or edge.target != route.target:
        raise CheckpointCorruptError("a message on its way", f"it goes to {route.target!r:.80} where no edge leads")
    return edge


def resting_status(draft: Draft) -> Status:
    """Return the status of a run in which nothing is unfinished."""
    return Status.IDLE_WITH_PENDING_REQUESTS if draft.totals["request"] else Status.IDLE


def busy(change: Change, path: str = "") -> bool:
    """Tell whether something in a scope or below it can go on without the outside."""
    draft = change.draft
    plan = plan_of(change, path)
    if plan is None:
        return False
    failures: list[FailureRecord] = [record for _, record in draft.items(path, "failure")]
    if any(record.failure.kind == "timeout" for record in failures):
        return False
    below = [segment for segment, _ in draft.items(path, "step")]
    if any(busy(change, join_slot(path, s)) for s in below):
        return True
    if draft.get(path, "limit", "") is not None:
        return False
    done = draft.count(path, "done")
    if done == plan.invocations:
        return not failures and not below
    return done + sum(_blocked(draft, plan, path, failure) for failure in failures) < plan.invocations


def _blocked(draft: Draft, plan: Plan, path: str, failure: FailureRecord) -> int:
    """Return how many invocations a failure holds up: itself, and what follows it unless only its routing failed."""
    if not failure.activation:
        return 0
    held = plan.from_here(failure.executor, failure.activation)
    if draft.get(path, "unrouted", invocation_name(failure.executor, failure.activation)) is not None:
        return min(1, len(held))
    return len(held)
