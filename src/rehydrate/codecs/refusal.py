"""Refusals: where inside a value the part is that cannot be stored, and why.

Only runs when the writer has refused a value, so it may be slow. It must refuse whatever the writer refuses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from rehydrate.errors.codec import NotStorableError
from rehydrate.graph.hints import qualified_name

from .classes import is_storable
from .format import MAX_DEPTH
from .layouts import Layout, Refusal
from .marks import mark_of
from .registry import LEAVES
from .scalars import SCALARS
from .writer import CROWDED, TOO_DEEP, is_crowded, is_plain_key

_SCALARS = {scalar.type: scalar for scalar in SCALARS}


class _Part(NamedTuple):
    value: object
    where: str
    depth: int


def refusal_of(value: object, layouts: Mapping[type, Layout]) -> NotStorableError:
    """Return the error that names the first part of a value that cannot be stored."""
    name = qualified_name(type(value))
    return _find(_Part(value, name, 0), layouts, ()) or NotStorableError(name, name, TOO_DEEP)


def _find(part: _Part, layouts: Mapping[type, Layout], around: tuple[int, ...]) -> NotStorableError | None:
    value, where, depth = part
    kind = type(value)
    if kind in LEAVES:
        return None
    if id(value) in around:
        return _refuse(part, "it contains itself")
    if depth >= MAX_DEPTH:
        return _refuse(part, TOO_DEEP)
    scalar = _SCALARS.get(kind)
    try:
        if scalar is not None:
            scalar.payload(value)
            return None
        parts = _parts(value, where, depth, layouts)
    except Refusal as refusal:
        return _refuse(part, str(refusal))
    if parts is None:
        return _refuse(part, _unregistered(kind))
    for inner in parts:
        found = _find(inner, layouts, (*around, id(value)))
        if found is not None:
            return found
    return None


def _refuse(part: _Part, why: str) -> NotStorableError:
    return NotStorableError(qualified_name(type(part.value)), part.where, why)


def _unregistered(kind: type) -> str:
    if mark_of(kind):
        return "its type is marked @checkpointable, but nothing that the workflow was built from leads to it"
    if is_storable(kind):
        return "its type is not registered: no handler's annotation leads to it and it is not marked @checkpointable"
    if kind.__module__ == "builtins":
        return "values of this kind have no form that could be stored"
    return "its class declares no fields"


def _parts(value: object, where: str, depth: int, layouts: Mapping[type, Layout]) -> Iterable[_Part] | None:
    """Return the parts of a value, or `None` for a type without any; raises `Refusal`."""
    kind = type(value)
    if kind is dict:
        pairs = cast("dict[object, object]", value)
        plain = all(map(is_plain_key, pairs))
        if not plain and is_crowded(pairs):
            raise Refusal(CROWDED)
        return _of_dict(pairs, where, depth + (1 if plain else 2))
    if kind in {list, tuple, deque}:
        items = cast("list[object]", value)
        inner = depth + (1 if kind is list else 2)
        return (_Part(item, f"{where}[{index}]", inner) for index, item in enumerate(items))
    if kind in {set, frozenset}:
        elements = cast("set[object]", value)
        if is_crowded(elements):
            raise Refusal(CROWDED)
        return (_Part(item, f"{where}{{{_label(item)}}}", depth + 2) for item in elements)
    layout = layouts.get(kind)
    if layout is None:
        return None
    state = layout.take(value)
    return (_Part(item, f"{where}.{key}" if key[:1] != "!" else where, depth + 2) for key, item in state.items())


def _of_dict(value: dict[object, object], where: str, depth: int) -> Iterator[_Part]:
    for key, item in value.items():
        yield _Part(key, f"{where} key {_label(key)}", depth)
        yield _Part(item, f"{where}[{_label(key)}]", depth)


def _label(key: object) -> str:
    """Return a key or an element as it may stand in a text; anything but a small plain value by its type only."""
    if type(key) not in LEAVES or (isinstance(key, int) and key.bit_length() > 64):
        return f"<{qualified_name(type(key))}>"
    return f"{key!r:.40}"
