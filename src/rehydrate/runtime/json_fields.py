"""The fields that JSON has for a class, and how JSON of a type is shown to a person who has to write it.

It reads nothing; `json_input.py` does.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from types import NoneType
from typing import Final, NamedTuple, Protocol, cast
from uuid import UUID

import msgspec

from rehydrate.codecs import type_name
from rehydrate.codecs.classes import declares_fields, is_named_tuple
from rehydrate.codecs.models import is_pydantic, is_struct
from rehydrate.codecs.reach import field_hints
from rehydrate.graph.hints import (
    Hint,
    describe,
    fields_of,
    is_anything,
    is_literal,
    is_typed_dict,
    members,
    plain,
    shape,
    substituted,
)

#: The name under which an object says its own type, as plain values have it.
TYPE: Final = "$type"
#: A class inside of so many others is only named.
_LEVELS: Final = 4
#: What JSON has as a text, by example.
_TEXTS: Final[tuple[tuple[type, str], ...]] = (
    (datetime, "2026-01-31T12:00:00+00:00"),
    (date, "2026-01-31"),
    (time, "12:00:00"),
    (timedelta, "PT90S"),
    (UUID, "00000000-0000-0000-0000-000000000000"),
    (Decimal, "1.50"),
    (bytes, "base64"),
    (bytearray, "base64"),
    (PurePath, "a/path"),
)
_SCALARS: Final = frozenset({str, int, float})


class JsonField(NamedTuple):
    """A field: its name in JSON, the argument that the class is made with, its type, and whether it has to be there."""

    name: str
    argument: str
    hint: Hint
    required: bool


class _Attribute(Protocol):
    """A field of attrs."""

    name: str
    alias: str
    init: bool
    default: object


def json_fields(hint: Hint) -> tuple[JsonField, ...] | None:
    """Return the fields of a class, parametrised or not; `None` for what is no object with fields in JSON."""
    hint = plain(hint)
    cls = class_of(hint)
    if cls is None:
        return None
    if is_typed_dict(cls):
        return tuple(JsonField(name, name, _unmarked(of), required) for name, (of, required) in fields_of(hint).items())
    if not declares_fields(cls) or is_below(cls, enum.Enum):
        return None
    parameters = cast("tuple[Hint, ...]", getattr(cls, "__parameters__", ()))
    given = dict(zip(parameters, typing.get_args(hint), strict=False))
    hints = {name: substituted(of, given) for name, of in field_hints(cls, {cls.__name__: cls}).items()}
    return tuple(_declared(cls, hints))


def class_of(hint: Hint) -> type | None:
    """Return the class of a hint, parametrised or not."""
    cls = cast("object", typing.get_origin(hint)) or hint
    return cls if isinstance(cls, type) else None


def _unmarked(hint: Hint) -> Hint:
    """Return the hint of a TypedDict's key without `NotRequired` and its like."""
    while getattr(typing.get_origin(hint), "_name", None) in {"NotRequired", "ReadOnly", "Required"}:
        hint = typing.get_args(hint)[0]
    return hint


def _declared(cls: type, hints: Mapping[str, Hint]) -> Iterable[JsonField]:
    if is_pydantic(cls):
        return _of_model(cls, hints)
    if is_struct(cls):
        struct = cast("type[msgspec.Struct]", cls)
        return (
            JsonField(each.encode_name, each.name, hints.get(each.name, object), each.required)
            for each in msgspec.structs.fields(struct)
        )
    if is_named_tuple(cls):
        defaults = cast("Mapping[str, object]", getattr(cls, "_field_defaults"))  # noqa: B009  (no type has it)
        names = cast("tuple[str, ...]", getattr(cls, "_fields"))  # noqa: B009  (no type has it)
        return (JsonField(name, name, hints.get(name, object), name not in defaults) for name in names)
    attributes = cast("tuple[_Attribute, ...] | None", getattr(cls, "__attrs_attrs__", None))
    if attributes is not None:
        return (
            JsonField(each.name, each.alias, hints.get(each.name, object), type(each.default).__name__ == "_Nothing")
            for each in attributes
            if each.init
        )
    return (
        JsonField(each.name, each.name, hints.get(each.name, object), _is_required(each))
        for each in cast("tuple[dataclasses.Field[object], ...]", dataclasses.fields(cls))
        if each.init
    )


