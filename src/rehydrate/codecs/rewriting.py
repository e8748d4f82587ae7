"""Stored values taken apart and put together without their classes: for migrations, which know only names of types.

Exact both ways: what is not changed gets the same bytes. Objects are `PlainObject`s; everything else is what it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.graph.migration import PlainObject
from rehydrate.model.sealed import Items, Sealed

from . import format as codes
from .bounds import check_bounds
from .format import MAX_DEPTH, OBJECT, TYPE_KEY, array_header
from .layouts import Layout, Refusal, State
from .reader import DAMAGE, NESTING_READERS, checked_array, checked_map
from .refusal import refusal_of
from .registry import BUILT_IN
from .scalars import READERS
from .writer import TOO_DEEP, Ext, encode, make_table


def open_plain(sealed: Sealed) -> object:
    """Return a value without any user type. Raises `CheckpointCorruptError`."""
    check_bounds(sealed.data)
    try:
        return _decode(sealed.data)
    except DAMAGE as error:
        problem = str(error) or type(error).__name__
        raise CheckpointCorruptError(f"a stored value of type {sealed.type!r:.200}", problem) from error


def seal_plain(value: object) -> Sealed:
    """Return a value of `open_plain`, changed or not, as its type's name and bytes. Raises `NotStorableError`."""
    try:
        kind = type(value)
        write = _table.get(kind)
        data = encode(value if write is None else write(value, 0))
    except (KeyError, TypeError, Refusal, RecursionError) as error:
        raise refusal_of(value, {PlainObject: _LAYOUT}) from error
    return Sealed(value.type if isinstance(value, PlainObject) else BUILT_IN[kind], data)


def open_plain_items(parts: list[Items]) -> list[object]:
    """Return the elements of a list in state."""
    data = array_header(sum(part.count for part in parts)) + b"".join(part.data for part in parts)
    return cast("list[object]", open_plain(Sealed("list", data)))


def seal_plain_items(values: list[object]) -> Items:
    """Return elements as they stand in a list in state. Raises `NotStorableError`."""
    return items_of(seal_plain(values))


def items_of(sealed: Sealed) -> Items:
    """Return the elements of a sealed list as they stand in a list in state. Raises `ValueError` for another value."""
    if sealed.type != "list":
        raise ValueError(f"it is a {sealed.type}")
    first = sealed.data[0]
    wide = {0xDC: 2, 0xDD: 4}.get(first, 0)
    count = int.from_bytes(sealed.data[1 : 1 + wide], "big") if wide else first & 0x0F
    return Items(sealed.data[1 + wide :], count)


def list_of(parts: list[Items]) -> Sealed:
    """Return a list in state as one sealed list."""
    return Sealed("list", array_header(sum(part.count for part in parts)) + b"".join(part.data for part in parts))


def may_hold(data: bytes, type_name: str) -> bool:
    """Tell whether bytes may hold an object of a type; `False` is certain, and cheap."""
    return type_name.encode() in data


def with_objects(value: object, change: Callable[[PlainObject], PlainObject]) -> object:
    """Return a value in which every object, inner ones first, is what `change` makes of it."""
    if isinstance(value, PlainObject):
        fields = {name: with_objects(item, change) for name, item in value.fields.items()}
        return change(PlainObject(value.type, fields, value.version))
    kind = type(value)
    if kind is dict:
        pairs = cast("dict[object, object]", value)
        return {with_objects(key, change): with_objects(item, change) for key, item in pairs.items()}
    if kind in {list, tuple, set, frozenset}:
        make = cast("Callable[[list[object]], object]", kind)
        return make([with_objects(item, change) for item in cast("list[object]", value)])
    if isinstance(value, deque):
        items = cast("deque[object]", value)
        return deque([with_objects(item, change) for item in items], items.maxlen)
    return value


def _read(code: int, data: memoryview) -> object:
    if code == OBJECT:
        fields = cast("State", _decode(checked_map(data)))
        given = fields.pop(TYPE_KEY, None)
        name, version = cast("list[object]", given) if isinstance(given, list) else (given, 1)
        if type(name) is not str or type(version) is not int:
            raise ValueError("an object has no type")
        return PlainObject(name, fields, version)
    build = NESTING_READERS.get(code)
    if build is not None:
        return build(cast("list[object]", _decode(checked_array(data))))
    return READERS[code](bytes(data))


def _take(value: PlainObject) -> State:
    fields = cast("object", value.fields)
    keys = cast("dict[object, object]", fields) if isinstance(fields, dict) else {0: None}
    if not all(isinstance(key, str) and key for key in keys):
        raise Refusal("the fields of an object are a dict with names as keys")
    return cast("State", fields)


def _write(value: PlainObject, depth: int) -> object:
    if depth + 2 > MAX_DEPTH:
        raise Refusal(TOO_DEEP)
    name: object = value.type if value.version == 1 else [value.type, value.version]
    fields = {key: _part(item, depth + 2) for key, item in _take(value).items()}
    return Ext(codes.OBJECT, encode({TYPE_KEY: name, **fields}))


def _part(value: object, depth: int) -> object:
    write = _table.get(type(value))
    return value if write is None and type(value) in _LEAVES else _table[type(value)](value, depth)


_LEAVES: Final = frozenset({type(None), bool, float, bytes})
_LAYOUT: Final = Layout((), _take, lambda _fields: None)
_table = make_table((), careful=True)
_table[PlainObject] = _write
_decode: Final = msgspec.msgpack.Decoder(ext_hook=_read).decode
