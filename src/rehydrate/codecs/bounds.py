"""Bounds: refuses stored bytes that are no MessagePack or whose decoding could overflow the stack, before decoding.

At the speed of C: a value cannot be nested deeper than it has bytes, nor deeper than it has bytes that can open a
container. Only what passes neither test is taken apart: by levels, and element by element where that does not help. It
never decodes into values.
"""

from __future__ import annotations

import re
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
#: Bytes of an element without what its length counts, where that is more than one.
_SIZES: Final = {
    **{byte: 1 + (byte & 0x1F) for byte in range(0xA0, 0xC0)},
    **dict.fromkeys((0xCC, 0xD0, 0xC4, 0xD9), 2),
    **dict.fromkeys((0xCD, 0xD1, 0xC5, 0xDA, 0xDC, 0xDE, 0xC7), 3),
    **dict.fromkeys((0xCA, 0xCE, 0xD2, 0xC6, 0xDB, 0xDD, 0xDF), 5),
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 9),
    0xC8: 4,
    0xC9: 6,
    0xD4: 3,
    0xD5: 4,
    0xD6: 6,
    0xD7: 10,
    0xD8: 18,
}
#: Bytes of the length of a text, of bytes or of an extension.
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _OPENERS)

#: Up to this size counting openers is the cheapest test.
_SHORT: Final = 16 * 1024
#: Parts whose openers are counted together.
_GROUP: Final = 16
#: Bytes for an element from which on splitting costs no more than counting.
_FEW_AND_LARGE: Final = 64
#: Levels that are taken apart at the speed of C; below them whole subtrees would be stepped over too often.
_SPLITS: Final = 8
#: Levels that msgspec may step over on the smallest stack that threads have in practice (256 KB; 48 bytes a level).
_SAFE_LEVELS: Final = 3000
_LEVEL_BYTES: Final = 64
_SMALL_STACK: Final = 512 * 1024
_ROOM: Final = threading.Lock()
#: Brackets in a JSON text that are safe however they are nested, and levels that our own lines are far from.
_SAFE_JSON: Final = 500
_FLAT: Final = 32
_JSON_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")

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
    if too_deep:
        raise CheckpointCorruptError(what, f"it is nested deeper than {max_depth} levels")


def is_deep_json(text: bytes, max_levels: int = _FLAT, safe: int = _SAFE_JSON) -> bool:
    """Tell whether JSON may be nested so deep that decoding it, or stepping over it, overflows a small stack.

    Where it has more brackets than are `safe`, those that no stack minds by default, they are taken away in pairs,
    innermost first.
    """
    if text.count(b"[") + text.count(b"{") <= safe:
        return False
    left = _JSON_TEXT.sub(b"", text).translate(None, _NO_BRACKETS)
    for _ in range(max_levels):
        before = len(left)
        left = left.replace(b"[]", b"").replace(b"{}", b"")
        if len(left) == before:
            break
    return bool(left)


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
    while level and room > max(0, max_depth - _SPLITS):
        room -= 1
        large = [part for outer in level for part in _inside(outer) if len(part) > room]
        level = [part for start in range(0, len(large), _GROUP) for part in _deep(large[start : start + _GROUP], room)]
    return any(_scan(part, room) for part in level)


def _deep(parts: Sequence[bytes | msgspec.Raw], room: int) -> list[bytes]:
    """Return those parts in which there could be more than `room` containers in one another."""
    # Lists mostly hold values of one kind: if the first is a container, one count for all is likely to do.
    if memoryview(parts[0])[0] in _OPENERS and _count_openers(b"".join(parts)) <= room:
        return []
    # Counting comes last here: it costs most, and for texts of other alphabets it says little.
    return [
        part
        for part in map(bytes, parts)
        if part[0] in _OPENERS and _count_openers(part) > room and _holds_values(part)
    ]


def _is_worth_splitting(data: bytes, max_depth: int) -> bool:
    """Tell whether a container may be too deep; counting is left out where its elements are few and large."""
    return len(data) > _FEW_AND_LARGE * _count_elements(data) or _count_openers(data) > max_depth


def _holds_values(data: bytes) -> bool:
    first = data[0]
    return first in _OPENERS and (first not in _PAYLOADS or data[_PAYLOADS[first] - 1] in NESTING)


def _count_openers(data: bytes) -> int:
    # A view of a big record is copied, which costs less than the counting.
    return len(bytes(data).translate(None, _OTHERS))


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


def _scan(data: bytes, room: int) -> bool:
    """Tell whether there are more than `room` containers in one another, by looking at each element."""
    waiting = [(data, room)]
    while waiting:
        chunk, free = waiting.pop()
        position = 0
        left = [1]  # elements to come, in each of the containers around the position
        while left:
            if not left[-1]:
                left.pop()
                continue
            left[-1] -= 1
            size = _size(chunk, position)
            if chunk[position] in _OPENERS and _holds_values(chunk[position : position + 7]):
                if len(left) > free:
                    return True
                if chunk[position] in _PAYLOADS:
                    payload = chunk[position + _PAYLOADS[chunk[position]] : position + size]
                    _step_over(payload)
                    waiting.append((payload, free - len(left)))
                else:
                    elements = _count_elements(chunk[position : position + 5])
                    left.append(2 * elements if chunk[position] in _MAPS else elements)
            position += size
    return False


def _size(data: bytes, position: int) -> int:
    """Return the bytes of the element at a position; of an array or map only those of its header."""
    first = data[position]
    size = _SIZES.get(first, 1)
    wide = _LENGTHS.get(first, 0)
    return size + int.from_bytes(data[position + 1 : position + 1 + wide], "big") if wide else size


def _fits_small_stack(data: bytes) -> bool:
    if sys.version_info >= (3, 14):  # the interpreter looks at the stack that there is
        return True
    return _level_limit() <= _SAFE_LEVELS or _count_openers(data) <= _SAFE_LEVELS


def _level_limit() -> int:
    """Return how many levels msgspec goes down before it raises `RecursionError`."""
    return 10_000 if sys.version_info >= (3, 12) else sys.getrecursionlimit()


def _with_room(measure: Callable[[], bool], levels: int) -> bool:
    """Run a measurement on a thread with stack enough for so many levels."""
    found: list[bool | Exception] = []

    def work() -> None:
        try:
            found.append(measure())
        except RecursionError:
            found.append(True)
        except (msgspec.MsgspecError, IndexError) as error:
            found.append(error)

    with _ROOM:
        before = threading.stack_size(_SMALL_STACK + min(levels, _level_limit()) * _LEVEL_BYTES // 4096 * 4096)
        try:
            thread = threading.Thread(target=work, name="rehydrate-bounds", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    result = found.pop()
    if isinstance(result, Exception):
        raise result
    return result
