"""The writer: turns values into what msgspec encodes exactly, in one walk that also proves plain values plain.

Plain parts are handed on as they are; everything else becomes an extension. It refuses by an exception without a place;
`refusal.py` finds the place afterwards.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from itertools import chain
from types import NoneType
from typing import Final, TypeAlias, cast

import msgspec

from . import format as codes
from .format import MAX_CROWD, MAX_DEPTH, OBJECT, TYPE_KEY, array_header, map_header
from .layouts import Refusal
from .registry import LEAVES, Entry
from .scalars import SCALARS, to_extension, write_int, write_text

#: Given a value and the number of containers and extensions around it.
Write: TypeAlias = Callable[..., object]
Table: TypeAlias = dict[type, Write]

TOO_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels (lists and dicts count one, all other containers two)"
CROWDED: Final = f"more than {MAX_CROWD} of its keys have the same hash value"

Ext: Final = msgspec.msgpack.Ext
encode: Final = msgspec.msgpack.Encoder().encode
#: Keys that MessagePack maps hold exactly.
_KEYS: Final = frozenset({NoneType, bool, int, float, str, bytes})
_DICTS: Final[frozenset[type]] = frozenset({dict})


def make_table(entries: Iterable[Entry], *, careful: bool) -> Table:
    """Return the functions that write each type that is no leaf.

    A careful table also looks at each int and text, for ints beyond 64 bits and lone surrogates: slow, and only needed
    for values on which msgspec has refused one.
    """
    leaves = LEAVES - {int, str} if careful else LEAVES
    table: Table = {scalar.type: to_extension(scalar) for scalar in SCALARS}
    table[list] = _list_writer(leaves, table, careful)
    table[dict] = _dict_writer(leaves, table, careful)
    table[tuple] = _tuple_writer(leaves, table)
    table[set] = _set_writer(leaves, table, codes.SET)
    table[frozenset] = _set_writer(leaves, table, codes.FROZENSET)
    table[deque] = _deque_writer(leaves, table)
    for entry in entries:
        table[entry.type] = _object_writer(leaves, table, entry)
    if careful:
        table[int], table[str] = write_int, write_text
    return table


def is_crowded(keys: Collection[object]) -> bool:
    """Tell whether so many keys share a hash value that a set or dict of them would take quadratic time."""
    return len(keys) > MAX_CROWD and max(Counter(map(hash, keys)).values()) > MAX_CROWD


def is_plain_key(key: object) -> bool:
    """Tell whether a key stands in a MessagePack map exactly."""
    if type(key) is int:
        return not isinstance(write_int(key, 0), Ext)
    if type(key) is str:
        return not isinstance(write_text(key, 0), Ext)
    return type(key) in _KEYS


def _list_writer(leaves: frozenset[type], table: Table, careful: bool) -> Write:
    def plain_rows(rows: list[object]) -> bool:
        """Tell whether dicts are plain, without a call for each of them."""
        dicts = cast("list[dict[object, object]]", rows)
        return (
            not careful
            and _KEYS.issuperset(map(type, chain.from_iterable(dicts)))
            and leaves.issuperset(map(type, chain.from_iterable(map(dict[object, object].values, dicts))))
        )

    def write(value: list[object], depth: int) -> object:
        if depth >= MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        kinds = {*map(type, value)}
        if kinds <= leaves or (kinds <= _DICTS and depth + 1 < MAX_DEPTH and plain_rows(value)):
            return value
        inner = depth + 1
        return [item if (kind := type(item)) in leaves else table[kind](item, inner) for item in value]

    return write


def _dict_writer(leaves: frozenset[type], table: Table, careful: bool) -> Write:
    def write(value: dict[object, object], depth: int) -> object:
        plain = all(map(is_plain_key, value)) if careful else _KEYS.issuperset(map(type, value))
        if depth + 1 + (not plain) > MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        if not plain:
            return write_pairs(value, depth + 2)
        if leaves.issuperset(map(type, value.values())):
            return value
        inner = depth + 1
        return {
            key: item if (kind := type(item)) in leaves else table[kind](item, inner) for key, item in value.items()
        }

    def write_pairs(value: dict[object, object], inner: int) -> object:
        if is_crowded(value):
            raise Refusal(CROWDED)
        flat = (part for pair in value.items() for part in pair)
        parts = [part if (kind := type(part)) in leaves else table[kind](part, inner) for part in flat]
        return Ext(codes.DICT, encode(parts))

    return write


def _tuple_writer(leaves: frozenset[type], table: Table) -> Write:
    def write(value: tuple[object, ...], depth: int) -> object:
        inner = depth + 2
        if inner > MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        if leaves.issuperset(map(type, value)):
            return Ext(codes.TUPLE, encode(value))
        parts = [item if (kind := type(item)) in leaves else table[kind](item, inner) for item in value]
        return Ext(codes.TUPLE, encode(parts))

    return write


def _set_writer(leaves: frozenset[type], table: Table, code: int) -> Write:
    def write(value: set[object] | frozenset[object], depth: int) -> object:
        inner = depth + 2
        if inner > MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        if is_crowded(value):
            raise Refusal(CROWDED)
        parts = [encode(item if (kind := type(item)) in leaves else table[kind](item, inner)) for item in value]
        parts.sort()  # by their bytes, so that equal sets give equal bytes
        return Ext(code, array_header(len(parts)) + b"".join(parts))

    return write


def _deque_writer(leaves: frozenset[type], table: Table) -> Write:
    def write(value: deque[object], depth: int) -> object:
        inner = depth + 2
        if inner > MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        parts = [item if (kind := type(item)) in leaves else table[kind](item, inner) for item in value]
        return Ext(codes.DEQUE, encode([value.maxlen, *parts]))

    return write


def _object_writer(leaves: frozenset[type], table: Table, entry: Entry) -> Write:
    name: object = entry.name if entry.version == 1 else [entry.name, entry.version]
    usual = len(entry.layout.fields)
    # The name goes in front of the encoded fields, so the map's header is written here for one pair more.
    head = map_header(usual + 1) + encode(TYPE_KEY) + encode(name)
    skipped = len(map_header(usual))
    take = entry.layout.take

    def write(value: object, depth: int) -> object:
        inner = depth + 2
        if inner > MAX_DEPTH:
            raise Refusal(TOO_DEEP)
        state = take(value)
        for item in state.values():
            if type(item) not in leaves:
                state = {
                    key: part if (kind := type(part)) in leaves else table[kind](part, inner)
                    for key, part in state.items()
                }
                break
        if len(state) == usual:
            return Ext(OBJECT, head + encode(state)[skipped:])
        return Ext(OBJECT, encode({TYPE_KEY: name, **state}))

    return write
