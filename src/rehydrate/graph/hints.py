"""Type hints as data: taking them apart, describing them, and asking whether a value matches one.

Hints are what `typing` and classes can express. Nothing here resolves names (`annotations.py` does) or compares two
hints (`exactness.py` does).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NewType,
    NoReturn,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    cast,
)

#: A class or any form that annotations can have; Python has no narrower type for it.
Hint: TypeAlias = object

#: Wrappers that matter to type checkers only, by name because some are newer than our oldest Python.
_QUALIFIERS: Final = frozenset({"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})
#: What else a value of a numeric class is taken for, as type checkers do.
PROMOTIONS: Final[Mapping[type, tuple[type, ...]]] = {float: (int,), complex: (float, int)}
_CHECKED_MODULES: Final = frozenset({"builtins", "collections", "collections.abc"})


class _Parametrised(Protocol):
    def __getitem__(self, parameters: tuple[Hint, ...], /) -> Hint: ...


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
    if hint is LiteralString:
        return str
    if isinstance(hint, type) and origin is None:
        return hint
    if isinstance(hint, NewType):
        return cast("Hint", hint.__supertype__)
    if isinstance(hint, TypeVar):
        constraints = hint.__constraints__
        return cast("Hint", Union[constraints] if constraints else hint.__bound__ or object)  # noqa: UP007
    if is_alias(hint):  # the class came with Python 3.12
        value = getattr(hint if origin is None else origin, "__value__")  # noqa: B009
        return value if origin is None else value[typing.get_args(hint)]
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


def is_alias(hint: Hint) -> bool:
    """Tell whether a hint is a `type` alias, which may contain itself, parametrised or not."""
    return "TypeAliasType" in {type(hint).__name__, type(typing.get_origin(hint)).__name__}


def may_contain_itself(hint: Hint) -> bool:
    """Tell whether taking a hint apart may lead back to it, as it does not from a class."""
    return not isinstance(hint, type) or is_typed_dict(hint)


def substituted(hint: Hint, given: Mapping[Hint, Hint]) -> Hint:
    """Return a hint with other types for some of its type variables."""
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    parameters = cast("tuple[Hint, ...]", getattr(hint, "__parameters__", ()))
    if isinstance(hint, type) or given.keys().isdisjoint(parameters):
        return hint
    return cast("_Parametrised", hint)[tuple(given.get(parameter, parameter) for parameter in parameters)]


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
def fields_of(typed_dict: Hint) -> Mapping[str, tuple[Hint, bool]]:
    """Return (hint, required) of each key of a TypedDict, parametrised or not.

    Raises `NameError` where a hint names what does not exist.
    """
    cls = typing.get_origin(typed_dict) or typed_dict
    parameters = cast("tuple[Hint, ...]", getattr(cls, "__parameters__", ()))
    given = dict(zip(parameters, typing.get_args(typed_dict), strict=False))
    by_class = cast("frozenset[str]", getattr(cls, "__required_keys__", ()))
    found: dict[str, tuple[Hint, bool]] = {}
    for key, hint in typing.get_type_hints(cls, include_extras=True).items():
        # The class itself is wrong about postponed `NotRequired[...]`.
        marks = {"Required": True, "NotRequired": False}
        required = marks.get(getattr(typing.get_origin(hint), "_name", ""), key in by_class)
        found[key] = substituted(hint, given), required
    return found


def qualified_name(cls: type) -> str:
    """Return a class's name without module and `<locals>`."""
    return cls.__qualname__.rpartition("<locals>.")[2]


def describe(hint: Hint, name: Callable[[type], str] = qualified_name) -> str:
    """Return a hint as text that does not depend on the order of union members; `name` names the classes."""
    return _described(hint, name, ())


def _described(hint: Hint, name: Callable[[type], str], within: tuple[Hint, ...]) -> str:
    return " | ".join(sorted(dict.fromkeys(_texts(hint, name, within)))) or "Never"


def _texts(hint: Hint, name: Callable[[type], str], within: tuple[Hint, ...]) -> Iterator[str]:
    """Give the texts of a union's members, or of a hint itself; of the aliases `within`, which are being described,
    the name."""
    if is_alias(hint):
        if hint in within:
            yield str(hint)
            return
        within = (*within, hint)
    inner = _unwrapped(hint)
    if inner is not hint:
        yield from _texts(inner, name, within)
    elif is_union(hint):
        for argument in typing.get_args(hint):
            yield from _texts(argument, name, within)
    elif hint is not Never and hint is not NoReturn:
        yield _text_of_one(hint, name, within)


def _text_of_one(hint: Hint, name: Callable[[type], str], within: tuple[Hint, ...]) -> str:
    if is_anything(hint):
        return "Any"
    if hint is NoneType:
        return "None"
    if hint is Ellipsis:
        return "..."
    if isinstance(hint, list):
        return f"[{', '.join(_described(part, name, within) for part in cast('list[Hint]', hint))}]"
    if is_literal(hint):
        return f"Literal[{', '.join(sorted(map(repr, typing.get_args(hint))))}]"
    found = shape(hint)
    if not found:
        return repr(hint)
    if found.arguments is None:
        return name(found.origin)
    arguments = ", ".join(_described(argument, name, within) for argument in found.arguments)
    return f"{name(found.origin)}[{arguments or '()'}]"


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
        return isinstance(value, dict) and _has_fields(cast("dict[object, object]", value), hint, exact)
    if not _of_class(value, found.origin, exact):
        return False
    return found.arguments is None or _matches_arguments(value, found.origin, found.arguments, exact)


def _has_fields(value: dict[object, object], typed_dict: Hint, exact: bool) -> bool:
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
