"""Requests that a parent answers: how they go up to it, and how its answers come down.

A request goes up with the outbox of each scope on the way, an answer goes down at the barrier of the level that gave
it. What is open stands in the scope that asked, so that the outside can answer it as well.
"""

from __future__ import annotations

from typing import NamedTuple

from rehydrate.ids import scope_of, slot
from rehydrate.model.effects import Ask, Failure, Respond
from rehydrate.model.records import Delivery, OutboxRecord, Trail

from .change import Change
from .inputs import Answer
from .requests import get_request
from .run import Draft
from .steps import Arrival
from .waking import Arrivals, in_order, take_answer, wake


class Response(NamedTuple):
    """An answer that an executor gave, and the invocation that it comes from."""

    executor: str
    activation: int
    effect: Respond


class Refused(NamedTuple):
    """An answer that cannot be given, and why."""

    executor: str
    activation: int
    failure: Failure


def is_intercepted(change: Change, path: str) -> bool:
    """Tell whether a level above a scope answers its requests."""
    while path:
        parent, segment = slot(path)
        if change.graph_at(parent).nesting[scope_of(segment)[0]].intercepts:
            return True
        path = parent
    return False


def setting_out(delivery: Delivery, ask: Ask, name: str) -> OutboxRecord:
    """Return a request as it leaves the scope that asked; `name` has its path."""
    return OutboxRecord(ask.data, ask.routes or (), delivery.executor, delivery.trail[0], name, ask.handler)


def going_up(item: OutboxRecord, trail: Trail) -> list[Arrival]:
    """Return what arrives of a request at the level that intercepts it."""
    return [Arrival(route.target, item.value, trail, "request", item.request, item.handler) for route in item.routes]


def is_open(draft: Draft, item: OutboxRecord) -> bool:
    """Tell whether the request on its way up still waits for an answer."""
    path, _, name = item.request.rpartition("/")
    return get_request(draft, path, name) is not None


def refused(draft: Draft, responses: list[Response]) -> list[Refused]:
    """Return the answers that come too late, or that more than one invocation gave."""
    given: dict[tuple[str, str], list[Response]] = {}
    for response in responses:
        given.setdefault((response.effect.path, response.effect.name), []).append(response)
    found: list[Refused] = []
    for (path, name), made in given.items():
        is_late = get_request(draft, path, name) is None
        if not is_late and len(made) == 1:
            continue
        by = tuple(f"{response.executor}#{response.activation}" for response in made)
        failure = Failure(
            "response",
            "LateResponseError",
            f"request {path}/{name} {'was closed' if is_late else 'was answered more than once'} in the superstep in"
            f" which {' and '.join(by)} answered it",
            facts=(path, name, "closed" if is_late else "twice", *by),
        )
        found += [Refused(response.executor, response.activation, failure) for response in made]
    return found


def answer_below(change: Change, responses: list[Response]) -> None:
    """Close the requests that were answered, and wake the scopes that asked; they are all at rest."""
    arrivals: Arrivals = {}
    answers = [Answer(r.effect.path, r.effect.name, r.effect.value) for r in responses]
    for answer in in_order(answers):
        arrivals.setdefault(answer.path, []).append(take_answer(change, answer))
    wake(change, arrivals, [])
