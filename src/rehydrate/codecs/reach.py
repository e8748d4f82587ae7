"""Reach: all classes that hints lead to, through unions, parameters, fields and marked subclasses.

Resolves postponed hints of fields; a hint that cannot be resolved is an error, never skipped. Names nothing.
"""

from __future__ import annotations

import collections.abc
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, ForwardRef, cast

from rehydrate.errors.codec import UnresolvedTypeError
from rehydrate.graph.annotations import type_parameters
from rehydrate.graph.hints import (
    Hint,
    fields_of,
    is_literal,
    is_typed_dict,
    may_contain_itself,
    members,
    qualified_name,
    shape,
)

from .classes import declares_fields, is_storable, layout_of
from .marks import mark_of
from .models import attrs_hints, is_pydantic, model_hints

#: Parameters of these say nothing of stored values.
_OPAQUE: Final = frozenset({collections.abc.Callable, type})


class Reach:
    """The classes found so far; `known` are built-in ones, which need no search."""

    def __init__(self, known: Mapping[type, str]) -> None:
        self._known = known
        self._seen: set[type] = set()
        self.classes: list[type] = []

    def add(self, hints: Iterable[Hint]) -> None:
        """Find all classes behind the hints; raises `UnresolvedTypeError`."""
        waiting = [cls for hint in hints for cls in classes_in(hint)]
        named = {cls.__name__: cls for cls in waiting}
        while waiting:
            cls = waiting.pop()
            if cls in self._seen or cls in self._known or cls is object:
                continue
            self._seen.add(cls)
            named.setdefault(cls.__name__, cls)
            if not is_typed_dict(cls) and (is_storable(cls) or mark_of(cls)):
                self.classes.append(cls)
            waiting.extend(marked_subclasses(cls))
            for hint in (*field_hints(cls, named).values(), *_base_arguments(cls)):
                waiting.extend(classes_in(hint, qualified_name(cls)))


def classes_in(hint: Hint, where: str = "the given types", within: tuple[Hint, ...] = ()) -> Iterator[type]:
    """Yield every class that a hint names; raises `UnresolvedTypeError` for one that is only a name.

    The hints `within` are being looked at.
    """
    if hint in within:
        return
    if may_contain_itself(hint):
        within = (*within, hint)
    if isinstance(hint, ForwardRef) and getattr(hint, "__forward_evaluated__", False):
        hint = cast("Hint", getattr(hint, "__forward_value__"))  # noqa: B009  (left in an alias that contains itself)
    if isinstance(hint, str | ForwardRef):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        raise UnresolvedTypeError(where, f"{name!r} is only a name")
    for member in members(hint):
        if isinstance(member, str | ForwardRef):
            yield from classes_in(member, where, within)
        if is_literal(member):
            yield from (type(value) for value in typing.get_args(member))
            continue
        found = shape(member)
        if found is None:
            continue
        yield found.origin
        if found.origin in _OPAQUE:
            continue
        for argument in found.arguments or ():
            yield from classes_in(argument, where, within)


def marked_subclasses(cls: type) -> list[type]:
    """Return the marked classes below a class, however far.

    A class that `dataclass(slots=True)` replaced may still be around; of two that stand at one place in one module the
    newer is the real one.
    """
    found: dict[tuple[str, str], type] = {}
    waiting = type.__subclasses__(cls)
    while waiting:
        below = waiting.pop(0)
        waiting.extend(type.__subclasses__(below))
        if mark_of(below):
            found[below.__module__, below.__qualname__] = below
    return list(found.values())


def field_hints(cls: type, named: Mapping[str, type]) -> Mapping[str, Hint]:
    """Return the resolved hints of a class's fields; `named` helps with classes that are local to a function."""
    if is_typed_dict(cls):
        return {name: hint for name, (hint, _) in _typed_dict_fields(cls).items()}
    if not declares_fields(cls):
        return {}
    if is_pydantic(cls):
        hints = model_hints(cls)
        if hints is None:
            raise UnresolvedTypeError(qualified_name(cls), "pydantic has not completed the model; call model_rebuild()")
        return hints
    fields = layout_of(cls).fields
    hints = {**attrs_hints(cls), **_resolved(cls, named)}
    return {name: hints[name] for name in fields if name in hints}


def _base_arguments(cls: type) -> list[Hint]:
    """Return what stands in brackets behind the bases: `Claim` of `class Claims(list[Claim])`."""
    bases = cast("tuple[Hint, ...]", cls.__dict__.get("__orig_bases__", ()))
    return [argument for base in bases for argument in typing.get_args(base)]


def _typed_dict_fields(cls: type) -> Mapping[str, tuple[Hint, bool]]:
    try:
        return fields_of(cls)
    except NameError as error:
        raise UnresolvedTypeError(qualified_name(cls), str(error)) from error


def _resolved(cls: type, named: Mapping[str, type]) -> dict[str, Hint]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError:
        # A class defined in a function is no global; one of that name among the known types is meant.
        module = sys.modules.get(cls.__module__)
        local = {name: found for name, found in named.items() if not hasattr(module, name)} | type_parameters(cls)
    try:
        return typing.get_type_hints(cls, localns=cast("dict[str, object]", local), include_extras=True)
    except NameError as error:
        raise UnresolvedTypeError(qualified_name(cls), str(error)) from error
