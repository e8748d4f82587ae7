"""Records that were never there, made from nothing but the types of their fields; they decode, and mean nothing."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Literal, Union, get_args, get_origin, get_type_hints

import msgspec

#: Values that are mostly small, so that numbers and indexes often fit.
NUMBERS = (0, 0, 1, 1, 1, 2, 3, -1, 1 << 31, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, 1.0, -1.0, 1e9, 1e300, float("inf"), float("nan"))
VALUES = (b"\xa1a", b"\x01", b"\x90", b"\xc2", b"", b"\xc1", b"\x92\xa1a\xa1b")


def invented(chance: random.Random, text: Callable[[], str], kind: object, depth: int = 6) -> object:
    """Return what decodes to this type. `text` gives texts."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return invented(chance, text, chance.choice(arguments), depth - 1)
    if origin is Literal:
        return chance.choice(arguments)
    if origin is tuple:
        if depth <= 0:
            return []
        return [invented(chance, text, arguments[0], depth - 1) for _ in range(chance.choice((0, 1, 1, 2, 4)))]
    if origin is dict:
        return {text(): invented(chance, text, arguments[1], depth - 1) for _ in range(chance.randrange(3))}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(chance, text, kind, depth)
    return _plain(chance, text, kind)


def _struct(chance: random.Random, text: Callable[[], str], kind: type[msgspec.Struct], depth: int) -> object:
    hints = get_type_hints(kind)
    config = kind.__struct_config__
    values = [invented(chance, text, hints[field.name], depth - 1) for field in msgspec.structs.fields(kind)]
    return values if config.tag is None else [config.tag, *values]


def _plain(chance: random.Random, text: Callable[[], str], kind: object) -> object:
    if kind is str:
        return text()
    if kind is bool:
        return chance.random() < 0.5
    if kind is int:
        return chance.choice(NUMBERS)
    if kind is float:
        return chance.choice(FLOATS)
    if kind is bytes:
        return chance.choice(VALUES)
    if kind in {None, type(None)}:
        return None
    raise TypeError(f"no way to invent a {kind!r}")
