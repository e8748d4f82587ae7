"""Ropes: the bytes of a value as a row of pieces, each inline or a range of a part record.

Finds what two values share by comparing slices and searching for anchors, never byte by byte. It knows no records and
opens no value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rehydrate.model.records import Piece

#: Ranges shorter than this are not worth a piece: what they hold is written again.
SHORT: Final = 64
#: Up to so many bytes a piece stands inline, in the record that lists the pieces.
INLINE: Final = 128
#: What is searched for to find where two values are alike again.
_ANCHOR: Final = 32
_WINDOW: Final = 64 * 1024
_BLOCK: Final = 64 * 1024
#: Values that differ in more places than this are written whole.
_PLACES: Final = 256
#: Bytes that are searched in all, as a multiple of the old value.
_EFFORT: Final = 4


class Segment(NamedTuple):
    """A range of some bytes: those of part `number`, or inline ones (`None`)."""

    data: bytes
    number: int | None
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a part."""
        return self.number is not None and self.start == 0 and self.end == len(self.data)

    def read(self) -> bytes:
        """Return the bytes; what a store gave may be a view."""
        return bytes(self.data[self.start : self.end])


class Match(NamedTuple):
    """A range that old and new bytes share."""

    old: int
    new: int
    size: int


class Rope:
    """A value's bytes in segments."""

    __slots__ = ("_starts", "segments", "size")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.segments = list(segments)
        ends = list(accumulate(segment.end - segment.start for segment in self.segments))
        self.size = ends[-1] if ends else 0
        self._starts = [0, *ends[:-1]] if ends else []

    def joined(self) -> bytes:
        """Return all bytes; of a value in one piece the very same, without a copy."""
        if len(self.segments) == 1:
            data, _, start, end = self.segments[0]
            return data if end - start == len(data) else data[start:end]
        return b"".join(
            [data if end - start == len(data) else memoryview(data)[start:end] for data, _, start, end in self.segments]
        )

    def cut(self, start: int, end: int) -> Iterator[Segment]:
        """Yield the segments of a range."""
        index = bisect_right(self._starts, start) - 1
        while start < end:
            data, number, first, last = self.segments[index]
            skipped = start - self._starts[index]
            taken = min(last - first - skipped, end - start)
            if taken:  # a part may hold nothing: a list was extended by an empty one
                yield Segment(data, number, first + skipped, first + skipped + taken)
            start += taken
            index += 1

    def cut_back(self, start: int, end: int) -> Iterator[Segment]:
        """Yield the segments of a range, the last first."""
        index = bisect_left(self._starts, end) - 1
        while start < end:
            data, number, first, _ = self.segments[index]
            begin = self._starts[index]
            taken = min(end - begin, end - start)
            if taken:
                yield Segment(data, number, first + end - begin - taken, first + end - begin)
            end -= taken
            index -= 1

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of a range that is not long."""
        return b"".join(segment.read() for segment in self.cut(start, min(end, self.size)))

    def common(self, start: int, new: bytes, at: int) -> int:
        """Return how many bytes from `start` on are those of `new` from `at` on."""
        size = 0
        for segment in self.cut(start, min(self.size, start + len(new) - at)):
            if segment.is_whole and type(segment.data) is bytes and new.startswith(segment.data, at + size):
                size += len(segment.data)
                continue
            same = _common(segment, new, at + size)
            size += same
            if same < segment.end - segment.start:
                break
        return size

    def common_back(self, end: int, new: bytes, to: int, limit: int) -> int:
        """Return how many bytes before `end` are those of `new` before `to`, `limit` at most."""
        size = 0
        for segment in self.cut_back(end - min(limit, end, to), end):
            if segment.is_whole and type(segment.data) is bytes and new.endswith(segment.data, 0, to - size):
                size += len(segment.data)
                continue
            same = _common_back(segment, new, to - size)
            size += same
            if same < segment.end - segment.start:
                break
        return size


def rope_of(pieces: Iterable[Piece], part: Callable[[int], bytes]) -> Rope:
    """Return the rope of a record's pieces, given the bytes of parts by number."""
    segments: list[Segment] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            segments.append(Segment(piece, None, 0, len(piece)))
        elif len(piece) == 2:
            for number in numbers_of(piece):
                data = part(number)
                segments.append(Segment(data, number, 0, len(data)))
        else:
            segments.append(Segment(part(piece[0]), piece[0], piece[1], piece[2]))
    return Rope(segments)


