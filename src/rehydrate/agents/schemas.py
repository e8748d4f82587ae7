"""Types as JSON schemas, and JSON text as values of types: what a model is shown, and what it gave.

Dataclasses, msgspec structs, attrs, TypedDicts, NamedTuples and pydantic models, alone or in one another. Nothing here
knows agents or tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from rehydrate.codecs.bounds import is_deep_json
from rehydrate.graph.hints import Hint
from rehydrate.graph.step import AnyValue

Schema: TypeAlias = dict[str, object]
_REFS: Final = "#/$defs/"
#: Levels that can be stored whatever the values are and stand in. A reply is recorded before it is read, so more than
#: these are refused here, where a model is told of it; later they would fail the run at every resume.
_DEEPEST: Final = 100


@runtime_checkable
class _Model(Protocol):
    """A class of pydantic, as far as it is used here."""

    @classmethod
    def model_json_schema(cls) -> Schema: ...

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> object: ...


@runtime_checkable
class _Dumped(Protocol):
    """A value of such a class."""

    def model_dump(self, *, mode: str) -> object: ...


class SchemaError(Exception):
    """A type has no JSON schema, or text does not fit one; never leaves this package."""


def schema_of(hint: Hint) -> Schema:
    """Return a type's JSON schema, all in one. Raises `SchemaError`."""
    try:
        (found,), parts = msgspec.json.schema_components(
            [hint], schema_hook=_foreign_schema, ref_template=_REFS + "{name}"
        )
    except (TypeError, msgspec.ValidationError) as error:
        raise SchemaError(str(error)) from error
    ref = found.get("$ref", "")
    root = cast("Schema", parts.pop(ref.removeprefix(_REFS)) if ref else found)
    defined: dict[str, object] = dict(parts)
    for inner in [*_hoisted(root), *(hoisted for part in parts.values() for hoisted in _hoisted(part))]:
        for name, part in inner.items():
            if defined.setdefault(name, part) != part:
                raise SchemaError(f"two types are called {name!r}")
    return {**root, "$defs": defined} if defined else root


def parsed(text: str, hint: Hint) -> AnyValue:
    """Return JSON text as a value of a type. Raises `SchemaError` with what does not fit, in words for a model."""
    data = text.encode("utf-8", "surrogatepass")
    _check_depth(data)
    try:
        value = msgspec.json.decode(data, type=cast("type[AnyValue]", hint), dec_hook=_foreign_value)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SchemaError(str(error)) from error
    except Exception as error:  # user code: the checks of its types may raise anything
        raise SchemaError(f"{type(error).__name__}: {error}") from error
    _check_depth(data, safe=_DEEPEST)  # only now: of what is no JSON a parser says more
    return value


def _check_depth(data: bytes, **options: int) -> None:
    if is_deep_json(data, _DEEPEST, **options):
        raise SchemaError("it is nested too deep")


def as_text(value: object) -> str:
    """Return a value as text for a model: text as it is, all else as JSON. Raises `SchemaError`."""
    if isinstance(value, str):
        return value
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        # Not by msgspec, which writes `null` for a number that is none, and no half of a character.
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:  # both raise these for what JSON cannot say
        raise SchemaError(str(error)) from error


def _foreign_schema(kind: type) -> Schema:
    if isinstance(kind, _Model):
        return kind.model_json_schema()
    raise TypeError(f"values of type {kind.__name__!r} have no JSON schema")


def _foreign_value(kind: type, value: object) -> object:
    if isinstance(kind, _Model):
        # As JSON once more: a strict model reads a date, an enum or a tuple from JSON, and not from what JSON gave for
        # it. What it raises is a `ValueError`, which is told with its place.
        return kind.model_validate_json(msgspec.json.encode(value))
    raise TypeError(f"values of type {kind.__name__!r} cannot be read from JSON")


def _plain(value: object) -> object:
    if isinstance(value, _Dumped):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def _hoisted(schema: object) -> Iterator[Mapping[str, object]]:
    """Take the definitions out of the parts of a schema that bring their own, as their references mean the root's."""
    if isinstance(schema, list):
        for part in cast("list[object]", schema):
            yield from _hoisted(part)
    if not isinstance(schema, dict):
        return
    holder = cast("Schema", schema)
    own = holder.pop("$defs", None)
    for part in list(holder.values()):
        yield from _hoisted(part)
    if isinstance(own, dict):
        yield cast("Schema", own)
