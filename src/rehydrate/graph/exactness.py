"""How two hints relate: which covers the other, which is more exact, whether a message of one may reach the other.

Everything that chooses between handlers asks here. Must not look at handlers or executors.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, cast

from rehydrate.graph.annotations import raw_annotations
from rehydrate.graph.hints import (
    PROMOTIONS,
    Hint,
    Shape,
    checks_elements,
    fields_of,
    is_anything,
    is_literal,
    is_protocol,
    is_typed_dict,
    matches,
    may_contain_itself,
    members,
    shape,
    substituted,
)

Candidate = TypeVar("Candidate")

#: Classes without parameters that have elements nevertheless.
_ELEMENTS: Final[Mapping[type, Hint]] = {str: str, bytes: int, bytearray: int, range: int}


def accepts(target: Hint, sent: Hint) -> bool:
    """Tell whether a message declared as `sent` could be taken by `target`: each member of `sent` has to find a place.

    A base class may turn out to be the subclass that `target` takes, so it counts; an `int` for a `bool` does not.
    """
    return all(any(_overlap(taken, part) for taken in members(target)) for part in members(sent))


class _Comparison(NamedTuple):
    """How two hints are compared: `loose` lets numbers stand for one another as for type checkers.

    `within` are the pairs that are being compared and may contain themselves.
    """

    loose: bool
    within: tuple[tuple[Hint, Hint], ...] = ()


def covers(wide: Hint, narrow: Hint) -> bool:
    """Tell whether every value of `narrow` is one of `wide`."""
    return _covers(wide, narrow, _Comparison(loose=True))


def narrower(first: Hint, second: Hint) -> bool:
    """Tell whether `first` is more exact, as a subclass is before its base and a member before its union."""
    return covers(second, first) and not covers(first, second)


def ambiguous(first: Hint, second: Hint) -> bool:
    """Tell whether some value fits both hints and neither is more exact for it, as far as the hints show."""
    if narrower(first, second) or narrower(second, first):
        return False
    return any(_indistinct(one, other) for one in members(first) for other in members(second))


def most_exact(
    value: object, candidates: Iterable[Candidate], hint_of: Callable[[Candidate], Hint]
) -> tuple[Candidate, ...]:
    """Return the candidates that take the value and that no other beats: one, none, or several equally exact ones."""
    fitting = [candidate for candidate in candidates if matches(value, hint_of(candidate))]
    if len(fitting) < 2:
        return tuple(fitting)
    return tuple(
        candidate
        for candidate in fitting
        if not any(_beats(value, hint_of(other), hint_of(candidate)) for other in fitting if other is not candidate)
    )


def depends_on_value(hint: Hint, cls: type) -> bool:
    """Tell whether two values of exactly this class can differ in whether they match."""
    for member in members(hint):
        if is_literal(member):
            if any(type(allowed) is cls for allowed in typing.get_args(member)):
                return True
            continue
        found = shape(member)
        if found and _looks_inside(found, cls):
            return True
    return False


def _looks_inside(found: Shape, cls: type) -> bool:
    if is_typed_dict(found.origin):
        return issubclass(cls, dict)
    if is_protocol(found.origin):
        return found.origin not in cls.__mro__
    return found.arguments is not None and issubclass(cls, found.origin) and checks_elements(found.origin)


def _beats(value: object, first: Hint, second: Hint) -> bool:
    one, other = _fitting_member(value, first), _fitting_member(value, second)
    if covers(one, other) and covers(other, one):
        return narrower(first, second)
    if covers(other, one) or covers(one, other):
        return narrower(one, other)
    return _place(value, one) < _place(value, other)


def _fitting_member(value: object, hint: Hint) -> Hint:
    fitting = [member for member in members(hint) if matches(value, member)]
    best = fitting[0]
    for member in fitting[1:]:
        if narrower(member, best):
            best = member
    return best


def _place(value: object, hint: Hint) -> int:
    found = shape(hint)
    ancestors = type(value).__mro__
    return ancestors.index(found.origin) if found and found.origin in ancestors else len(ancestors)


def _indistinct(one: Hint, other: Hint) -> bool:
    if covers(one, other) or covers(other, one):
        return covers(one, other) and covers(other, one)
    if is_literal(one) and is_literal(other):
        return any(matches(value, other) for value in typing.get_args(one))
    left, right = shape(one), shape(other)
    return (
        left is not None
        and right is not None
        and left.origin is right.origin
        and not (checks_elements(left.origin) or is_typed_dict(left.origin))
    )


def _overlap(taken: Hint, sent: Hint) -> bool:
    return _covers(taken, sent, _Comparison(loose=True)) or _covers(sent, taken, _Comparison(loose=False))


def _covers(wide: Hint, narrow: Hint, how: _Comparison) -> bool:
    if may_contain_itself(wide) or may_contain_itself(narrow):
        if (wide, narrow) in how.within:
            return True
        how = how._replace(within=(*how.within, (wide, narrow)))
    parts = members(wide)
    return all(any(_covers_member(part, member, how) for part in parts) for member in members(narrow))


def _covers_member(wide: Hint, narrow: Hint, how: _Comparison) -> bool:
    if is_anything(wide):
        return True
    if is_anything(narrow):
        return False
    if is_literal(narrow):
        return all(matches(value, wide, exact=not how.loose) for value in typing.get_args(narrow))
    if is_literal(wide):
        return False
    upper, lower = shape(wide), shape(narrow)
    if upper is None or lower is None:
        return wide == narrow
    if is_typed_dict(lower.origin):
        return _covers_typed_dict(wide, narrow, how)
    return not is_typed_dict(upper.origin) and _covers_class(upper, lower, how)


def _covers_typed_dict(wide: Hint, narrow: Hint, how: _Comparison) -> bool:
    upper, fields = cast("Shape", shape(wide)), fields_of(narrow)
    if is_typed_dict(upper.origin):
        return all(
            key in fields and _covers(hint, fields[key][0], how) and fields[key][1] >= required
            for key, (hint, required) in fields_of(wide).items()
        )
    if not issubclass(dict, upper.origin):
        return False
    keys, *values = upper.arguments or (object,)
    return _covers(keys, str, how) and all(_covers(value, hint, how) for value in values for hint, _ in fields.values())


def _covers_class(upper: Shape, lower: Shape, how: _Comparison) -> bool:
    if not _is_subclass(lower.origin, upper.origin, how):
        return False
    if upper.arguments is None:
        return True
    arguments = _arguments_at(lower, upper.origin)
    if arguments is None:
        return all(is_anything(argument) or argument is Ellipsis for argument in upper.arguments)
    if issubclass(lower.origin, tuple):
        return _covers_tuple(upper.origin, upper.arguments, arguments, how)
    return _covers_each(upper.arguments, arguments, how)


def _covers_tuple(upper: type, wanted: tuple[Hint, ...], arguments: tuple[Hint, ...], how: _Comparison) -> bool:
    elements = arguments[:1] if _is_open_ended(arguments) else arguments
    if upper is not tuple or _is_open_ended(wanted):
        return all(_covers(wanted[0], element, how) for element in elements)
    return elements is arguments and len(elements) == len(wanted) and _covers_each(wanted, elements, how)


def _is_open_ended(arguments: tuple[Hint, ...]) -> bool:
    return len(arguments) == 2 and arguments[1] is Ellipsis


def _covers_each(wanted: Sequence[Hint], given: Sequence[Hint], how: _Comparison) -> bool:
    # Of different length where a mapping is taken for a collection of its keys.
    return all(_covers(one, other, how) for one, other in zip(wanted, given, strict=False))


def _arguments_at(lower: Shape, origin: type) -> tuple[Hint, ...] | None:
    """Return the parameters with which a class stands for its base `origin`; `None` where they are open."""
    if lower.origin in _ELEMENTS:
        return (_ELEMENTS[lower.origin],)
    if lower.origin is origin:
        return lower.arguments
    parameters = cast("tuple[Hint, ...]", getattr(lower.origin, "__parameters__", ()))
    given = dict(zip(parameters, lower.arguments or (), strict=False))
    for base in cast("tuple[Hint, ...]", vars(lower.origin).get("__orig_bases__", lower.origin.__bases__)):
        found = shape(base)
        if not found or found.origin is typing.Generic or not issubclass(found.origin, origin):
            continue
        if found.arguments:
            found = found._replace(arguments=tuple(substituted(argument, given) for argument in found.arguments))
        if found.arguments or lower.arguments is None:
            return _arguments_at(found, origin)
    return lower.arguments


def type_arguments(cls: type, base: type) -> Mapping[Hint, Hint]:
    """Return what the type variables of a generic base class stand for in a class below it, as far as that is said."""
    parameters = cast("tuple[Hint, ...]", getattr(base, "__parameters__", ()))
    return dict(zip(parameters, _arguments_at(Shape(cls, None), base) or (), strict=False)) if parameters else {}


def _is_subclass(lower: type, upper: type, how: _Comparison) -> bool:
    if how.loose and upper in PROMOTIONS:
        return issubclass(lower, (upper, *PROMOTIONS[upper]))
    if not how.loose and lower is bool and upper is int:
        return False
    try:
        return issubclass(lower, upper)
    except TypeError:  # a protocol with attributes, which only instances are known to have
        return _seems_to_have(lower, upper)


def _seems_to_have(cls: type, protocol: type) -> bool:
    wanted: set[str] = set()
    for base in protocol.__mro__:
        if is_protocol(base) and base is not typing.Protocol:
            wanted.update(raw_annotations(base))
            wanted.update(name for name in vars(base) if not name.startswith("_"))
    declared = {name for base in cls.__mro__ for name in raw_annotations(base)}
    return all(name in declared or hasattr(cls, name) for name in wanted)