def _is_required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


class _ModelField(Protocol):
    """A field of pydantic."""

    validation_alias: object

    def is_required(self) -> bool:
        """Tell whether it has no default."""
        ...


def _of_model(cls: type, hints: Mapping[str, Hint]) -> Iterable[JsonField]:
    fields = cast("Mapping[str, _ModelField]", getattr(cls, "model_fields"))  # noqa: B009  (no type has it)
    return (
        JsonField(_alias(field) or name, name, hints.get(name, object), field.is_required())
        for name, field in fields.items()
    )


def _alias(field: _ModelField) -> str | None:
    return field.validation_alias if isinstance(field.validation_alias, str) else None


def json_shape(hint: Hint) -> str:
    """Return what JSON of a type looks like, such as `{"id": str, "amount": int}`; `?` is behind what may be absent."""
    return _shape(hint, 0)


def _shape(hint: Hint, level: int) -> str:
    if level > _LEVELS:
        return describe(hint)
    return " | ".join(dict.fromkeys(_of_one(member, level) for member in members(hint))) or "nothing"


def _of_one(hint: Hint, level: int) -> str:
    if is_anything(hint):
        return "any JSON"
    if hint is NoneType:
        return "null"
    if is_literal(hint):
        return " | ".join(map(_written, typing.get_args(hint)))
    fields = json_fields(hint)
    if fields is not None and not is_root_model(hint):
        parts = (f'"{each.name}"{"" if each.required else "?"}: {_shape(each.hint, level + 1)}' for each in fields)
        return f"{{{', '.join(parts)}}}" if level < _LEVELS else describe(hint)
    if hint is bool:
        return "true | false"
    found = shape(hint)
    if found is None or found.origin in _SCALARS:
        return describe(hint)
    if is_below(found.origin, enum.Enum):
        return " | ".join(map(_written, cast("type[enum.Enum]", found.origin)))
    text = next((text for kind, text in _TEXTS if is_below(found.origin, kind)), None)
    if text is not None:
        return f'"{text}"'
    if not is_below(found.origin, Collection) or is_below(found.origin, str):
        return describe(hint)
    return _of_container(found.origin, found.arguments or (), level)


def is_below(cls: type, base: type) -> bool:
    """Do what `issubclass` does, without what type checkers make of a class by it."""
    return issubclass(cls, base)


def is_root_model(hint: Hint) -> bool:
    """Tell whether a pydantic model is no object in JSON but what its root is."""
    return bool(getattr(hint, "__pydantic_root_model__", False))


def _of_container(origin: type, arguments: tuple[Hint, ...], level: int) -> str:
    if is_below(origin, Mapping):
        key, value = arguments if len(arguments) == 2 else (str, object)
        name = "str" if is_anything(key) else _shape(key, level + 1)
        return f"{{{name}: {_shape(value, level + 1)}, ...}}"
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"[{', '.join(_shape(each, level + 1) for each in arguments)}]"
    return f"[{_shape(arguments[0] if arguments else object, level + 1)}, ...]"


def _written(value: object) -> str:
    """Return how JSON has a value that is listed: a member of an enum by what it stands for."""
    value = value.value if isinstance(value, enum.Enum) else value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return repr(value)


def names_of(hint: Hint) -> frozenset[str]:
    """Return what `$type` may say for a type: its name in records, and that of its class."""
    cls = class_of(plain(hint))
    return frozenset() if cls is None else frozenset({type_name(cls), describe(cls)})
