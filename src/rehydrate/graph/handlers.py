"""Handlers as data: the decorators that mark them, and the frozen specs that are read from their signatures.

Reading is lazy, because annotations may name what is defined later. Nothing here calls a handler.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType, FunctionType, MappingProxyType
from typing import Final, Literal, TypeAlias, TypeVar, cast, overload

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.annotations import UNSET, local_names
from rehydrate.graph.hints import Hint

HandlerKind: TypeAlias = Literal["handler", "response_handler", "executor", "workflow"]
#: A method of a class is marked by this key of the function's attributes, which `functools.wraps` carries on.
MARK: Final = "__rehydrate_handler__"

#: What a decorated method gives back; class handlers give nothing, sync or async.
Method = TypeVar("Method", bound=Callable[..., Awaitable[None] | None])


@dataclass(frozen=True)
class HandlerSpec:
    """What is known of one message handler; `name` is the attribute of the executor to call.

    `sends`, `yields` and `returns` hold union members one by one, without `Never`; `returns` is of functions only and
    has no `None`. A handler that is not async is meant to run in a thread.
    """

    name: str
    message: Hint
    sends: tuple[Hint, ...]
    yields: tuple[Hint, ...]
    is_async: bool
    takes_context: bool
    returns: tuple[Hint, ...] = ()


@dataclass(frozen=True)
class ResponseHandlerSpec:
    """What is known of one response handler, a method `name` that takes the request's data and the answer."""

    name: str
    request: Hint
    response: Hint
    sends: tuple[Hint, ...]
    yields: tuple[Hint, ...]
    is_async: bool
    takes_context: bool


@dataclass(frozen=True, eq=False)
class Declaration:
    """What a decorator was told, and the local names that the annotations use.

    `takes` are the types of what a handler takes beside `self` and the context, in their order.
    """

    kind: HandlerKind
    takes: tuple[tuple[str, Hint], ...]
    sends: Hint = UNSET
    yields: Hint = UNSET
    returns: Hint = UNSET
    names: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def remedy(self) -> str:
        """How to state the types at the decorator."""
        if self.kind == "workflow":
            return "@workflow(message=..., returns=...)"
        names = [
            *(name for name, _ in self.takes),
            "sends",
            "yields",
            *(["returns"] if self.kind == "executor" else []),
        ]
        return f"@{self.kind}({', '.join(f'{name}=...' for name in names)})"


@overload
def handler(function: Method, /) -> Method: ...


@overload
def handler(*, message: Hint = UNSET, sends: Hint = UNSET, yields: Hint = UNSET) -> Callable[[Method], Method]: ...


def handler(
    function: Method | None = None, /, *, message: Hint = UNSET, sends: Hint = UNSET, yields: Hint = UNSET
) -> Method | Callable[[Method], Method]:
    """Mark a method `(self, message, ctx)` as a handler of messages of its annotated type.

    `message`, `sends` and `yields` say the types where annotations cannot; `sends` and `yields` may be tuples.
    """
    declaration = Declaration("handler", (("message", message),), sends, yields)
    return _marking(function, declaration, _caller())


@overload
def response_handler(function: Method, /) -> Method: ...


@overload
def response_handler(
    *, request: Hint = UNSET, response: Hint = UNSET, sends: Hint = UNSET, yields: Hint = UNSET
) -> Callable[[Method], Method]: ...


def response_handler(
    function: Method | None = None,
    /,
    *,
    request: Hint = UNSET,
    response: Hint = UNSET,
    sends: Hint = UNSET,
    yields: Hint = UNSET,
) -> Method | Callable[[Method], Method]:
    """Mark a method `(self, request, response, ctx)` as the one that takes answers to its requests.

    It is chosen when `ctx.request_info` asks, by the type of the request's data and the response type.
    """
    declaration = Declaration("response_handler", (("request", request), ("response", response)), sends, yields)
    return _marking(function, declaration, _caller())


def _caller() -> FrameType | None:
    """Return the frame in which a decorator of this module was called."""
    frame = inspect.currentframe()
    return frame.f_back.f_back if frame and frame.f_back else None


def _marking(
    function: Method | None, declaration: Declaration, frame: FrameType | None
) -> Method | Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        plain = cast("object", method)
        if not isinstance(plain, FunctionType):
            raise ExecutorDefinitionError(
                getattr(method, "__qualname__", repr(method)),
                f"@{declaration.kind} was put on something that is not a plain function",
                f"Put @{declaration.kind} directly on a `def` or `async def` of the class.",
            )
        vars(plain)[MARK] = with_names(declaration, plain, frame)
        return method

    return mark if function is None else mark(function)


def with_names(declaration: Declaration, function: Callable[..., object], frame: FrameType | None) -> Declaration:
    """Return the declaration with the local names that the function's annotations use, as they stand in `frame`."""
    return replace(declaration, names=local_names(function, frame))


def declaration_of(function: object) -> Declaration | None:
    """Return what a decorator noted on a function; `None` for any other object."""
    if not isinstance(function, FunctionType):
        return None
    return cast("Declaration | None", vars(function).get(MARK))
