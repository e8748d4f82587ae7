"""Type hints as data: taking them apart, describing them, and asking whether a value matches one.

Hints are what `typing` and classes can express. Nothing here resolves names (`annotations.py` does) or compares two
hints (`exactness.py` does).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Never, NewType, NoReturn, TypeAlias, TypeVar, Union, cast

#: A class or any form that annotations can have; Python has no narrower type for it.
Hint: TypeAlias = object

#: Wrappers that matter to type checkers only, by name because some are newer than our oldest Python.
_QUALIFIERS: Final = frozenset({"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})
#: What else a value of a numeric class is taken for, as type checkers do.
PROMOTIONS: Final[Mapping[type, tuple[type, ...]]] = {float: (int,), complex: (float, int)}
_CHECKED_MODULES: Final = frozenset({"builtins", "collections", "collections.abc"})


class Shape(NamedTuple):
    """A class as a hint, and its parameters: `list[int]` has some, `list` has `None`."""

    origin: type
    arguments: tuple[Hint, ...] | None


def plain(hint: Hint) -> Hint:
    """Return the hint without what says nothing of its values: `Annotated`, names of aliases, `NewType`, qualifiers."""
    while True:
        inner = _unwrapped(hint)
        if inner is hint:
            return hint
        hint = inner


def _unwrapped(hint: Hint) -> Hint:
    origin = typing.get_origin(hint)
    if hint is None:
        return NoneType
    if isinstance(hint, type) and origin is None:
        return hint
    if isinstance(hint, NewType):
        return cast("Hint", hint.__supertype__)
    if isinstance(hint, TypeVar):
        constraints = hint.__constraints__
        return cast("Hint", Union[constraints] if constraints else hint.__bound__ or object)  # noqa: UP007
    if type(hint).__name__ == "TypeAliasType":
        return getattr(hint, "__value__")  # noqa: B009  (the class came with Python 3.12)
    if type(origin).__name__ == "TypeAliasType":
        return getattr(origin, "__value__")[typing.get_args(hint)]  # noqa: B009
    if origin is Annotated or getattr(origin, "_name", None) in _QUALIFIERS:
        return typing.get_args(hint)[0]
    if origin is not None and not hasattr(hint, "__args__"):  # `typing.List` is `list`
        return origin
    return hint


def members(hint: Hint) -> tuple[Hint, ...]:
    """Return the members of a union, flat and in their order; of `Never` none, of anything else itself."""
    hint = plain(hint)
    if hint is Never or hint is NoReturn:
        return ()
    if not is_union(hint):
        return (hint,)
    found: list[Hint] = []
    for argument in typing.get_args(hint):
        found.extend(member for member in members(argument) if member not in found)
    return tuple(found)


def is_anything(hint: Hint) -> bool:
    """Tell whether a hint says nothing of a value."""
    return hint is Any or hint is object


def is_union(hint: Hint) -> bool:
    """Tell whether a hint is a union."""
    return typing.get_origin(hint) in {Union, UnionType}


def shape(hint: Hint) -> Shape | None:
    """Take a class or a parametrised class apart; `None` for any other hint."""
    origin = typing.get_origin(hint)
    if origin is None:
        return Shape(hint, None) if isinstance(hint, type) else None
    return Shape(origin, typing.get_args(hint)) if isinstance(origin, type) and not is_union(hint) else None


def is_literal(hint: Hint) -> bool:
    """Tell whether a hint lists its values."""
    return typing.get_origin(hint) is Literal


def is_typed_dict(hint: Hint) -> bool:
    """Tell whether a hint is a TypedDict class."""
    return isinstance(hint, type) and hasattr(hint, "__total__") and dict in hint.__mro__


def is_protocol(hint: Hint) -> bool:
    """Tell whether a hint is a protocol class."""
    return isinstance(hint, type) and bool(getattr(hint, "_is_protocol", False))


def has_runtime_check(hint: Hint) -> bool:
    """Tell whether `isinstance` takes a class, as it does not take a protocol without `runtime_checkable`."""
    try:
        isinstance(None, cast("type", hint))
    except TypeError:
        return False
    return True


@lru_cache(maxsize=1024)
def fields_of(typed_dict: type) -> Mapping[str, tuple[Hint, bool]]:
    """Return (hint, required) of each key of a TypedDict. Raises `NameError` where a hint names what does not exist."""
    by_class = cast("frozenset[str]", getattr(typed_dict, "__required_keys__", ()))
    found: dict[str, tuple[Hint, bool]] = {}
    for key, hint in typing.get_type_hints(typed_dict, include_extras=True).items():
        # The class itself is wrong about postponed `NotRequired[...]`.
        marks = {"Required": True, "NotRequired": False}
        found[key] = hint, marks.get(getattr(typing.get_origin(hint), "_name", ""), key in by_class)
    return found


def qualified_name(cls: type) -> str:
    """Return a class's name without module and `<locals>`."""
    return cls.__qualname__.rpartition("<locals>.")[2]


