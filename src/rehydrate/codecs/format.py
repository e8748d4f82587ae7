"""The value format: extension codes, limits, and headers of MessagePack containers.

Numbers here are stored for ever: a code is never given another meaning. Nothing here encodes or decodes values.
"""

from __future__ import annotations

from typing import Final

#: Containers and extensions around a value, itself included. A list or dict with plain keys counts one; everything that
#: needs an extension (object, tuple, set, deque, dict with other keys) counts two.
MAX_DEPTH: Final = 200
#: Bytes of one sealed value.
MAX_BYTES: Final = 256 * 1024 * 1024
#: Keys of one set or dict that may share a hash value; more would make its construction quadratic.
MAX_CROWD: Final = 256

#: A registered object: a map of its fields, first the type's name, or `[name, version]` from version 2 on.
OBJECT: Final = 1
TUPLE: Final = 2
SET: Final = 3
FROZENSET: Final = 4
#: `[maxlen, element, ...]`
DEQUE: Final = 5
#: `[key, value, key, value, ...]`, where a key is no plain one.
DICT: Final = 6

#: The key of the type's name among an object's fields; no field is called like it.
TYPE_KEY: Final = ""

#: Codes whose payload is one MessagePack value with values of any kind in it. All others hold no further values.
NESTING: Final = frozenset({OBJECT, TUPLE, SET, FROZENSET, DEQUE, DICT})

INT: Final = 16
TEXT: Final = 17
BYTEARRAY: Final = 18
DATETIME: Final = 19
DATE: Final = 20
TIME: Final = 21
TIMEDELTA: Final = 22
TIMEZONE: Final = 23
ZONE: Final = 24
UUID: Final = 25
DECIMAL: Final = 26
PATH: Final = 27
COMPLEX: Final = 28
RANGE: Final = 29


def array_header(count: int) -> bytes:
    """Return the bytes that open an array of so many elements; raises `OverflowError` beyond 32 bits."""
    return _header(count, 0x90, b"\xdc", b"\xdd")


def map_header(count: int) -> bytes:
    """Return the bytes that open a map of so many pairs; raises `OverflowError` beyond 32 bits."""
    return _header(count, 0x80, b"\xde", b"\xdf")


def _header(count: int, small: int, medium: bytes, large: bytes) -> bytes:
    if count < 16:
        return (small + count).to_bytes(1, "big")
    if count < 1 << 16:
        return medium + count.to_bytes(2, "big")
    return large + count.to_bytes(4, "big")
