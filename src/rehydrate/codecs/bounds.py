"""Bounds: refuses stored bytes that are no MessagePack or whose decoding could overflow the stack, before decoding.

At the speed of C: a value cannot be nested deeper than it has bytes, nor deeper than it has bytes that can open a
container. Only what passes neither test is taken apart, level by level. It never decodes into values.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError

from .format import MAX_BYTES, MAX_DEPTH, NESTING, array_header

_MAPS: Final = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
_ARRAYS: Final = frozenset({*range(0x90, 0xA0), 0xDC, 0xDD})
#: Where the payload of an extension begins; its code is the byte before.
_PAYLOADS: Final = {0xC7: 3, 0xC8: 4, 0xC9: 6, **dict.fromkeys(range(0xD4, 0xD9), 2)}
#: Bytes that count the elements of an array or map, where the first byte does not.
_WIDE: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_OPENERS: Final = frozenset({*_MAPS, *_ARRAYS, *_PAYLOADS})
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _OPENERS)

#: Up to this size counting openers is the cheapest test.
_SHORT: Final = 16 * 1024
#: Bytes for an element from which on splitting costs no more than counting.
_FEW_AND_LARGE: Final = 64
#: Levels that msgspec may step over on the smallest stack that threads have in practice (256 KB; 48 bytes a level).
_SAFE_LEVELS: Final = 3000
_LEVEL_BYTES: Final = 64
_SMALL_STACK: Final = 512 * 1024
_ROOM: Final = threading.Lock()

_step_over: Final = msgspec.msgpack.Decoder(msgspec.Raw).decode
_split: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def check_bounds(
    data: bytes, *, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES, what: str = "a stored value"
) -> None:
    """Check that bytes are one MessagePack value within bounds; raises `CheckpointCorruptError`, which names `what`.

    Values inside of extensions count, too. Their bytes are only looked at where the depth depends on them.
    """
    if len(data) > max_bytes:
        raise CheckpointCorruptError(what, f"it has {len(data)} bytes, and {max_bytes} are allowed")
    try:
        too_deep = _is_too_deep(data, max_depth)
    except (msgspec.MsgspecError, IndexError) as error:
        raise CheckpointCorruptError(what, str(error)) from error
    except RecursionError:
        too_deep = True
    if too_deep:
        raise CheckpointCorruptError(what, f"it is nested deeper than {max_depth} levels")


def _is_too_deep(data: bytes, max_depth: int) -> bool:
    if len(data) <= max_depth or (len(data) <= _SHORT and _count_openers(data) <= max_depth):
        _step_over(data)
        return False
    if not _fits_small_stack(data):
        return _with_room(lambda: _measure(data, max_depth), len(data))
    try:
        return _measure(data, max_depth)
    except RecursionError:  # perhaps only because the caller has used most of its stack
        return _with_room(lambda: _measure(data, max_depth), len(data))


def _measure(data: bytes, max_depth: int) -> bool:
    _step_over(data)
    level = [data] if _holds_values(data) and _is_worth_splitting(data, max_depth) else []
    room = max_depth
    while level and room:
        room -= 1
        large = (bytes(part) for outer in level for part in _inside(outer) if len(part) > room)
        # The number of openers comes last: it costs most, and for texts of other alphabets it says little.
        level = [part for part in large if part[0] in _OPENERS and _count_openers(part) > room and _holds_values(part)]
    return bool(level)


def _is_worth_splitting(data: bytes, max_depth: int) -> bool:
    """Tell whether a container may be too deep; counting is left out where its elements are few and large."""
    return len(data) > _FEW_AND_LARGE * _count_elements(data) or _count_openers(data) > max_depth


def _holds_values(data: bytes) -> bool:
    first = data[0]
    return first in _OPENERS and (first not in _PAYLOADS or data[_PAYLOADS[first] - 1] in NESTING)


def _count_openers(data: bytes) -> int:
    return len(data.translate(None, _OTHERS))


def _count_elements(data: bytes) -> int:
    """Return the number of elements, or of pairs, that an array or map says it has; 1 for an extension."""
    first = data[0]
    if first in _PAYLOADS:
        return 1
    wide = _WIDE.get(first)
    return int.from_bytes(data[1 : 1 + wide], "big") if wide else first & 0x0F


def _inside(data: bytes) -> Sequence[bytes | msgspec.Raw]:
    """Return the elements of an array, keys and values of a map, or the payload of an extension."""
    first = data[0]
    if first in _PAYLOADS:
        payload = data[_PAYLOADS[first] :]
        _step_over(payload)
        return [payload]
    if first in _ARRAYS:
        return _split(data)
    return _split(array_header(2 * _count_elements(data)) + data[1 + _WIDE.get(first, 0) :])


def _fits_small_stack(data: bytes) -> bool:
    if sys.version_info >= (3, 14):  # the interpreter looks at the stack that there is
        return True
    return _level_limit() <= _SAFE_LEVELS or _count_openers(data) <= _SAFE_LEVELS


def _level_limit() -> int:
    """Return how many levels msgspec goes down before it raises `RecursionError`."""
    return 10_000 if sys.version_info >= (3, 12) else sys.getrecursionlimit()


def _with_room(measure: Callable[[], bool], levels: int) -> bool:
    """Run a measurement on a thread with stack enough for so many levels."""
    found: list[bool | BaseException] = []

    def work() -> None:
        try:
            found.append(measure())
        except (msgspec.MsgspecError, IndexError, RecursionError) as error:
            found.append(error)

    with _ROOM:
        before = threading.stack_size(_SMALL_STACK + min(levels, _level_limit()) * _LEVEL_BYTES // 4096 * 4096)
        try:
            thread = threading.Thread(target=work, name="rehydrate-bounds", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    result = found[0] if found else RecursionError()
    if isinstance(result, BaseException):
        raise result
    return result
