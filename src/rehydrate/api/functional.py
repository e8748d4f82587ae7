"""Functional workflows: an async function as a workflow, with the same calls as a graph.

The function is the one executor of a definition, and what it calls stands beside it. Nothing here runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Generic, Protocol, TypedDict, TypeVar, Unpack, cast, overload

from rehydrate.api.builder import ReducerLike, WorkflowBuilder, storage_problems
from rehydrate.api.workflow import Workflow
from rehydrate.codecs import TypeRegistry, ValueCodec, type_name
from rehydrate.errors import DefinitionError, ExecutorDefinitionError, WorkflowBuildError
from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.annotations import UNSET
from rehydrate.graph.definition import Definition
from rehydrate.graph.function_body import FunctionBody, functional_definition
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.graph_spec import GraphSpec
from rehydrate.graph.handlers import Declaration, with_names
from rehydrate.graph.hints import Hint
from rehydrate.graph.migration import Migration
from rehydrate.graph.problems import problem_at
from rehydrate.graph.step import AnyValue, Running
from rehydrate.graph.sub_workflow import HasDefinition, WorkflowExecutor
from rehydrate.graph.traffic import distinct, stored_by
from rehydrate.graph.validation import problems
from rehydrate.ports.observer import Observer
from rehydrate.ports.store import CheckpointStorage
from rehydrate.runtime.observed_opening import checked_observers

Message_contra = TypeVar("Message_contra", contravariant=True)
Message = TypeVar("Message")
Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class FunctionalWorkflow(Workflow, Generic[Message_contra, Result_co]):
    """A workflow that is a function. Made by `@workflow`; it has all calls of a `Workflow`."""

    def __init__(
        self,
        function: Callable[..., Awaitable[AnyValue]],
        definition: Definition,
        codec: ValueCodec,
        checkpoint_storage: CheckpointStorage | None,
        observers: Sequence[Observer],
    ) -> None:
        super().__init__(definition=definition, codec=codec, checkpoint_storage=checkpoint_storage, observers=observers)
        self._function = function

    @property
    def function(self) -> Callable[..., Awaitable[Result_co]]:
        """The function itself."""
        return self._function

    def accepts(self, message: Message_contra) -> bool:
        """Tell whether a run can begin with this message."""
        return super().accepts(message)


class FunctionalOptions(TypedDict, total=False):
    """The keyword arguments of `@workflow`."""

    name: str | None
    version: int
    checkpoint_storage: CheckpointStorage | None
    reducers: Mapping[str, ReducerLike] | None
    resources: Mapping[str, type] | None
    max_supersteps: int
    max_concurrency: int | None
    migrate: Mapping[int, Migration] | None
    observers: Sequence[Observer]
    calls: Iterable[HasDefinition]
    types: Iterable[Hint]
    message: Hint
    returns: Hint


class WorkflowMaker(Protocol):
    """What `@workflow(...)` is: it makes a function a workflow."""

    @overload
    def __call__(
        self, function: Callable[[Message, FunctionalContext], Running[Result]], /
    ) -> FunctionalWorkflow[Message, Result]: ...

    @overload
    def __call__(self, function: Callable[[Message], Running[Result]], /) -> FunctionalWorkflow[Message, Result]: ...


@overload
def workflow(
    function: Callable[[Message, FunctionalContext], Running[Result]], /
) -> FunctionalWorkflow[Message, Result]: ...


@overload
def workflow(function: Callable[[Message], Running[Result]], /) -> FunctionalWorkflow[Message, Result]: ...


@overload
def workflow(**options: Unpack[FunctionalOptions]) -> WorkflowMaker: ...


def workflow(
    function: Callable[..., AnyValue] | None = None, /, **options: Unpack[FunctionalOptions]
) -> AnyValue:  # `AnyValue`: the overloads say what
    """Make an async function `(message)` or `(message, ctx)` a workflow; what it returns is the run's output.

    `calls` names the workflows that it gives to `ctx.call`; `types` those of questions, answers and state that nothing
    else names; `message` and `returns` are for where annotations cannot say them. The others are `WorkflowBuilder`'s.
    Raises `ExecutorDefinitionError` on anything but an `async def`, and `WorkflowBuildError` with every problem.
    """
    current = inspect.currentframe()
    frame = current.f_back if current else None
    del current  # a frame that refers to itself waits for the collector, with all around it

    def make(function: Callable[..., AnyValue]) -> FunctionalWorkflow[AnyValue, AnyValue]:
        plain = cast("object", function)
        if not isinstance(plain, FunctionType) or not inspect.iscoroutinefunction(inspect.unwrap(plain)):
            where = getattr(plain, "__name__", repr(plain))
            problem = "@workflow was put on something that is not an async function"
            raise ExecutorDefinitionError(where, problem, "Put it on an `async def`.", "function")
        takes = (("message", options.get("message", UNSET)),)
        declaration = with_names(Declaration("workflow", takes, returns=options.get("returns", UNSET)), plain, frame)
        return _built(plain, declaration, options)

    return make if function is None else make(function)


class _Described(WorkflowBuilder):
    """What is said of a workflow that has no edges."""

    @property
    def spec(self) -> GraphSpec:
        return self._spec()


def _built(
    function: FunctionType, declaration: Declaration, options: FunctionalOptions
) -> FunctionalWorkflow[AnyValue, AnyValue]:
    name = options.get("name") or function.__name__
    body = FunctionBody(function, declaration, function.__name__, tuple(options.get("types", ())))
    store, observers = options.get("checkpoint_storage"), checked_observers(options.get("observers", ()))
    spec = _Described(
        name,
        body,
        version=options.get("version", 1),
        checkpoint_storage=store,
        reducers=options.get("reducers"),
        resources=options.get("resources"),
        max_supersteps=options.get("max_supersteps", 100),
        max_concurrency=options.get("max_concurrency"),
        migrate=options.get("migrate"),
    ).spec
    calls = tuple(WorkflowExecutor(item) for item in options.get("calls", ()))
    found = [*problems(spec), *_call_problems(body, calls)]
    hints: tuple[Hint, ...] = ()
    try:
        hints = distinct(hint for node in (body, *calls) for hint in stored_by(node)) if not found else ()
        registry = TypeRegistry(hints)
    except DefinitionError as error:
        raise WorkflowBuildError(str(name), (*found, *storage_problems(hints))) from error
    if found:
        raise WorkflowBuildError(str(name), tuple(found))
    definition = functional_definition(spec, calls, hints, type_name)
    for executor in (body, *calls):
        executor.freeze()
    return FunctionalWorkflow(function, definition, ValueCodec(registry), store, observers)


def _call_problems(body: FunctionBody, calls: tuple[WorkflowExecutor, ...]) -> list[BuildProblem]:
    """Return what is wrong with the workflows that a function names: each needs a name of its own."""
    found: list[BuildProblem] = []
    names = {body.id}
    for node in calls:
        if node.id in names:
            action = "give each workflow a name of its own: @workflow(name=...) or WorkflowBuilder(name=...)"
            found.append(problem_at("duplicate-id", f"calls of {body.id!r}", f"names {node.id!r} twice", action))
        names.add(node.id)
    return found
