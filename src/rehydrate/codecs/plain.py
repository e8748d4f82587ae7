"""Plain views: sealed bytes as what JSON can hold, without any registry or user type.

For people and hosts to look at; there is no way back. A registered object is a dict with its type's name under `$type`,
and keys of users that begin with `$` have one more `$`, so that neither is taken for the other.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.plain import Plain

from . import format as codes
from .bounds import check_bounds
from .layouts import State
from .models import EXTRA
from .reader import DAMAGE, checked_array, checked_map
from .scalars import READERS


def plain(data: bytes) -> Plain:
    """Return sealed bytes as a plain value; raises `CheckpointCorruptError`.

    Tuples, sets and deques are lists, dates, numbers and paths of their own kind are texts; bytes are in base64.
    """
    check_bounds(data)
    try:
        return _shown(_decode(data))
    except DAMAGE as error:
        raise CheckpointCorruptError("a stored value", str(error) or type(error).__name__) from error


@dataclass(frozen=True, eq=False, slots=True)
class _Ready:
    """An extension that is a plain value already, apart from what MessagePack holds itself."""

    value: Plain


def _extension(code: int, data: memoryview) -> _Ready:
    if code == codes.OBJECT:
        return _Ready(_object(cast("State", _decode(checked_map(data)))))
    show = _LISTS.get(code)
    if show is not None:
        return _Ready(show(cast("list[Plain]", _shown(_decode(checked_array(data))))))
    payload = bytes(data)
    if code == codes.TEXT:
        return _Ready(payload.decode("utf-8", "surrogatepass").encode("utf-8", "backslashreplace").decode())
    if code == codes.BYTEARRAY:
        return _Ready(_base64("bytearray", payload))
    value = READERS[code](payload)
    if isinstance(value, range):
        return _Ready({"$type": "range", "start": value.start, "stop": value.stop, "step": value.step})
    return _Ready(value if isinstance(value, int) else str(value))


def _shown(value: object) -> Plain:
    if isinstance(value, _Ready):
        return value.value
    if isinstance(value, bytes):
        return _base64("bytes", value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"$type": "float", "value": str(value)}
    if isinstance(value, list):
        return [_shown(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return _shown_dict(cast("dict[object, object]", value))
    return cast("Plain", value)


def _shown_dict(value: dict[object, object]) -> Plain:
    if all(isinstance(key, str) for key in value):
        return {_escaped(str(key)): _shown(item) for key, item in value.items()}
    return {"$type": "dict", "items": [[_shown(key), _shown(item)] for key, item in value.items()]}


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _object(fields: State) -> Plain:
    name = fields.pop(codes.TYPE_KEY, None)
    shown: dict[str, Plain] = {"$type": str(name)}
    if isinstance(name, list):
        named = cast("list[object]", name)
        shown = {"$type": str(named[0]), "$version": cast("int", named[1])}
    extra = fields.pop(EXTRA, None)
    if isinstance(extra, dict):
        fields = {**fields, **cast("State", extra)}
    for key, item in fields.items():
        if key[:1] != "!":
            shown[_escaped(key)] = _shown(item)
    return shown


def _without_limit(parts: list[Plain]) -> Plain:
    _, *items = parts
    return items


def _pairs(parts: list[Plain]) -> Plain:
    items = [[key, item] for key, item in zip(parts[::2], parts[1::2], strict=True)]
    return {"$type": "dict", "items": cast("Plain", items)}


def _as_list(items: list[Plain]) -> Plain:
    return items


def _base64(name: str, value: bytes) -> Plain:
    return {"$type": name, "base64": base64.b64encode(value).decode()}


_LISTS: Final[dict[int, Callable[[list[Plain]], Plain]]] = {
    codes.TUPLE: _as_list,
    codes.SET: _as_list,
    codes.FROZENSET: _as_list,
    codes.DEQUE: _without_limit,
    codes.DICT: _pairs,
}
_decode: Final = msgspec.msgpack.Decoder(ext_hook=_extension).decode
