"""Reading handler specs from the signatures of a class's methods or of a function.

Finds every mistake of an executor at once and keeps it; whoever asks for the specs of a wrong executor gets the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, NoneType
from typing import Final, NamedTuple, Never, cast

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.annotations import UNSET, Annotations, UnresolvedError, signature_of
from rehydrate.graph.context import context_types
from rehydrate.graph.exactness import type_arguments
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.handlers import Declaration, HandlerSpec, ResponseHandlerSpec, declaration_of
from rehydrate.graph.hint_problems import problem_of
from rehydrate.graph.hints import Hint, describe, members

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: What the function of a functional workflow may send and yield by its context.
FUNCTIONAL: Final[tuple[Hint, Hint]] = (Never, Never)
_TYPE_FIX: Final = "Use classes, unions of them, or containers such as list[int]."


@dataclass(frozen=True)
class Specs:
    """The handlers of an executor in the order of their definition, and what is wrong with it."""

    handlers: tuple[HandlerSpec, ...] = ()
    response_handlers: tuple[ResponseHandlerSpec, ...] = ()
    errors: tuple[ExecutorDefinitionError, ...] = ()


class _Parameters(NamedTuple):
    taken: tuple[inspect.Parameter, ...]
    context: inspect.Parameter | None


def specs_of_class(cls: type) -> Specs:
    """Read the marked methods of a class, those of its bases first."""
    handlers: list[HandlerSpec] = []
    response_handlers: list[ResponseHandlerSpec] = []
    errors: list[ExecutorDefinitionError] = []
    for name, owner in _marked_names(cls).items():
        try:
            spec = _read_method(cls, name, owner)
        except ExecutorDefinitionError as error:
            errors.append(error)
            continue
        if isinstance(spec, HandlerSpec):
            handlers.append(spec)
        else:
            response_handlers.append(spec)
    return Specs(tuple(handlers), tuple(response_handlers), tuple(errors))


def specs_of_function(function: Callable[..., object], declaration: Declaration) -> Specs:
    """Read a function executor; its one handler is named after the attribute that holds the function."""
    try:
        return Specs((cast("HandlerSpec", _Reader(function, declaration, None, function.__name__).read("function")),))
    except ExecutorDefinitionError as error:
        return Specs(errors=(error,))


def _marked_names(cls: type) -> dict[str, type]:
    """Return each name that is a handler somewhere in the class, with the class that defines it for good."""
    names: dict[str, type] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if name in names or declaration_of(_inner(value)):
                names[name] = base
    return names


def _inner(value: object) -> object:
    return getattr(value, "__func__", value)


def _read_method(cls: type, name: str, owner: type) -> HandlerSpec | ResponseHandlerSpec:
    where = f"{cls.__name__}.{name}"
    value: object = vars(owner)[name]
    if value is not _inner(value):
        raise ExecutorDefinitionError(
            where, "is a static or class method", "Make the handler a plain method: it takes self."
        )
    declaration = declaration_of(value)
    if declaration is None:
        raise ExecutorDefinitionError(
            where,
            "replaces a handler of a base class and is none itself",
            "Put @handler (or @response_handler) on it as well, or give it another name.",
        )
    given = type_arguments(cls, owner)
    return _Reader(cast("FunctionType", value), declaration, owner, where, given).read(name)


class _Reader:
    """Reads one function; `owner` is the class that it is a method of, `given` what its type variables stand for."""

    def __init__(
        self,
        function: Callable[..., object],
        declaration: Declaration,
        owner: type | None,
        where: str,
        given: Mapping[Hint, Hint] | None = None,
    ) -> None:
        self.function = function
        self.declaration = declaration
        self.owner = owner
        self.where = where
        self.annotations = Annotations(function, owner, declaration.names, given or {})

    def read(self, name: str) -> HandlerSpec | ResponseHandlerSpec:
        inner = inspect.unwrap(self.function)
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise self._error("is a generator", "Use ctx.send_message or ctx.yield_output instead of `yield`.")
        parameters = self._parameters()
        takes = [
            self._taken(hint, parameter)
            for (_, hint), parameter in zip(self.declaration.takes, parameters.taken, strict=True)
        ]
        sends, yields = self._effects(parameters.context)
        is_async = inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(inner)
        takes_context = parameters.context is not None
        returns = self._returns()
        if len(takes) == 1:
            return HandlerSpec(name, takes[0], sends, yields, is_async, takes_context, returns)
        return ResponseHandlerSpec(name, takes[0], takes[1], sends, yields, is_async, takes_context)

    def _parameters(self) -> _Parameters:
        given = list(signature_of(self.function).parameters.values())
        positional = [parameter for parameter in given if parameter.kind in _POSITIONAL]
        if self.owner is not None:
            positional = positional[1:]
        wanted = len(self.declaration.takes)
        taken, rest = positional[:wanted], positional[wanted:]
        more = [*rest[1:], *(parameter for parameter in given if parameter.kind is inspect.Parameter.KEYWORD_ONLY)]
        if len(taken) < wanted or any(parameter.default is inspect.Parameter.empty for parameter in more):
            names = [*(["self"] if self.owner else []), *(name for name, _ in self.declaration.takes)]
            expected = f"({', '.join(names)}) or ({', '.join(names)}, ctx)"
            raise self._error(f"does not take {expected}", f"Give it the parameters {expected}.")
        return _Parameters(tuple(taken), rest[0] if rest else None)

    def _taken(self, stated: Hint, parameter: inspect.Parameter) -> Hint:
        hint = self._hint(stated, parameter.name)
        if hint is UNSET:
            raise self._error(
                f"parameter {parameter.name!r} has no annotation",
                f"Annotate it with the type that it takes, or use {self.declaration.remedy}.",
            )
        checked = self._checked(hint)
        if not members(checked):
            raise self._error(f"parameter {parameter.name!r} can have no value ({describe(hint)})", _TYPE_FIX)
        return checked

    def _effects(self, context: inspect.Parameter | None) -> tuple[tuple[Hint, ...], tuple[Hint, ...]]:
        stated_sends, stated_yields = self.declaration.sends, self.declaration.yields
        sends: Hint = ()
        yields: Hint = ()
        if context is not None and (stated_sends is UNSET or stated_yields is UNSET):
            hint = self._hint(UNSET, context.name)
            functional = self.declaration.kind == "workflow"
            known = FUNCTIONAL if functional and hint is FunctionalContext else None
            types = ((), ()) if hint is UNSET else known if functional else context_types(hint)
            if types is None:
                right = "FunctionalContext" if functional else "WorkflowContext[what it sends, what it yields]"
                raise self._error(
                    f"parameter {context.name!r} is the context, but is annotated {describe(hint)}",
                    f"Annotate it {right}.",
                )
            sends, yields = types
        return (
            self._each(sends if stated_sends is UNSET else stated_sends),
            self._each(yields if stated_yields is UNSET else stated_yields),
        )

    def _returns(self) -> tuple[Hint, ...]:
        if self.owner is None:
            hint = self._hint(self.declaration.returns, "return")
            return () if hint is UNSET else tuple(part for part in self._each(hint) if part is not NoneType)
        try:
            hint = self.annotations.of("return")
        except UnresolvedError as error:
            hint = error.text
        if hint is UNSET or set(members(hint)) <= {NoneType}:
            return ()
        raise self._error(
            f"is annotated to return {hint if isinstance(hint, str) else describe(hint)}, but methods return nothing",
            "Annotate it `-> None`; use ctx.send_message to send on and ctx.yield_output to give out.",
        )

    def _each(self, stated: Hint) -> tuple[Hint, ...]:
        """Return the union members of a stated type, or of each type of a tuple."""
        hints = cast("tuple[Hint, ...]", stated) if isinstance(stated, tuple) else (stated,)
        found: list[Hint] = []
        for hint in hints:
            found.extend(part for part in members(self._checked(self._resolved(hint))) if part not in found)
        return tuple(found)

    def _hint(self, stated: Hint, name: str) -> Hint:
        if stated is not UNSET:
            return self._resolved(stated)
        try:
            return self.annotations.of(name)
        except UnresolvedError as error:
            what = "the return annotation" if name == "return" else f"the annotation of parameter {name!r}"
            raise self._unresolved(what, error) from error

    def _resolved(self, hint: Hint) -> Hint:
        try:
            return self.annotations.resolved(hint)
        except UnresolvedError as error:
            raise self._unresolved("a type given to its decorator", error) from error

    def _unresolved(self, what: str, error: UnresolvedError) -> ExecutorDefinitionError:
        return self._error(
            f"{what}, {error.text}, cannot be resolved ({error.reason})",
            f"Import or define the type where the module can see it at run time (not under TYPE_CHECKING), "
            f"or state it: {self.declaration.remedy}.",
        )

    def _checked(self, hint: Hint) -> Hint:
        try:
            problem = problem_of(hint)
        except RecursionError:
            problem = "they lead back to themselves without end"
        if problem:
            raise self._error(f"values cannot be checked against its types: {problem}", _TYPE_FIX)
        return hint

    def _error(self, problem: str, fix: str) -> ExecutorDefinitionError:
        kind = "function" if self.declaration.kind == "workflow" else "executor"
        return ExecutorDefinitionError(self.where, problem, fix, kind)


def each_spec(specs: Specs) -> Iterator[HandlerSpec | ResponseHandlerSpec]:
    """Give every handler, those of messages first."""
    yield from specs.handlers
    yield from specs.response_handlers
