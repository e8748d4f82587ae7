"""Reading the annotations of handlers, also postponed ones and those that name local classes.

Resolves names where Python itself could; it imports nothing by name and judges no type.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import FrameType, FunctionType, MappingProxyType
from typing import Final, TypeVar, cast

from rehydrate.graph.hints import Hint, substituted

if sys.version_info >= (3, 14):
    import annotationlib

    def raw_annotations(annotated: object) -> Mapping[str, Hint]:
        """Return the annotations of a function or class; what cannot be resolved stays a name."""
        return annotationlib.get_annotations(annotated, format=annotationlib.Format.FORWARDREF)

    def signature_of(function: Callable[..., object]) -> inspect.Signature:
        """Return the signature of a function without asking its annotations for values."""
        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)

else:

    def raw_annotations(annotated: object) -> Mapping[str, Hint]:
        """Return the annotations of a function or class, postponed ones as text."""
        return typing.cast("Mapping[str, Hint]", getattr(annotated, "__annotations__", {}))

    def signature_of(function: Callable[..., object]) -> inspect.Signature:
        """Return the signature of a function."""
        return inspect.signature(function)


class Unset(Enum):
    """What stands for an annotation or argument that was not given; `None` is a type."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


class UnresolvedError(Exception):
    """An annotation cannot be resolved; never leaves the graph layer."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text = text
        self.reason = reason


class Annotations:
    """The annotations of one function, each resolved when it is asked for.

    `owner` is the class that the function was defined in; `names` are local names kept when it was decorated; `given`
    says what type variables stand for.
    """

    def __init__(
        self,
        function: Callable[..., object],
        owner: type | None,
        names: Mapping[str, object],
        given: Mapping[Hint, Hint] = MappingProxyType({}),
    ) -> None:
        inner = inspect.unwrap(function)
        self._given = given
        self._raw = raw_annotations(inner)
        self._globals: dict[str, object] = getattr(inner, "__globals__", {})
        self._locals = {**_closure(inner), **names}
        if owner is not None:
            known = {*self._globals, *vars(builtins), *self._locals}
            self._locals |= {name: value for name, value in vars(owner).items() if name not in known}
            self._locals.setdefault(owner.__name__, owner)
        self._locals |= {**type_parameters(owner), **type_parameters(inner)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are annotated; `return` is one."""
        return tuple(self._raw)

    def of(self, name: str) -> Hint:
        """Return the hint of a parameter (`return` for the result) or `UNSET`. Raises `UnresolvedError`."""
        return self.resolved(self._raw[name]) if name in self._raw else UNSET

    def resolved(self, hint: Hint) -> Hint:
        """Return a hint without postponed parts. Raises `UnresolvedError`."""

        def holder() -> None: ...

        holder.__annotations__ = {"hint": hint}
        try:
            found = typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)["hint"]
        except (NameError, AttributeError, TypeError, SyntaxError) as error:
            raise UnresolvedError(hint if isinstance(hint, str) else repr(hint), str(error)) from error
        return substituted(found, self._given)


def type_parameters(generic: object) -> dict[str, object]:
    """Return the type variables in the brackets behind the name of a function or class, by their names."""
    # Came with Python 3.12.
    parameters = cast("tuple[TypeVar, ...]", getattr(generic, "__type_params__", ()))
    return {parameter.__name__: parameter for parameter in parameters}


def local_names(function: Callable[..., object], frame: FrameType | None) -> dict[str, object]:
    """Return those names of postponed annotations that exist in the class bodies and the function around `frame`.

    Asked for when a function is decorated: later nothing leads from a function to the locals it was defined beside.
    """
    wanted = {name for hint in raw_annotations(inspect.unwrap(function)).values() for name in _names_in(hint)}
    found: dict[str, object] = {}
    while wanted and frame is not None and frame.f_locals is not frame.f_globals:
        found = {name: frame.f_locals[name] for name in wanted if name in frame.f_locals} | found
        in_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        frame = None if in_function else frame.f_back
    return found


def _names_in(hint: Hint) -> Iterator[str]:
    if not isinstance(hint, str):
        return
    try:
        tree = ast.parse(hint, mode="eval")
    except SyntaxError:  # reported when it is resolved
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant):
            yield from _names_in(node.value)


def _closure(function: Callable[..., object]) -> dict[str, object]:
    if not isinstance(function, FunctionType):
        return {}
    found: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a name that is bound later, such as the class under definition
            continue
    return found
