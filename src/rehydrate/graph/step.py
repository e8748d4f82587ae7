"""Steps: the pieces of a functional workflow that are remembered.

A step knows its function and its policies. Who runs it, remembers it and hands its value out stands in a context
variable; without anybody there it is the plain function. It must not know how calls are recorded.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from types import FrameType, FunctionType
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.annotations import UNSET, Annotations, UnresolvedError, local_names
from rehydrate.graph.hints import Hint
from rehydrate.graph.policies import AttemptPolicy, Retry, attempt_policy
from rehydrate.ids import check_id

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
#: A value of which only the user's code knows the type.
AnyValue: TypeAlias = Any
#: A step on its way.
Running: TypeAlias = Coroutine[Any, Any, Result]
AnyStep: TypeAlias = "Step[..., Any]"


class StepCaller(Protocol):
    """Whoever runs the steps of a pass."""

    def call_step(self, step: AnyStep, args: tuple[object, ...], kwargs: dict[str, object]) -> Running[AnyValue]:
        """Note the call and return what runs it, or gives what it gave before."""
        ...


#: Who runs steps here; `None` outside of functional workflows, and inside of a step.
CALLER: Final[ContextVar[StepCaller | None]] = ContextVar("rehydrate_step_caller", default=None)


class Step(Generic[Parameters, Result]):
    """A durable call, made by `@step`.

    Called in a functional workflow it runs once for its place and arguments, and what it returned is given again
    whenever the workflow runs anew from there. Called anywhere else it is its function.
    """

    def __init__(
        self,
        function: Callable[Parameters, Awaitable[Result] | Result],
        name: str | None,
        policy: AttemptPolicy | None,
        frame: FrameType | None = None,
    ) -> None:
        self.function = function
        self.name = check_id(function.__name__ if name is None else name, "step name")
        self.policy = policy
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self._names = local_names(function, frame)
        update_wrapper(self, function)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Running[Result]:
        """Call it; its place in the workflow is that of this line, whenever it is awaited."""
        caller = CALLER.get()
        if caller is None:
            return self._plain(args, kwargs)
        return caller.call_step(self, args, kwargs)

    async def _plain(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Result:
        function = cast("Callable[..., AnyValue]", self.function)
        returned = function(*args, **kwargs)
        return cast("Result", await returned if self.is_async else returned)

    def arguments(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return the arguments in one form, however the call wrote them. Raises `TypeError` where they do not fit."""
        least, most = self._numbers
        if not kwargs and least <= len(args) <= most:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def _numbers(self) -> tuple[int, int]:
        """How many arguments it takes by position, at least and at most."""
        given = list(self._signature.parameters.values())
        if any(one.kind is one.VAR_POSITIONAL for one in given):
            most = sys.maxsize
        else:
            most = sum(one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD} for one in given)
        named = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        return sum(one.default is one.empty and one.kind not in named for one in given), most

    @cached_property
    def hints(self) -> tuple[Hint, ...]:
        """The types of what it takes and returns, as far as its annotations say them."""
        annotations = Annotations(self.function, None, self._names)
        found: list[Hint] = []
        for name in annotations.names:
            try:
                hint = annotations.of(name)
            except UnresolvedError:  # a value of that type is refused by name when one is stored
                continue
            if hint is not UNSET:
                found.append(hint)
        return tuple(found)

    def __repr__(self) -> str:
        return f"<step {self.name!r}>"


@overload
def step(function: Callable[Parameters, Running[Result]], /) -> Step[Parameters, Result]: ...


@overload
def step(function: Callable[Parameters, Result], /) -> Step[Parameters, Result]: ...


@overload
def step(*, name: str | None = None, retry: Retry | None = None, timeout: float | None = None) -> StepMaker: ...


def step(
    function: Callable[..., AnyValue] | None = None,
    /,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
) -> AnyValue:  # `AnyValue`: the overloads say what
    """Make calls of a function durable in functional workflows; a plain `def` runs in a thread there.

    `name` is what it is remembered by, the function's name unless given; `retry` and `timeout` (seconds of an attempt)
    are policies. Raises `ExecutorDefinitionError` on anything but a plain function, `IdError` and `PolicyError`.
    """
    current = inspect.currentframe()
    frame = current.f_back if current else None
    del current  # a frame that refers to itself waits for the collector, with all around it

    def make(function: Callable[..., AnyValue]) -> AnyStep:
        plain = cast("object", function)
        if not isinstance(plain, FunctionType):
            problem = "@step was put on something that is not a plain function"
            raise ExecutorDefinitionError(name or repr(plain), problem, "Put it on a `def`.", "step")
        label = plain.__name__ if name is None else name
        if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise ExecutorDefinitionError(label, "a step is no generator", "Return a list of what it finds.", "step")
        return Step(plain, name, attempt_policy(f"step {label!r}", retry, timeout), frame)

    return make if function is None else make(function)


class StepMaker(Protocol):
    """What `@step(...)` is: it makes a function a step."""

    @overload
    def __call__(self, function: Callable[Parameters, Running[Result]], /) -> Step[Parameters, Result]: ...

    @overload
    def __call__(self, function: Callable[Parameters, Result], /) -> Step[Parameters, Result]: ...
