"""Requests that a parent answers, as its executors see them, and their answers, checked at the line that sends them.

Nothing here changes the run; what it may know of a request is what the records say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehydrate.codecs import type_name
from rehydrate.engine import reading
from rehydrate.engine.receipts import receipts
from rehydrate.engine.requests import get_request
from rehydrate.engine.run import known_name, name_now
from rehydrate.errors import EffectError, LateResponseError, SendTypeError
from rehydrate.graph.definition import Definition
from rehydrate.graph.hints import describe
from rehydrate.graph.sub_requests import SubWorkflowRequest, SubWorkflowRequestMessage, SubWorkflowResponseMessage
from rehydrate.ids import outer_id, scope_of, slot
from rehydrate.model.effects import Respond
from rehydrate.model.records import ReceiptRecord

from .outlets import Outlet, Outlets
from .requests import fits, response_hint_of

if TYPE_CHECKING:
    from .context import Surroundings


def interceptor(outlets: Outlets, path: str) -> tuple[str, Outlet] | None:
    """Return the level that answers the requests of a scope, and the outlet by which they come to it."""
    while path:
        parent, segment = slot(path)
        graph, executor_id = outlets.graph_at(parent), scope_of(segment)[0]
        if graph.nesting[executor_id].intercepts:
            return parent, outlets.at(graph, executor_id)
        path = parent
    return None


def request_message(around: Surroundings, name: str, handler: str, data: object) -> SubWorkflowRequestMessage:
    """Return an intercepted request; `name` names it with its path, `handler` the response handler that waits."""
    path, _, inner = name.rpartition("/")
    graph, executor_id = around.outlets.graph_at(path), inner.rpartition("#")[0]
    if graph.body is None:
        return request_message_of(around, name, data, type_name(response_hint_of(graph, executor_id, handler)))
    record = get_request(around.run, path, inner)
    return request_message_of(around, name, data, record.response_type if record is not None else "")


def request_message_of(around: Surroundings, name: str, data: object, response_type: str) -> SubWorkflowRequestMessage:
    """Return an intercepted request; `name` names it with its path, `response_type` the type of its answers."""
    path, _, inner = name.rpartition("/")
    executor_id = inner.rpartition("#")[0]
    known = known_name(around.run, path, inner)
    told, _, name = known.rpartition("/")  # what its receipt will be under, also after a migration
    request = SubWorkflowRequest(outer_id(around.birth, known), executor_id, data, response_type, name)
    return SubWorkflowRequestMessage(told, request)


def response(around: Surroundings, path: str, where: str, message: SubWorkflowResponseMessage) -> Respond:
    """Return an answer as an effect of an invocation in the scope at `path`.

    Raises `LateResponseError` where the request is closed, `SendTypeError` where the value does not fit, and
    `EffectError` where the request is not for this scope to answer.
    """
    # A message that is older than a migration has the names of that time.
    asker, name = name_now(around.run, f"{message.path}/{message.name}") or (message.path, message.name)
    record = get_request(around.run, asker, name)
    if record is None:
        raise _no_request(around, where, message)
    level = interceptor(around.outlets, asker)
    if level is None or level[0] != path:
        by = "the outside" if level is None else f"executors of {level[0] or 'the root'}"
        problem = f"it answers a request of {asker!r}, which {by} can answer"
        raise EffectError(where, problem, "Send the response from an executor beside the sub-workflow's node.")
    graph: Definition = around.outlets.graph_at(asker)
    hint = response_hint_of(graph, record.executor, record.handler)
    if not fits(message.value, hint):
        problem = f"it answers {asker}/{record.executor} with a {type(message.value).__name__}"
        raise SendTypeError(where, problem, f"That request expects {describe(hint)}.")
    return Respond(asker, name, around.codec.seal(message.value))


def _no_request(around: Surroundings, where: str, message: SubWorkflowResponseMessage) -> EffectError:
    known: ReceiptRecord | None = receipts(around.run).get(f"{message.path}/{message.name}")
    if known is None:
        problem = f"it answers {message.name!r} of {message.path!r}, which did not ask that"
        return EffectError(where, problem, "Make the response with request_message.create_response(value).")
    how = "answered" if known.state == "answered" else "withdrawn"
    return late_response(where, message.path, message.name, f"was {how} before")


def late_response(where: str, path: str, name: str, why: str) -> LateResponseError:
    """Return the error of an answer to a request that is open no more."""
    problem = f"it answers {name!r} of {path!r}, which {why}"
    return LateResponseError(where, problem, "Answer each request once; catch this error where others may be first.")


def response_failure(place: reading.FailedPlace) -> LateResponseError:
    """Return the error of answers that met at a barrier."""
    path, name, how, *by = place.failure.facts
    where = f"{place.path}/{place.executor}" if place.path else place.executor
    given = " and ".join(by)
    why = f"{given} answered in one superstep" if how == "twice" else f"was closed while {given} answered"
    return late_response(where, path, name, why)
