"""What a pass of a functional workflow leaves when it waits: its new questions, and what it has read of state.

Reads the run and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rehydrate.graph.definition import LIST_REDUCERS
from rehydrate.ids import order_key, request_name
from rehydrate.model.effects import Ask, Effect, Pause, Routes
from rehydrate.model.sealed import Items, Sealed

from .state_view import MISSING, read_state
from .sub_requests import interceptor, request_message_of

if TYPE_CHECKING:
    from .functional_pass import Pass
    from .remembering import Question


def pause_effects(current: Pass) -> tuple[Effect, ...]:
    """Return the effects of a pass that waits. Raises `PredicateError`, `SendTypeError` and `NotStorableError`."""
    asked = current.record.asked if current.record is not None else 0
    names = sorted(current.memory.questions, key=order_key)
    asks = [_ask(current, name, current.memory.questions[name], number) for number, name in enumerate(names, asked)]
    due = min(current.timers.values(), default=None)
    return (*asks, Pause(_reads(current), due, tuple(sorted(current.waiting.called))))


def _ask(current: Pass, name: str, question: Question, number: int) -> Ask:
    routes: Routes = ()
    around = current.around
    level = interceptor(around.outlets, current.path) if current.path else None
    if level is not None:
        inner = request_name(current.path, current.body.id, current.number, number)
        message = request_message_of(around, inner, question.data, question.response_type)
        routes, _ = level[1].check_send(message, None, current.where, " (a request to its parent)")
        if routes is None:
            routes = level[1].route(message, around.codec.seal(message), None)
    return Ask(number, question.sealed, question.response_type, name, routes)


def _reads(current: Pass) -> dict[str, Sealed | Items | None]:
    """Return the state keys that the pass has read and that are not in its record yet, as it found them."""
    found: dict[str, Sealed | Items | None] = {}
    around = current.around
    reducers = around.outlets.graph_at(current.path).reducers
    for key in sorted(current.context.keys_read):
        reducer = reducers.get(key)
        value = read_state(around.codec, around.run, current.path, key, current.writes.get(key, []), reducer, None)
        if value is MISSING:
            found[key] = None
        elif reducer is not None and reducer.name in LIST_REDUCERS and isinstance(value, list):
            found[key] = Items(*around.codec.seal_items(cast("list[object]", value)))
        else:
            found[key] = around.codec.seal(value)
    return found
