"""Executors: the nodes of a graph, as classes with handlers or as functions.

An executor belongs to a definition and is shared by all runs, so `build()` freezes it and it holds no run state. It
must not know how, when or where its handlers are called.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar, Final, Generic, ParamSpec, Self, TypeVar, cast, overload

from rehydrate.errors import ExecutorDefinitionError, FrozenExecutorError
from rehydrate.graph.annotations import UNSET
from rehydrate.graph.dispatch import HandlerTable
from rehydrate.graph.handlers import Declaration, HandlerSpec, ResponseHandlerSpec, with_names
from rehydrate.graph.hints import Hint
from rehydrate.graph.policies import AttemptPolicy, Retry, attempt_policy
from rehydrate.graph.specs import specs_of_class, specs_of_function
from rehydrate.ids import check_id

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


#: The methods that give an executor state of its own.
HOOKS: Final = ("on_checkpoint_save", "on_checkpoint_restore")


class Executor:
    """A node with `@handler` methods; subclass it, or use `@executor` on a function.

    Attributes are for what all runs share (clients, settings): after `build()` assigning one raises
    `FrozenExecutorError`. A subclass with state of its own overrides both checkpoint hooks: it gets an instance per
    scope. `retry` and `timeout` (seconds that one attempt may last) are policies; raises `PolicyError` for wrong ones.
    """

    id: str
    #: How often attempts are made and how long they may last; `None`: once, and for ever.
    attempt_policy: AttemptPolicy | None = None
    #: Whether this is the function of a functional workflow.
    is_body: ClassVar[bool] = False
    _class_table: ClassVar[HandlerTable | None] = None
    _has_hooks: ClassVar[bool] = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls._has_hooks = any(getattr(cls, name) is not getattr(Executor, name) for name in HOOKS)

    # Type checkers would ask every subclass for an `__init__` that takes the same.
    if not TYPE_CHECKING:

        def __new__(cls, *args: object, **kwargs: object) -> Self:  # noqa: D102
            self = super().__new__(cls)
            vars(self)["id"] = cls.__name__
            vars(self)["_made_with"] = args, kwargs
            return self

    def __init__(self, id: str | None = None, *, retry: Retry | None = None, timeout: float | None = None) -> None:
        if id is not None:
            self.id = check_id(id, "executor id")
        if retry is not None or timeout is not None:
            self.attempt_policy = attempt_policy(f"executor {self.id!r}", retry, timeout)

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_when_frozen(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_when_frozen(name)
        super().__delattr__(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    @property
    def handler_table(self) -> HandlerTable:
        """All handlers of the class, with what is wrong with it; never raises."""
        cls = type(self)
        # One for all instances of the class, of which there may be one per scope.
        table = cast("HandlerTable | None", vars(cls).get("_class_table"))
        if table is None:
            table = cls._class_table = HandlerTable(cls.__name__, specs_of_class(cls))
        return table

    @property
    def handlers(self) -> tuple[HandlerSpec, ...]:
        """The message handlers; raises `ExecutorDefinitionError` where the executor is declared wrongly."""
        return self._table.specs.handlers

    @property
    def response_handlers(self) -> tuple[ResponseHandlerSpec, ...]:
        """The handlers of answers; raises `ExecutorDefinitionError` where the executor is declared wrongly."""
        return self._table.specs.response_handlers

    @property
    def has_instance_state(self) -> bool:
        """Whether the class overrides a checkpoint hook, so that each scope has an instance of its own."""
        return self._has_hooks

    @property
    def stored_types(self) -> tuple[Hint, ...]:
        """Types that it stores beside those of its handlers."""
        return ()

    def handler_for(self, value: object) -> HandlerSpec | None:
        """Return the most exact handler for a message; `None` for none.

        Raises `ExecutorDefinitionError` where several are equally exact and only the value shows it.
        """
        return self._table.handler_for(value)

    def decides_by_type(self, value: object) -> bool:
        """Tell whether all values of this one's class go to one handler, or to none."""
        return self._table.decides_by_type(value)

    def response_handler_for(self, request: object, response: Hint) -> ResponseHandlerSpec:
        """Return the most exact handler of answers of type `response` to `request`; raises `EffectError`."""
        return self._table.response_handler_for(self.id, request, response)

    def can_take(self, value: object) -> bool:
        """Tell whether a message of this value can be delivered here."""
        return self.handler_for(value) is not None

    def new_instance(self) -> Self:
        """Return an unfrozen executor like this one for one scope; by default made with the arguments of this one."""
        args, kwargs = cast("tuple[tuple[object, ...], dict[str, object]]", vars(self)["_made_with"])
        instance = cast("Callable[..., Self]", type(self))(*args, **kwargs)
        vars(instance)["id"] = self.id
        return instance

    def freeze(self) -> None:
        """Refuse assignments from now on; `functools.cached_property` still works."""
        vars(self)["_frozen"] = True

    def on_checkpoint_save(self) -> Mapping[str, object] | Awaitable[Mapping[str, object]]:
        """Return this instance's state, storable; called after each finished invocation, as part of it."""
        return {}

    def on_checkpoint_restore(self, state: dict[str, object]) -> Awaitable[None] | None:
        """Take what `on_checkpoint_save` returned; called once, before the first invocation of an instance."""

    def _refuse_when_frozen(self, name: str) -> None:
        if "_frozen" in vars(self):
            raise FrozenExecutorError(self.id, name)

    @cached_property
    def _table(self) -> HandlerTable:
        table = self.handler_table
        if table.specs.errors:
            raise table.specs.errors[0]
        return table


