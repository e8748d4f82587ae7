"""One file of theirs as a tree of plain JSON, within bounds: what the reading process hands on.

Scalars of JSON stand for themselves; everything else is a list that begins with a letter. The letters are in `TAGS`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Final, cast

from .inert import MAX_DEPTH, MAX_NODES, MAX_OUT, MAX_STEPS, Group, Made, Named, Refused, Scalar
from .listed import Listed
from .machine import Machine

#: What each letter stands for, and what follows it.
TAGS: Final = {
    "l": "list: its items",
    "t": "tuple: its items",
    "s": "set: its items",
    "f": "frozenset: its items",
    "q": "deque: its limit, then its items",
    "d": "dict: keys and values in turns",
    "b": "bytes: base64",
    "i": "whole number: hexadecimal",
    "r": "float that is no number: text",
    "v": "value of the standard library: its kind and parts",
    "c": "class: its name",
    "o": "object: its class, whether its arguments are its fields, arguments, what it was filled with",
}
_LETTERS: Final = {"list": "l", "tuple": "t", "set": "s", "frozenset": "f", "deque": "q", "dict": "d"}
_SMALL: Final = 1 << 53


def read_file(data: bytes, listed: Listed) -> str:
    """Return a file's tree as JSON text. Raises `Refused`, or an error of Python for bytes that are damaged."""
    document = json.loads(data, object_pairs_hook=_unique)
    if not isinstance(document, dict):
        raise Refused("it holds no object")
    listed.begin()
    try:
        tree = json.dumps(_Writer(listed).node(cast("object", document), 0), allow_nan=False)
    finally:
        listed.finish()  # what is not on the list comes first, also where something else is wrong behind it
    return tree


def _length(value: object) -> int:
    """Return about how many bytes a value takes in the output, beside those that any takes."""
    match value:
        case str():
            return len(value) * (2 if value.isascii() else 4)
        case bytes():
            return len(value) * 2
        case int():
            return value.bit_length() // 4
        case Named(name) | Made(name):
            return len(name)
        case _:
            return 0


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Refused("a key stands twice in one object")
    return made


class _Writer:
    """Makes nodes of JSON and inert values, and counts them; a value that contains itself is too deep at some point."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self._steps = [MAX_STEPS]
        self._nodes = 0
        self._size = 0

    def node(self, value: object, depth: int) -> object:
        """Return a value's node."""
        self._count(value)
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return value if -_SMALL < value < _SMALL else ["i", f"{value:x}"]
        if isinstance(value, float):
            return value if math.isfinite(value) else ["r", repr(value)]
        if isinstance(value, bytes):
            return ["b", base64.b64encode(value).decode("ascii")]
        if depth > MAX_DEPTH:
            raise Refused(f"a value is nested deeper than {MAX_DEPTH} levels, or contains itself")
        return self._composed(value, depth + 1)

    def _count(self, value: object) -> None:
        self._nodes += 1
        self._size += 16 + _length(value)
        if self._nodes > MAX_NODES or self._size > MAX_OUT:
            raise Refused(f"it holds more than {MAX_NODES} values, or {MAX_OUT} bytes of them")

    def _composed(self, value: object, depth: int) -> object:
        match value:
            case dict():
                return self._json_object(cast("dict[str, object]", value), depth)
            case list():
                return ["l", *self._each(cast("list[object]", value), depth)]
            case Group(name=name, items=items) if name:
                return ["o", name, False, ["l"], ["d", *self._each(items, depth + 1)]]
            case Group(kind=kind, items=items):
                return [_LETTERS[kind], *self._each(items, depth)]
            case Named(name):
                return ["c", name]
            case Scalar(kind, parts):
                return ["v", kind, *self._each(parts, depth)]
            case Made(name, args, state, is_tuple):
                return ["o", name, is_tuple, ["l", *self._each(args, depth)], self.node(state, depth)]
            case _:
                raise Refused(f"it holds a {type(value).__name__}")

    def _each(self, items: list[object], depth: int) -> list[object]:
        return [self.node(item, depth) for item in items]

    def _json_object(self, value: dict[str, object], depth: int) -> object:
        match value:
            case {"__pickled__": str(text), "__type__": str(name)}:
                return self._stored(text, name, depth)
            case {"__af_dataclass__": str(name), "value": inner}:
                return self._marked(name, inner, depth)
            case {"__af_model__": str(name), "value": inner}:
                return self._marked(name, inner, depth)
            case _:
                pairs = [part for pair in value.items() for part in pair]
                return ["d", *self._each(pairs, depth)]

    def _stored(self, text: str, name: str, depth: int) -> object:
        """Read an object that was stored as bytes; the type beside it has to be its own."""
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise Refused("a stored object is no base64") from error
        found = Machine(data, self._listed, self._steps).run()
        if isinstance(found, Made) and found.name != name:
            raise Refused(f"an object of {found.name[:200]!r} is said to be one of {name[:200]!r}")
        return self.node(found, depth)

    def _marked(self, name: str, inner: object, depth: int) -> object:
        """Read an object that an early release stored as JSON beside its type."""
        module, _, cls = name.partition(":")
        full = self._listed.check(module, cls)
        node = self.node(inner, depth)
        return ["o", full, False, ["l"], node] if isinstance(inner, dict) else ["o", full, False, ["l", node], None]
