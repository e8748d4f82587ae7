"""Tools: functions that a model may call, each call a step of its own.

What a model gives as arguments is checked against the annotations before anything runs; what is wrong is told to the
model. It must not know how a conversation is led.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType
from typing import Final, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec

from rehydrate.errors import ExecutorDefinitionError, StepFailedError
from rehydrate.graph.annotations import UNSET, Annotations, UnresolvedError, local_names, signature_of
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.hints import Hint
from rehydrate.graph.policies import AttemptPolicy, Retry, attempt_policy
from rehydrate.graph.step import AnyValue, Running, Step

from .approvals import Approval, Approve
from .conversation import ChatMessage, ToolApproval, tool_message
from .schemas import Schema, SchemaError, as_text, parsed, schema_of

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
OnError = Literal["tell", "raise"]
#: What a tool's failure is called where its program is wrong and no model can help.
_OF_THE_PROGRAM: Final = frozenset({"MissingResourceError", "NotStorableError"})


class Tool(Generic[Parameters, Result]):
    """A function that a model may call, made by `@tool`. Called in a functional workflow it is a step."""

    def __init__(
        self,
        function: Callable[Parameters, Running[Result] | Result],
        name: str | None,
        policy: AttemptPolicy | None,
        frame: FrameType | None,
        *,
        approve: Approve = False,
        on_error: OnError = "tell",
    ) -> None:
        self.step: Step[Parameters, Result] = Step(function, name, policy, frame)
        self.name = self.step.name
        self.approve = approve
        self.on_error = on_error
        self._arguments = _arguments_of(function, self.name, frame)
        self._approval = Approval(self.name, approve, signature_of(function))
        try:
            self._schema = schema_of(self._arguments)
        except SchemaError as error:
            raise _wrong(self.name, f"its arguments cannot be shown to a model: {error}") from error
        self._schema.pop("title", None)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Running[Result]:
        """Call it as the step that it is."""
        return self.step(*args, **kwargs)

    @property
    def description(self) -> str:
        """What the model is told of it: the docstring."""
        return inspect.getdoc(self.step.function) or ""

    @property
    def schema(self) -> Schema:
        """The tool in the form of the protocol."""
        function = {"name": self.name, "description": self.description, "parameters": self._schema}
        return {"type": "function", "function": function}

    def arguments(self, text: str) -> dict[str, object]:
        """Return what a model gave as arguments. Raises `SchemaError`."""
        given = parsed(text or "{}", self._arguments)
        found = {name: getattr(given, name) for name in self._arguments.__struct_fields__}
        return {name: value for name, value in found.items() if value is not msgspec.UNSET}

    def needs_approval(self, arguments: Mapping[str, object]) -> bool:
        """Tell whether a person is asked before a call with these arguments."""
        return self._approval.is_needed(arguments)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}>"


AnyTool = Tool[..., AnyValue]


class Toolbox:
    """The tools of one agent."""

    def __init__(self, agent: str, tools: Sequence[AnyTool]) -> None:
        self._agent = agent
        for given in cast("Sequence[object]", tools):
            if not isinstance(given, Tool):
                problem = f"tools has {given!r:.100}, which is no tool"
                raise ExecutorDefinitionError(agent, problem, "Put @tool on the function.", "agent")
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            names = [tool.name for tool in tools]
            twice = next(name for name in names if names.count(name) > 1)
            problem = f"two tools are called {twice!r}"
            raise ExecutorDefinitionError(agent, problem, "Give one another name: @tool(name=...).", "agent")

    @property
    def schemas(self) -> list[Schema]:
        """All of them, in the form of the protocol."""
        return [tool.schema for tool in self._tools.values()]

    async def run(self, call: Mapping[str, AnyValue], ctx: FunctionalContext) -> ChatMessage:
        """Do what a model asks for and return what to tell it: a result, or what was wrong.

        Raises `StepFailedError` where the tool is to fail the run, or its program is wrong.
        """
        name, text = str(call["function"]["name"]), str(call["function"]["arguments"])
        return tool_message(str(call["id"]), await self._result(name, text, ctx))

    async def _result(self, name: str, text: str, ctx: FunctionalContext) -> str:
        found = self._tools.get(name)
        if found is None:
            return f"error: there is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}"
        try:
            arguments = found.arguments(text)
        except SchemaError as error:
            return f"error: the arguments of {name!r} do not fit: {error}"
        if found.needs_approval(arguments):
            plain = msgspec.json.decode(text or "{}", type=dict[str, object])
            approved = await ctx.request_info(ToolApproval(self._agent, name, plain), response_type=bool)
            if not approved:
                return f"error: a person has refused this call of {name!r}; it was not made"
        try:
            value = await found.step(**arguments)
        except StepFailedError as error:
            if found.on_error == "raise" or error.type in _OF_THE_PROGRAM:
                raise
            return f"error: {error.type}: {error.reason}"
        try:
            return as_text(value)
        except SchemaError as error:
            problem = f"its result cannot be told to a model: {error}"
            fix = "Let it return text, or what JSON can say; a call that is made is recorded, so begin the turn anew."
            raise ExecutorDefinitionError(name, problem, fix, "tool") from error


def _arguments_of(function: Callable[..., object], name: str, frame: FrameType | None) -> type[msgspec.Struct]:
    """Return a struct of a function's parameters; raises `ExecutorDefinitionError`."""
    annotations = Annotations(function, None, local_names(function, frame))
    fields: list[tuple[str, AnyValue] | tuple[str, AnyValue, AnyValue]] = []
    for parameter in signature_of(function).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise _wrong(name, f"parameter {parameter.name!r} cannot be given by name")
        if parameter.name.startswith("__"):  # a struct cannot have some of these, and means others itself
            problem = f"parameter {parameter.name!r} begins as names of Python's own do"
            raise ExecutorDefinitionError(name, problem, "Begin its name with at most one underscore.", "tool")
        try:
            hint: Hint = annotations.of(parameter.name)
        except UnresolvedError as error:
            raise _wrong(name, f"the type of {parameter.name!r} is not there: {error.reason}") from error
        if hint is UNSET:
            raise _wrong(name, f"parameter {parameter.name!r} has no annotation")
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:  # what the model leaves out is the function's own default
            fields.append((parameter.name, cast("AnyValue", hint) | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)


def _wrong(name: str, problem: str) -> ExecutorDefinitionError:
    return ExecutorDefinitionError(name, problem, "Annotate each parameter with a type that JSON can say.", "tool")


class ToolMaker(Protocol):
    """What `@tool(...)` is: it makes a function a tool."""

    @overload
    def __call__(self, function: Callable[Parameters, Running[Result]], /) -> Tool[Parameters, Result]: ...

    @overload
    def __call__(self, function: Callable[Parameters, Result], /) -> Tool[Parameters, Result]: ...


@overload
def tool(function: Callable[Parameters, Running[Result]], /) -> Tool[Parameters, Result]: ...


@overload
def tool(function: Callable[Parameters, Result], /) -> Tool[Parameters, Result]: ...


@overload
def tool(
    *,
    name: str | None = None,
    approve: Approve = False,
    on_error: OnError = "tell",
    retry: Retry | None = None,
    timeout: float | None = None,
) -> ToolMaker: ...


def tool(
    function: Callable[..., AnyValue] | None = None,
    /,
    *,
    name: str | None = None,
    approve: Approve = False,
    on_error: OnError = "tell",
    retry: Retry | None = None,
    timeout: float | None = None,
) -> AnyValue:  # `AnyValue`: the overloads say what
    """Make a function a tool; its docstring is what the model is told, a plain `def` runs in a thread.

    With `approve` a person is asked before a call is made, always or where a function of some of its parameters says
    so. What the tool raises is told to the model, or fails the run with `on_error="raise"`. `retry` and `timeout`
    (seconds of an attempt) are policies. Raises `ExecutorDefinitionError` where parameters have no type or `approve`
    cannot be asked, `IdError` and `PolicyError`.
    """
    current = inspect.currentframe()
    frame = current.f_back if current else None
    del current  # a frame that refers to itself waits for the collector, with all around it

    def make(function: Callable[..., AnyValue]) -> AnyTool:
        plain = cast("object", function)
        is_generator = inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)
        if not isinstance(plain, FunctionType) or is_generator:
            problem = "@tool was put on something that is not a plain function"
            where = getattr(plain, "__name__", repr(plain))
            raise ExecutorDefinitionError(where, problem, "Put it on a `def` that returns its result.", "tool")
        policy = attempt_policy(f"tool {name or plain.__name__!r}", retry, timeout)
        return Tool(plain, name, policy, frame, approve=approve, on_error=on_error)

    return make if function is None else make(function)
