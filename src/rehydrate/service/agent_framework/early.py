"""Fields as the early releases kept them, brought to the types that they have here.

Those releases wrote JSON: tuples and sets became lists, dates and numbers of their own kind texts, dataclasses in
questions dicts. What fits a field's type stays as it is; what cannot be read back is left for the check of types.
"""

from __future__ import annotations

import datetime as dt
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import PurePath
from typing import Final, cast
from uuid import UUID

from rehydrate.graph.hints import matches, members

from .inert import Refused

#: Makes a named tuple without any code of its class.
new_tuple: Final = cast("Callable[[type, list[object]], object]", vars(tuple)["__new__"])
_SPAN: Final = re.compile(r"(?:(-?\d+) days?, )?(\d+):(\d\d):(\d\d)(?:\.(\d{6}))?")


def fitted(kind: type, given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of an object with values of their declared types. Raises `Refused` where one cannot be had."""
    hints = _hints(kind)
    return {key: _fitted(value, hints.get(key, object), f"{kind.__name__}.{key}") for key, value in given.items()}


def _hints(kind: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError):  # types that only a type checker sees; the check at the sealing remains
        return {}


def _fitted(value: object, hint: object, where: str) -> object:
    if matches(value, hint, exact=True):
        return value
    for arm in members(hint):
        found = _as(value, arm, where)
        if found is not None and matches(found, arm, exact=True):
            return found
    raise Refused(f"{where} was kept as {value!r:.80}, which is no {hint}")


def _as(value: object, hint: object, where: str) -> object:
    """Return a value of a type from what JSON made of it, or `None`."""
    origin = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if isinstance(value, list) and isinstance(origin, type):
        return _collected(cast("list[object]", value), origin, arguments, where)
    if isinstance(value, dict) and isinstance(origin, type):
        return _mapped(cast("dict[str, object]", value), origin, arguments, where)
    if isinstance(value, str) and isinstance(origin, type):
        return _read(value, origin)
    return float(value) if isinstance(value, int) and origin is float else None


def _collected(items: list[object], kind: type, arguments: tuple[object, ...], where: str) -> object:
    if tuple in kind.__mro__ and hasattr(kind, "_fields"):
        return _named_tuple(items, kind)
    if kind is tuple and arguments[1:] != (...,):
        if len(items) != len(arguments):
            return None
        return tuple(_fitted(item, hint, where) for item, hint in zip(items, arguments, strict=True))
    make = _COLLECTED.get(kind)
    if make is None:
        return None
    return make([_fitted(item, arguments[0], where) for item in items] if arguments else items)


def _named_tuple(items: list[object], kind: type) -> object:
    names = cast("tuple[str, ...]", getattr(kind, "_fields", ()))
    if len(names) != len(items):
        return None
    made = fitted(kind, dict(zip(names, items, strict=True)))
    return new_tuple(kind, [made[name] for name in names])


def _mapped(value: dict[str, object], kind: type, arguments: tuple[object, ...], where: str) -> object:
    if kind is dict and len(arguments) == 2:
        return {_fitted(k, arguments[0], where): _fitted(item, arguments[1], where) for k, item in value.items()}
    if not is_dataclass(kind) or {item.name for item in fields(kind)} != value.keys():
        return None
    made = cast("object", object.__new__(kind))
    for key, item in fitted(kind, value).items():
        object.__setattr__(made, key, item)
    return made


def _read(text: str, kind: type[object]) -> object:
    if issubclass(kind, Enum):
        return next((member for member in kind if text in {str(member), f"{kind.__name__}.{member.name}"}), None)
    if issubclass(kind, PurePath):
        return kind(text)
    if kind is dt.timedelta:
        return _span(text)
    make = _FROM_TEXT.get(kind)
    if make is None:
        return None
    try:
        return make(text)
    except (ValueError, InvalidOperation):
        return None


def _span(text: str) -> dt.timedelta | None:
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds, micro = (int(part or 0) for part in found.groups())
    return dt.timedelta(days, seconds, micro, minutes=minutes, hours=hours)


_COLLECTED: Final[Mapping[type, Callable[[list[object]], object]]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}
_FROM_TEXT: Final[Mapping[type, Callable[[str], object]]] = {
    dt.datetime: dt.datetime.fromisoformat,
    dt.date: dt.date.fromisoformat,
    dt.time: dt.time.fromisoformat,
    Decimal: Decimal,
    UUID: UUID,
    int: int,
}