class FunctionExecutor(Executor, Generic[Parameters, Result]):
    """A function as a node, made by `@executor`; calling it calls the function."""

    def __init__(
        self,
        function: Callable[Parameters, Result],
        declaration: Declaration,
        id: str | None = None,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,
    ) -> None:
        name = function.__name__
        super().__init__(name if id is None else id, retry=retry, timeout=timeout)
        self.function = function
        self._own_table = HandlerTable(name, specs_of_function(function, declaration))

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def handler_table(self) -> HandlerTable:
        """The function as a handler, with what is wrong with it; never raises."""
        return self._own_table


@overload
def executor(function: Callable[Parameters, Result], /) -> FunctionExecutor[Parameters, Result]: ...


@overload
def executor(
    *,
    id: str | None = None,
    message: Hint = UNSET,
    sends: Hint = UNSET,
    yields: Hint = UNSET,
    returns: Hint = UNSET,
    retry: Retry | None = None,
    timeout: float | None = None,
) -> Callable[[Callable[Parameters, Result]], FunctionExecutor[Parameters, Result]]: ...


def executor(
    function: Callable[Parameters, Result] | None = None,
    /,
    *,
    id: str | None = None,
    message: Hint = UNSET,
    sends: Hint = UNSET,
    yields: Hint = UNSET,
    returns: Hint = UNSET,
    retry: Retry | None = None,
    timeout: float | None = None,
) -> (
    FunctionExecutor[Parameters, Result]
    | Callable[[Callable[Parameters, Result]], FunctionExecutor[Parameters, Result]]
):
    """Make a function `(message)` or `(message, ctx)` an executor; its id is the function's name unless given.

    What it returns is sent on, or yielded where it has no outgoing edge; `None` is nothing. The types are for where
    annotations cannot say them; `retry` and `timeout` (seconds of an attempt) are policies. Raises
    `ExecutorDefinitionError` on anything but a plain function, and `PolicyError`.
    """
    declaration = Declaration("executor", (("message", message),), sends, yields, returns)
    current = inspect.currentframe()
    frame = current.f_back if current else None

    def make(function: Callable[Parameters, Result]) -> FunctionExecutor[Parameters, Result]:
        plain = cast("object", function)
        if not isinstance(plain, FunctionType):
            raise ExecutorDefinitionError(
                id or repr(plain), "@executor was put on something that is not a plain function", "Put it on a `def`."
            )
        return FunctionExecutor(function, with_names(declaration, function, frame), id, retry=retry, timeout=timeout)

    return make if function is None else make(function)


def overridden_hooks(executor: Executor) -> tuple[str, ...]:
    """Return the names of the checkpoint hooks that the executor's class overrides."""
    return tuple(name for name in HOOKS if getattr(type(executor), name) is not getattr(Executor, name))
