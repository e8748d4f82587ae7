"""Exact equality for tests: same value, same type, same order, same bits, at every depth."""

import dataclasses
import struct
from collections import deque
from datetime import datetime, time
from decimal import Decimal

import attrs
import msgspec
import pydantic


def same(one: object, other: object) -> bool:
    """Tell whether two values cannot be told apart."""
    if type(one) is not type(other):
        return False
    match one:
        case float():
            return struct.pack(">d", one) == struct.pack(">d", other)
        case complex():
            return same((one.real, one.imag), (other.real, other.imag))
        case datetime() | time():
            # Times in one zone compare without looking at `fold` or the zone's own type and name.
            return (one.isoformat(), one.fold) == (other.isoformat(), other.fold) and same_zone(
                one.tzinfo, other.tzinfo
            )
        case Decimal():
            return one.as_tuple() == other.as_tuple()
        case dict():
            return same([*dict.items(one)], [*dict.items(other)]) and same_rest(one, other)
        case deque():
            return one.maxlen == other.maxlen and same([*one], [*other])
        case set() | frozenset():
            return len(one) == len(other) and all(any(same(item, twin) for twin in other) for item in one)
        case list() | tuple():
            return len(one) == len(other) and all(map(same, one, other)) and same_rest(one, other)
        case pydantic.BaseModel():
            names = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
            states = [[plain_state(getattr(model, name, None)) for name in names] for model in (one, other)]
            return same(*states)
        case msgspec.Struct():
            return same(msgspec.structs.asdict(one), msgspec.structs.asdict(other))
    if attrs.has(type(one)):
        fields = [field.name for field in attrs.fields(type(one))]
        return same([getattr(one, name) for name in fields], [getattr(other, name) for name in fields])
    if dataclasses.is_dataclass(one):
        fields = [field.name for field in dataclasses.fields(one)]
        return all(same(getattr(one, name, same), getattr(other, name, same)) for name in fields)
    return bool(one == other)


def plain_state(state: object) -> object:
    """Leave out what a cached property remembers."""
    return {key: value for key, value in state.items() if key != "twice"} if isinstance(state, dict) else state


def same_rest(one: object, other: object) -> bool:
    return getattr(one, "__dict__", None) == getattr(other, "__dict__", None)


def same_zone(one: object, other: object) -> bool:
    return type(one) is type(other) and str(one) == str(other) and one == other