def describe(hint: Hint, name: Callable[[type], str] = qualified_name) -> str:
    """Return a hint as text that does not depend on the order of union members; `name` names the classes."""
    parts = members(hint)
    if len(parts) != 1:
        return " | ".join(sorted(describe(part, name) for part in parts)) or "Never"
    hint = parts[0]
    if is_anything(hint):
        return "Any"
    if hint is NoneType:
        return "None"
    if hint is Ellipsis:
        return "..."
    if isinstance(hint, list):
        return f"[{', '.join(describe(part, name) for part in cast('list[Hint]', hint))}]"
    if is_literal(hint):
        return f"Literal[{', '.join(sorted(map(repr, typing.get_args(hint))))}]"
    found = shape(hint)
    if not found:
        return repr(hint)
    if found.arguments is None:
        return name(found.origin)
    return f"{name(found.origin)}[{', '.join(describe(argument, name) for argument in found.arguments) or '()'}]"


def matches(value: object, hint: Hint, *, exact: bool = False) -> bool:
    """Tell whether a value is of a type; the elements of containers are looked at, too.

    As for type checkers, an `int` may stand for a `float` and a `bool` for an `int`; not with `exact`, which is for
    values from the outside.
    """
    if isinstance(hint, type) and type(hint) is type:
        return _of_class(value, hint, exact)
    return any(_matches_member(value, member, exact) for member in members(hint))


def _of_class(value: object, cls: type, exact: bool) -> bool:
    try:
        found = isinstance(value, cls)
    except TypeError:  # a protocol that is not runtime_checkable
        return False
    if exact:
        return found and not (type(value) is bool and cls is int)
    return found or isinstance(value, PROMOTIONS.get(cls, ()))


def _matches_member(value: object, hint: Hint, exact: bool) -> bool:
    if is_anything(hint):
        return True
    if is_literal(hint):
        return any(type(value) is type(allowed) and value == allowed for allowed in typing.get_args(hint))
    found = shape(hint)
    if found is None:
        return False
    if is_typed_dict(found.origin):
        return isinstance(value, dict) and _has_fields(cast("dict[object, object]", value), found.origin, exact)
    if not _of_class(value, found.origin, exact):
        return False
    return found.arguments is None or _matches_arguments(value, found.origin, found.arguments, exact)


def _has_fields(value: dict[object, object], typed_dict: type, exact: bool) -> bool:
    for key, (field, required) in fields_of(typed_dict).items():
        if key not in value:
            if required:
                return False
        elif not matches(value[key], field, exact=exact):
            return False
    return True


def _matches_arguments(value: object, origin: type, arguments: tuple[Hint, ...], exact: bool) -> bool:
    if origin is tuple:
        return _matches_tuple(cast("tuple[object, ...]", value), arguments, exact)
    if not checks_elements(origin):
        return True
    elements = cast("Collection[object]", value)
    if not all(matches(element, arguments[0], exact=exact) for element in elements):
        return False
    if len(arguments) == 1 or not isinstance(value, Mapping):
        return True
    values = cast("Mapping[object, object]", value).values()
    return all(matches(element, arguments[1], exact=exact) for element in values)


def _matches_tuple(value: Sequence[object], arguments: Sequence[Hint], exact: bool) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(matches(element, arguments[0], exact=exact) for element in value)
    if len(value) != len(arguments):
        return False
    return all(matches(element, hint, exact=exact) for element, hint in zip(value, arguments, strict=True))


def checks_elements(origin: type) -> bool:
    """Tell whether the parameters of such a hint are checked on the elements; those of `Box[X]` are not."""
    return issubclass(origin, Collection) and origin.__module__ in _CHECKED_MODULES


def problem_of(hint: Hint) -> str | None:
    """Return why values cannot be checked against a hint, as the end of a sentence; `None` where they can."""
    for member in members(hint):
        problem = _problem_of_member(member)
        if problem:
            return problem
    return None


def _problem_of_member(hint: Hint) -> str | None:
    if is_anything(hint) or is_literal(hint):
        return None
    found = shape(hint)
    if found is None:
        return f"{hint!r} is not a type"
    if is_typed_dict(found.origin):
        return _problem_of_fields(found.origin)
    if not has_runtime_check(found.origin):
        return f"{describe(hint)} is a protocol that is not @runtime_checkable"
    arguments = found.arguments if checks_elements(found.origin) else ()
    return next((problem for part in arguments or () if part is not Ellipsis and (problem := problem_of(part))), None)


def _problem_of_fields(typed_dict: type) -> str | None:
    try:
        fields = fields_of(typed_dict)
    except NameError as error:
        return f"a key of {describe(typed_dict)} cannot be resolved ({error})"
    return next((problem for hint, _ in fields.values() if (problem := problem_of(hint))), None)