def numbers_of(piece: Sequence[int]) -> range:
    """Return the numbers of the whole parts of a piece; those below 0 count downwards."""
    first, last = piece
    return range(first, last + 1) if first >= 0 else range(first, last - 1, -1)


def pieces_of(segments: Iterable[Segment]) -> tuple[Piece, ...]:
    """Return segments as a record lists them: whole parts with consecutive numbers are one piece."""
    pieces: list[Piece] = []
    first: int | None = None
    following = 0
    for segment in segments:
        number = segment.number
        if number is None:
            pieces.append(segment.read())
            first = None
        elif not segment.is_whole:
            pieces.append((number, segment.start, segment.end))
            first = None
        else:
            if first is not None and number == following:
                pieces[-1] = (first, number)
            else:
                first = number
                pieces.append((number, number))
            following = number + 1 if number >= 0 else number - 1
    return tuple(pieces)


def matches(old: Rope, new: bytes) -> list[Match]:
    """Return what old and new share, in order, as far as it is found with bounded effort."""
    found = [Match(0, 0, old.common(0, new, 0))]
    left = min(old.size, len(new)) - found[0].size
    tail = old.common_back(old.size, new, len(new), left)
    ends = (old.size - tail, len(new) - tail)
    effort = _EFFORT * old.size + 32 * _WINDOW
    while len(found) < _PLACES:
        effort, match = _next(old, new, found[-1], ends, effort)
        if match is None:
            break
        found.append(match)
    found.append(Match(*ends, tail))
    return [match for match in found if match.size >= SHORT]


def _next(old: Rope, new: bytes, last: Match, ends: tuple[int, int], effort: int) -> tuple[int, Match | None]:
    """Look behind the last match for the next, with anchors ever farther away; return what is left of the effort.

    One that skips more than it holds may be a chance likeness, beyond which nothing fits: it is only taken for want of
    a better one.
    """
    first, at = last.old + last.size, last.new + last.size
    best: Match | None = None
    ahead = 0
    while at + ahead + _ANCHOR <= ends[1] and effort > 0:
        anchor = new[at + ahead : at + ahead + _ANCHOR]
        window = old.read(first, min(ends[0], first + 2 * ahead + _WINDOW))
        effort -= len(window)
        # Bytes that repeat are found in many places: where as much was cut out as was put in is the likeliest.
        place = first + (ahead if window.startswith(anchor, ahead) else window.find(anchor))
        if place >= first:
            back = old.common_back(place, new, at + ahead, min(ahead, place - first))
            room = min(ends[0] - place, ends[1] - at - ahead)
            match = Match(place - back, at + ahead - back, back + min(old.common(place, new, at + ahead), room))
            if match.size >= match.old - first:
                return effort, match
            best = match if best is None or match.size > best.size else best
        ahead = ahead + 1 if ahead < 6 else 2 * ahead
    return effort, best


def _common(segment: Segment, new: bytes, at: int) -> int:
    data, _, start, end = segment
    size, step = 0, SHORT
    while start + size < end:
        block = bytes(data[start + size : min(start + size + step, end)])
        if not new.startswith(block, at + size):
            return size + _first_difference(block, new[at + size : at + size + len(block)])
        size += len(block)
        step = min(4 * step, _BLOCK)
    return size


def _common_back(segment: Segment, new: bytes, to: int) -> int:
    data, _, start, end = segment
    size, step = 0, SHORT
    while start < end - size:
        block = bytes(data[max(end - size - step, start) : end - size])
        if not new.endswith(block, 0, to - size):
            return size + _first_difference(block[::-1], new[max(to - size - len(block), 0) : to - size][::-1])
        size += len(block)
        step = min(4 * step, _BLOCK)
    return size


def _first_difference(one: bytes, other: bytes) -> int:
    """Return where two blocks that differ begin to differ."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
