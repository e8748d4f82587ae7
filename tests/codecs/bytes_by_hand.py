"""MessagePack written by hand: one level of nesting in every form that the format has."""

from collections.abc import Callable

import msgspec

Ext = msgspec.msgpack.Ext
encode = msgspec.msgpack.encode

ONE_LEVEL: dict[str, Callable[[bytes], bytes]] = {
    "a small array": lambda inner: b"\x91" + inner,
    "an array with a 16 bit length": lambda inner: b"\xdc\0\1" + inner,
    "an array with a 32 bit length": lambda inner: b"\xdd\0\0\0\1" + inner,
    "an array behind other elements": lambda inner: b"\x93\xa3abc\x01" + inner,
    "an array before other elements": lambda inner: b"\x93" + inner + b"\xa3abc\x01",
    "the value of a small map": lambda inner: b"\x81\xa1a" + inner,
    "the key of a small map": lambda inner: b"\x81" + inner + b"\x01",
    "a map with a 16 bit length": lambda inner: b"\xde\0\1\xa1a" + inner,
    "a map with a 32 bit length": lambda inner: b"\xdf\0\0\0\1\xa1a" + inner,
    "an extension": lambda inner: encode(Ext(2, inner)),
}


def nested(levels: int, wrap: Callable[[bytes], bytes]) -> bytes:
    data = b"\x01"
    for _ in range(levels):
        data = wrap(data)
    return data


def as_tuple(inner: bytes) -> bytes:
    """Two levels: an extension and the array in it."""
    return encode(Ext(2, b"\x91" + inner))
