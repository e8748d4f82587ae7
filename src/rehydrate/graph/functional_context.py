"""What the function of a functional workflow sees of its run.

Protocols only: the runtime implements them. They hold no state and must not know how calls are recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Never, Protocol, TypeVar, overload

from rehydrate.graph.hints import Hint
from rehydrate.graph.step import AnyValue

if TYPE_CHECKING:
    import random
    import uuid
    from datetime import datetime

    from rehydrate.graph.definition import Definition
    from rehydrate.graph.sub_workflow import HasDefinition

Value = TypeVar("Value")
Answer = TypeVar("Answer")
One = TypeVar("One")
Two = TypeVar("Two")
Three = TypeVar("Three")
Four = TypeVar("Four")
Message_contra = TypeVar("Message_contra", contravariant=True)
Message = TypeVar("Message")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Function(Protocol[Message_contra, Result_co]):
    """A functional workflow, as far as calling it is concerned."""

    @property
    def definition(self) -> Definition:
        """The validated definition."""
        ...

    @property
    def function(self) -> Callable[..., Awaitable[Result_co]]:
        """The function itself."""
        ...

    def accepts(self, message: Message_contra) -> bool:
        """Tell whether it takes a message."""
        ...


class Graph(Protocol):
    """A workflow that is a graph: its types are not known to a type checker, but when it is called."""

    @property
    def definition(self) -> Definition:
        """The validated definition."""
        ...

    def accepts(self, message: object) -> bool:
        """Tell whether it takes a message."""
        ...


class FunctionalState(Protocol):
    """State of the scope. A key reads the same through a whole pass, apart from what the pass itself writes; writes
    become real when the function returns."""

    @overload
    def get(self, key: str, default: None = None, *, start: int | None = None) -> AnyValue: ...

    @overload
    def get(self, key: str, default: Value, *, start: int | None = None) -> Value: ...

    def get(self, key: str, default: object = None, *, start: int | None = None) -> object:
        """Return a fresh copy of a value, or `default`; `start` reads only a list's part from there on."""
        ...

    def set(self, key: str, value: object) -> None:
        """Replace a value as a whole."""
        ...

    def update(self, key: str, value: object) -> None:
        """Contribute to a value through the reducer of its key. Raises `EffectError` where it has none."""
        ...

    def delete(self, key: str) -> None:
        """Remove a value; one that does not exist is no error."""
        ...


class FunctionalContext(Protocol):
    """The side of a run that the function of a functional workflow sees.

    The function runs again from its beginning after every wait and every crash. What its steps, questions, timers and
    called workflows gave before is given again at the same places.
    """

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def path(self) -> str:
        """The scope that the function runs in; the root is the empty path."""
        ...

    @property
    def version(self) -> int:
        """The workflow's version in which this pass began: for branches in code that a migration has brought up."""
        ...

    @property
    def run_args(self) -> AnyValue:
        """The run arguments of the turn in which this pass began, as the caller gave them."""
        ...

    @property
    def resources(self) -> Mapping[str, AnyValue]:
        """The live objects given with this call; reading one that was not given raises `MissingResourceError`."""
        ...

    @property
    def state(self) -> FunctionalState:
        """State of the scope."""
        ...

    @overload
    def request_info(self, data: object, *, response_type: type[Answer]) -> Awaitable[Answer]: ...

    @overload
    def request_info(self, data: object, *, response_type: Hint) -> Awaitable[AnyValue]: ...

    def request_info(self, data: object, *, response_type: Hint) -> Awaitable[AnyValue]:
        """Ask the outside and wait for the answer, which may take days and another process.

        Raises `EffectError` where the response type is not declared in `@workflow(types=[...])`.
        """
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait so long, also where the process ends meanwhile: the time when it is over is in the record."""
        ...

    @overload
    def gather(self, one: Awaitable[One], /) -> Awaitable[tuple[One]]: ...

    @overload
    def gather(self, one: Awaitable[One], two: Awaitable[Two], /) -> Awaitable[tuple[One, Two]]: ...

    @overload
    def gather(
        self, one: Awaitable[One], two: Awaitable[Two], three: Awaitable[Three], /
    ) -> Awaitable[tuple[One, Two, Three]]: ...

    @overload
    def gather(
        self, one: Awaitable[One], two: Awaitable[Two], three: Awaitable[Three], four: Awaitable[Four], /
    ) -> Awaitable[tuple[One, Two, Three, Four]]: ...

    @overload
    def gather(self, *awaitables: Awaitable[One]) -> Awaitable[tuple[One, ...]]: ...

    def gather(self, *awaitables: Awaitable[AnyValue]) -> Awaitable[tuple[AnyValue, ...]]:
        """Run branches side by side and return their results in order.

        Each has a number, so that its steps are told from those of the others whatever comes first. The first that
        raises cancels the others.
        """
        ...

    @overload
    def call(self, workflow: Function[Message, Result], message: Message) -> Awaitable[Result]: ...

    @overload
    def call(self, workflow: Graph, message: object) -> Awaitable[list[AnyValue]]: ...

    def call(self, workflow: HasDefinition, message: object) -> Awaitable[AnyValue]:
        """Run another workflow as a scope of its own: of a function return the result, of a graph all outputs.

        It is named in `@workflow(calls=[...])`. Where it asks or fails, so does this run, with its path. Raises
        `EffectError` for one that is not named and `MessageTypeError` for a message that it does not take.
        """
        ...

    def continue_as_new(self, message: object) -> Awaitable[Never]:
        """End here and begin anew with a message, with the state written so far and nothing remembered."""
        ...

    def emit(self, data: object) -> None:
        """Stream progress to whoever is listening; it is not kept, and not told again where the function runs anew."""
        ...

    def now(self) -> datetime:
        """Return the time (UTC), which is the same whenever the function runs anew."""
        ...

    def random(self) -> random.Random:
        """Return a source of random numbers, which are the same whenever the function runs anew."""
        ...

    def uuid(self) -> uuid.UUID:
        """Return a random id, which is the same whenever the function runs anew."""
        ...
