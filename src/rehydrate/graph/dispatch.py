"""The choice of a handler: for a message by its value, for a request by its value and response type.

The most exact handler wins. Must not call a handler, and must be quick: it is asked once per message.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from rehydrate.errors import EffectError, ExecutorDefinitionError
from rehydrate.graph.exactness import covers, depends_on_value, most_exact, narrower
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec
from rehydrate.graph.hints import Hint, describe, matches, qualified_name
from rehydrate.graph.specs import Specs


class _Unknown:
    pass


_UNKNOWN: Final = _Unknown()


class HandlerTable:
    """The handlers of one executor class or function, and what is known of the types that have come by.

    `name` is that of the class or function.
    """

    __slots__ = ("_by_pair", "_by_type", "name", "specs")

    def __init__(self, name: str, specs: Specs) -> None:
        self.name = name
        self.specs = specs
        self._by_type: dict[type, HandlerSpec | None] = {}
        #: By request class and response type, where that decides.
        self._by_pair: dict[tuple[type, Hint], ResponseHandlerSpec] = {}

    def handler_for(self, value: object) -> HandlerSpec | None:
        """Return the most exact handler, `None` for none. Raises `ExecutorDefinitionError` for equally exact ones."""
        found = self._by_type.get(type(value), _UNKNOWN)
        return self._choose(value) if isinstance(found, _Unknown) else found

    def decides_by_type(self, value: object) -> bool:
        """Tell whether all values of this one's class go to one handler, or to none."""
        return not any(depends_on_value(spec.message, type(value)) for spec in self.specs.handlers)

    def _choose(self, value: object) -> HandlerSpec | None:
        best = most_exact(value, self.specs.handlers, lambda spec: spec.message)
        if len(best) > 1:
            names = " and ".join(repr(spec.name) for spec in best)
            raise ExecutorDefinitionError(
                self.name,
                f"handlers {names} fit {_shown(value)} equally well",
                "Let one handler take a union of both types, or make one of the types more exact.",
            )
        chosen = best[0] if best else None
        if self.decides_by_type(value):
            self._by_type[type(value)] = chosen
        return chosen

    def response_handler_for(self, executor_id: str, request: object, response: Hint) -> ResponseHandlerSpec:
        """Return the most exact handler of answers of type `response` to `request`; raises `EffectError`."""
        if not isinstance(response, type):  # not every other hint can be looked up
            return self._choose_response(executor_id, request, response)
        pair = (type(request), response)
        found = self._by_pair.get(pair)
        if found is None:
            found = self._choose_response(executor_id, request, response)
            if not any(depends_on_value(spec.request, pair[0]) for spec in self.specs.response_handlers):
                self._by_pair[pair] = found
        return found

    def _choose_response(self, executor_id: str, request: object, response: Hint) -> ResponseHandlerSpec:
        fitting = [
            spec
            for spec in self.specs.response_handlers
            if matches(request, spec.request) and covers(spec.response, response)
        ]
        best = [spec for spec in fitting if not any(_more_exact(other, spec) for other in fitting)]
        if len(best) == 1:
            return best[0]
        pair = f"({describe(type(request))}, {describe(response)})"
        raise EffectError(f"executor {executor_id!r}", *self._no_choice(pair, best))

    def _no_choice(self, pair: str, best: list[ResponseHandlerSpec]) -> tuple[str, str]:
        if best:
            names = " and ".join(repr(spec.name) for spec in best)
            return (
                f"response handlers {names} fit {pair} equally well",
                "Make the request or response type of one of them more exact.",
            )
        known = ", ".join(f"({describe(s.request)}, {describe(s.response)})" for s in self.specs.response_handlers)
        return (
            f"there is no response handler for (request type, response type) = {pair}; there are: {known or 'none'}",
            "Add a method with @response_handler that takes (self, request, response, ctx) of these types; only"
            " executor classes have them, a function executor cannot ask.",
        )


def _more_exact(one: ResponseHandlerSpec, other: ResponseHandlerSpec) -> bool:
    if not covers(other.request, one.request) or not covers(other.response, one.response):
        return False
    return narrower(one.request, other.request) or narrower(one.response, other.response)


def _shown(value: object) -> str:
    empty = isinstance(value, Sized) and not len(value)
    return f"{'an empty' if empty else 'a'} {qualified_name(type(value))}"
