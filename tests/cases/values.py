"""Values that are hard to keep: each has to come back equal and of the same type, or be refused where it is set."""

import math
from collections import deque
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Base:
    name: str


@dataclass(frozen=True)
class Derived(Base):
    extra: int


@dataclass(frozen=True)
class Holder:
    """Its field is typed by the base class."""

    held: Base


class Outer:
    class Colour(Enum):
        RED = "red"
        BLUE = "blue"


@dataclass
class Derives:
    """Has a field that its `__init__` does not take."""

    given: int
    made: int = field(init=False, default=0)

    def __post_init__(self):
        self.made = self.given * 2


class Point(NamedTuple):
    x: int
    y: int


#: What a workflow's annotations have to name so that every value below is storable.
TYPES = Holder | Derived | Outer.Colour | Derives | Point


def changed():
    """Return an object whose field no longer is what `__post_init__` would make."""
    value = Derives(2)
    value.made = 99
    return value


VALUES = {
    "a subclass in a base-typed field": Holder(Derived("d", 1)),
    "a base in a base-typed field": Holder(Base("b")),
    "a tuple in a list": [(1, 2), [3, (4,)], ()],
    "an enum inside a class": Outer.Colour.BLUE,
    "a field that init does not take": changed(),
    "a named tuple": Point(1, 2),
    "int keys": {1: "one", 2: "two", -1: "minus"},
    "mixed keys": {1: "int", "1": "str", (1,): "tuple", None: "none", 1.5: "float"},
    "a deque with maxlen": deque([1, 2], maxlen=3),
    "a set and a frozenset": [{1, 2}, frozenset({"a"})],
    "a datetime with a named zone": datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    "a datetime with an offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
    "a datetime in UTC": datetime(2026, 1, 1, tzinfo=UTC),
    "not a number": [math.nan, math.inf, -math.inf, -0.0],
    "big ints": [2**70, -(2**70), 2**63, 2**64, -(2**63)],
    "a NUL and a lone surrogate": "a\x00b\ud800c",
    "bytes": [b"\x00\xff", bytearray(b"abc")],
    "a bool beside an int": [True, 1, 1.0, False, 0],
    "decimal, uuid and path": [Decimal("1.10"), UUID(int=7), PurePosixPath("a/b")],
}

#: User data with names that a codec might use for itself.
MARKERS = {
    "": "the empty key",
    "_": 0,
    "$type": "Holder",
    "$value": {"$type": "$type"},
    "__type__": "Derived",
    "__rehydrate__": 1,
    "__rehydrate_mark__": None,
    "__class__": "builtins.int",
    "py/object": "os.system",
    "type": "Sealed",
    "data": b"RH\x01",
    "ext": [1, 2, "Holder"],
}


def exactly(value):
    """Return a value as text in which type and every part are seen."""
    if is_dataclass(value):
        return type(value).__qualname__, [(f.name, exactly(getattr(value, f.name))) for f in fields(value)]
    if isinstance(value, dict):
        return type(value).__qualname__, [(exactly(key), exactly(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return type(value).__qualname__, sorted(map(repr, value))
    if isinstance(value, list | tuple | deque):
        return type(value).__qualname__, getattr(value, "maxlen", None), [exactly(item) for item in value]
    if isinstance(value, datetime):
        return "datetime", repr(value), value.fold, repr(value.tzinfo), value.utcoffset()
    return type(value).__qualname__, repr(value)
