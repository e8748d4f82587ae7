"""What a handler sees of its run.

A protocol only: the runtime implements it. It holds no state and must not know how effects are recorded or stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeVar, cast, overload

from rehydrate.graph.hints import Hint

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Sent_contra = TypeVarWithDefault("Sent_contra", contravariant=True, default=Never)
    Yielded_contra = TypeVarWithDefault("Yielded_contra", contravariant=True, default=Never)
else:
    # Defaults of type variables came with Python 3.13; `WorkflowContext.__class_getitem__` fills them in.
    Sent_contra = TypeVar("Sent_contra", contravariant=True)
    Yielded_contra = TypeVar("Yielded_contra", contravariant=True)

Value = TypeVar("Value")


class Done:
    """What an effect returns: it may be awaited, which does nothing, or ignored."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return _NOTHING


# An exhausted iterator stays exhausted, so one serves every await.
_NOTHING = cast("Generator[None, None, None]", iter(()))

#: The one object that every effect returns.
DONE = Done()


class WorkflowContext(Protocol[Sent_contra, Yielded_contra]):
    """The side of a run that one invocation sees: `WorkflowContext[what it may send, what it may yield]`.

    Effects are recorded when called and become real at the barrier; what they return may be awaited or ignored. A value
    that cannot be stored or is not declared is refused at that line.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: object) -> object:
            given = parameters if isinstance(parameters, tuple) else (parameters,)
            return super().__class_getitem__((*given, Never) if len(given) == 1 else given)

    @property
    def run_id(self) -> str:
        """The run that this invocation belongs to."""
        ...

    @property
    def path(self) -> str:
        """The scope that this invocation runs in; the root is the empty path."""
        ...

    @property
    def executor_id(self) -> str:
        """The executor that handles the message."""
        ...

    @property
    def superstep(self) -> int:
        """Number of the superstep in this scope."""
        ...

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; those that failed, were cancelled or ended with their process count."""
        ...

    @property
    def effect_key(self) -> str:
        """A key to hand to outside systems: the same for every attempt of this invocation, also after a restore."""
        ...

    @property
    def run_args(self) -> Any:
        """The run arguments of the turn, as the caller gave them."""
        ...

    @property
    def resources(self) -> Mapping[str, Any]:
        """The live objects given with this call; reading one that was not given raises `MissingResourceError`."""
        ...

    def send_message(self, message: Sent_contra, target_id: str | None = None) -> Awaitable[None]:
        """Send along the edges of this executor, or along those to one target only.

        Raises `SendTypeError` where the type is not declared or no target takes it.
        """
        ...

    def yield_output(self, value: Yielded_contra) -> Awaitable[None]:
        """Give a value out of the workflow. Raises `SendTypeError` where its type is not declared."""
        ...

    def request_info(self, data: object, *, response_type: Hint) -> Awaitable[None]:
        """Ask the outside; the answer comes to the response handler for (type of `data`, `response_type`).

        Raises `EffectError` where none or two response handlers fit.
        """
        ...

    def emit(self, data: object) -> Awaitable[None]:
        """Stream progress to whoever is listening; it is not kept and takes part in nothing."""
        ...

    @overload
    def get_state(self, key: str, default: None = None, *, start: int | None = None) -> Any: ...

    @overload
    def get_state(self, key: str, default: Value, *, start: int | None = None) -> Value: ...

    def get_state(self, key: str, default: object = None, *, start: int | None = None) -> object:
        """Return a fresh copy of a state value, or `default`; `start` reads only a list's part from there on."""
        ...

    def set_state(self, key: str, value: object) -> Awaitable[None]:
        """Replace a state value as a whole."""
        ...

    def update_state(self, key: str, value: object) -> Awaitable[None]:
        """Contribute to a state value through the reducer of its key. Raises `EffectError` where it has none."""
        ...

    def delete_state(self, key: str) -> Awaitable[None]:
        """Remove a state value; one that does not exist is no error."""
        ...


def context_types(hint: object) -> tuple[Hint, Hint] | None:
    """Return what a context annotation lets send and yield; `None` where it is no context annotation."""
    if hint is WorkflowContext:
        return Never, Never
    if getattr(hint, "__origin__", None) is not WorkflowContext:
        return None
    sent, yielded = cast("Iterable[Hint]", getattr(hint, "__args__", ()))
    return sent, yielded
