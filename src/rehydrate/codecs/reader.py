"""The reader: builds values from MessagePack bytes whose depth and size have been checked.

Knows types only by the registry it was made with. Whatever does not fit is an error; nothing is guessed.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

import msgspec

from rehydrate.errors import CheckpointFormatError
from rehydrate.errors.codec import TypeChangedError, UnknownTypeError

from . import format as codes
from .format import OBJECT, TYPE_KEY
from .layouts import FieldsDiffer, State
from .registry import Entry, TypeRegistry
from .scalars import READERS
from .writer import CROWDED, is_crowded

#: What bytes that nobody wrote can raise on their way through the readers.
DAMAGE: Final = (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, LookupError, struct.error)

Decode: TypeAlias = Callable[[bytes | memoryview], object]


def make_decode(registry: TypeRegistry) -> Decode:
    """Return the function that decodes values of the registry's types; it raises one of `DAMAGE` for other bytes."""
    entries = {entry.name: entry for entry in registry}
    builders = {name: entry.layout.build for name, entry in entries.items() if entry.version == 1}

    def read(code: int, data: memoryview) -> object:
        if code != OBJECT:
            build = NESTING_READERS.get(code)
            return READERS[code](bytes(data)) if build is None else build(decode_items(checked_array(data)))
        # As in `checked_map`, without a call for every object.
        fields = decode_fields(data if data[0] & 0xF0 == 0x80 else checked_map(data))
        name = fields.pop(TYPE_KEY, None)
        if type(name) is not str or name not in builders:
            return _versioned(name, fields, entries)
        try:
            return builders[name](fields)
        except FieldsDiffer as error:
            raise TypeChangedError(name, str(error)) from error

    # One function under three types; a cast would be one more call for every object.
    decoder = msgspec.msgpack.Decoder(ext_hook=read)
    decode_fields: Callable[[memoryview], State] = decoder.decode
    decode_items: Callable[[memoryview], list[object]] = decoder.decode
    return decoder.decode


def _versioned(given: object, fields: State, entries: Mapping[str, Entry]) -> object:
    parts = cast("list[object]", given) if isinstance(given, list) else [given, 1]
    name, version = parts if len(parts) == 2 else (None, None)
    if type(name) is not str or type(version) is not int or version < 1:
        raise ValueError("an object has no type")
    entry = entries.get(name)
    if entry is None:
        raise UnknownTypeError(name)
    if version > entry.version:
        raise CheckpointFormatError(f"a stored value of type {name!r}", version, entry.version)
    if version < entry.version:
        fields = _brought_up(entry, version, fields)
    try:
        return entry.layout.build(fields)
    except FieldsDiffer as error:
        raise TypeChangedError(name, str(error)) from error


def _brought_up(entry: Entry, version: int, fields: State) -> State:
    if entry.upcast is None:
        raise TypeChangedError(entry.name, f"it has version {version}, and version {entry.version} has no upcast=")
    try:
        brought = cast("object", entry.upcast(version, fields))
    except Exception as error:  # `upcast` is user code
        problem = f"upcast raised {type(error).__name__} for version {version}: {error}"
        raise TypeChangedError(entry.name, problem) from error
    if not isinstance(brought, dict):
        raise TypeChangedError(entry.name, f"upcast returned {type(brought).__name__} instead of a dict of fields")
    return {**cast("State", brought)}


def checked_map(payload: memoryview) -> memoryview:
    """Return a payload that begins a map; an extension right inside another would take stack without being a level."""
    if payload[0] & 0xF0 != 0x80 and payload[0] not in {0xDE, 0xDF}:
        raise ValueError("an object has no fields")
    return payload


def checked_array(payload: memoryview) -> memoryview:
    """Return a payload that begins an array."""
    if payload[0] & 0xF0 != 0x90 and payload[0] not in {0xDC, 0xDD}:
        raise ValueError("a container has no elements")
    return payload


def _keys(items: list[object]) -> list[object]:
    if is_crowded(items):
        raise ValueError(CROWDED)
    return items


def _pairs(parts: list[object]) -> dict[object, object]:
    return dict(zip(_keys(parts[::2]), parts[1::2], strict=True))


def _deque(items: list[object]) -> deque[object]:
    return deque(items[1:], cast("int | None", items[0]))


#: How containers are built from what their payload holds.
NESTING_READERS: Final[dict[int, Callable[[list[object]], object]]] = {
    codes.TUPLE: tuple,
    codes.SET: lambda items: set(_keys(items)),
    codes.FROZENSET: lambda items: frozenset(_keys(items)),
    codes.DEQUE: _deque,
    codes.DICT: _pairs,
}
