"""Values in state whose bytes lie in parts: a value that is set again writes what is new in it.

Large values only. What is written stays within a bound of what is new, and so do the pieces and the parts that nothing
refers to: docs/decisions/0017-values-in-pieces.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from math import isqrt
from typing import Final, Protocol, cast

from rehydrate.model.records import PartRecord, Spliced, StateRecord
from rehydrate.model.sealed import Items, Sealed

from .rope import INLINE, Match, Rope, Segment, matches, pieces_of, rope_of
from .run import AnyRecord, Draft

#: Smaller values stand in their state record and are written whole.
SMALL: Final = 2048
#: So many small parts in a row become one.
FAN: Final = 64
#: What counts as a small part there.
_SMALL_PART: Final = 4096
#: Bytes of fragments that are made one.
_FRAGMENTS: Final = 1100
#: A value may have this many pieces, and more with its size: many cost every save, and few cost merging.
_PIECES: Final = 32
_BYTES_PER_SQUARED_PIECE: Final = 8
_SEPARATOR: Final = "\x1f"


class Records(Protocol):
    """A run, or the draft of a change to one."""

    def get(self, path: str, kind: str, name: str) -> AnyRecord:
        """Return one record."""
        ...

    def items(self, path: str, kind: str) -> list[tuple[str, AnyRecord]]:
        """Return the records of one kind in one scope."""
        ...


def part_name(key: str, number: int) -> str:
    """Return the name of a part record."""
    return f"{key}{_SEPARATOR}{number}"


def part_numbers(records: Records, path: str, key: str) -> list[int]:
    """Return the numbers of a key's parts in their order."""
    prefix = key + _SEPARATOR
    size = len(prefix)
    return sorted(int(name[size:]) for name, _ in records.items(path, "part") if name.startswith(prefix))


def grows(record: StateRecord) -> bool:
    """Tell whether a key is a list that grows."""
    return record.value is None or (isinstance(record.value, Spliced) and not record.value.type)


def sealed_value(records: Records, path: str, key: str, record: StateRecord) -> Sealed:
    """Return a value that is no list that grows; one in one piece is not copied."""
    value = record.value
    if isinstance(value, Spliced):
        return Sealed(value.type, _rope(records, path, key, value).joined())
    return cast("Sealed", value)


def items_set(records: Records, path: str, key: str, record: StateRecord) -> list[Items]:
    """Return those elements of a list that grows that lie in pieces: what it was set to."""
    value = record.value
    if not isinstance(value, Spliced):
        return []
    return [Items(_rope(records, path, key, value).joined(), value.count)]


def items_added(records: Records, path: str, key: str, record: StateRecord) -> list[Items]:
    """Return the other elements of a list that grows, part by part."""
    first = record.value.until if isinstance(record.value, Spliced) else 0
    numbers = [number for number in part_numbers(records, path, key) if number >= first]
    return [records.get(path, "part", part_name(key, number)).items for number in numbers]


def put_value(draft: Draft, path: str, key: str, value: Sealed | Items) -> None:
    """Replace a key's value; of a large one only what is new is written."""
    record: StateRecord | None = draft.get(path, "state", key)
    if len(value.data) < SMALL:
        remove_parts(draft, path, key, record)
        if isinstance(value, Sealed):
            draft.put(path, "state", key, StateRecord(value))
        else:
            draft.put(path, "part", part_name(key, 0), PartRecord(value))
            draft.put(path, "state", key, StateRecord(None, value.count, merged=1, next=1))
        return
    _Splice(draft, path, key, record).put(value)


def remove_parts(draft: Draft, path: str, key: str, record: StateRecord | None) -> None:
    """Remove the parts of a key that has this record."""
    if record is not None and not isinstance(record.value, Sealed):
        for number in part_numbers(draft, path, key):
            draft.remove(path, "part", part_name(key, number))


def _rope(records: Records, path: str, key: str, value: Spliced) -> Rope:
    def part(number: int) -> bytes:
        record: PartRecord = records.get(path, "part", part_name(key, number))
        return record.items.data

    return rope_of(value.pieces, part)


class _Splice:
    """One value that replaces another in the parts of a key."""

    def __init__(self, draft: Draft, path: str, key: str, record: StateRecord | None) -> None:
        self.draft = draft
        self.path = path
        self.key = key
        self.next = record.next if record is not None else 0
        known = record.value if record is not None else None
        self.merged = known.merged if isinstance(known, Spliced) else 0
        self.old = Rope(self._segments(record))

    def put(self, value: Sealed | Items) -> None:
        data = value.data
        segments = self._spliced(data if type(data) is bytes else bytes(data)) if self.old.size >= SMALL else None
        if segments is None:
            segments = [self._new_part(data)]
        before = {segment.number for segment in self.old.segments if segment.number is not None}
        after = {segment.number: segment for segment in segments if segment.number is not None}
        for number in before - after.keys():
            self.draft.remove(self.path, "part", part_name(self.key, number))
        for number in after.keys() - before:
            self.draft.put(self.path, "part", part_name(self.key, number), PartRecord(Items(after[number].data, 0)))
        pieces = pieces_of(segments)
        if isinstance(value, Sealed):
            record = StateRecord(Spliced(value.type, pieces, merged=self.merged), next=self.next)
        else:
            record = StateRecord(
                Spliced("", pieces, value.count, self.next, self.merged), value.count, self.next, self.next
            )
        self.draft.put(self.path, "state", self.key, record)

    def _segments(self, record: StateRecord | None) -> Iterable[Segment]:
        """Return what the parts hold in the order of the value, also those of a list that were added to it."""
        if record is None or isinstance(record.value, Sealed):
            return []
        segments: list[Segment] = []
        first = 0
        if record.value is not None:
            segments += _rope(self.draft, self.path, self.key, record.value).segments
            first = record.value.until
        if grows(record):
            for number in part_numbers(self.draft, self.path, self.key):
                if number >= first:
                    part: PartRecord = self.draft.get(self.path, "part", part_name(self.key, number))
                    segments.append(Segment(part.items.data, number, 0, len(part.items.data)))
        return segments

    def _new_part(self, data: bytes) -> Segment:
        number = self.next
        self.next += 1
        return Segment(data, number, 0, len(data))

    def _spliced(self, new: bytes) -> list[Segment] | None:
        """Return the new value in segments, or `None` where it is to be written whole."""
        shared = matches(self.old, new)
        if 2 * sum(match.size for match in shared) < len(new):
            return None
        segments: list[Segment] = []
        old_at = new_at = 0
        for match in (*shared, Match(self.old.size, len(new), 0)):
            segments += self._written(
                new[new_at : match.new], self.old.read(old_at, min(match.old, old_at + INLINE + 1))
            )
            segments += self._tidied(list(self.old.cut(match.old, match.old + match.size)))
            old_at, new_at = match.old + match.size, match.new + match.size
        segments = self._fanned(self._with_few_inline(_coalesced(segments)))
        parts = {segment.number: len(segment.data) for segment in segments if segment.number is not None}
        if sum(parts.values()) > 2 * len(new):
            return None
        return self._few(segments, len(new))

    def _written(self, data: bytes, replaced: bytes) -> list[Segment]:
        """Return new bytes as segments. What replaces a few bytes at their end or beginning will be replaced again."""
        if not data:
            return []
        if len(data) <= INLINE:
            return [_inline(data)]
        size = len(replaced)
        if not 0 < size <= INLINE or len(data) <= INLINE + size:
            return [self._new_part(data)]
        if _alike(replaced[::-1], data[: -size - 1 : -1]) >= _alike(replaced, data[:size]):
            return [self._new_part(data[:-size]), _inline(data[-size:])]
        return [_inline(data[:size]), self._new_part(data[size:])]

    def _tidied(self, kept: list[Segment]) -> list[Segment]:
        """Make one of the small fragments that a stretch which was kept begins with: listing them costs every save."""
        count = size = 0
        for segment in kept:
            size += _size(segment)
            if segment.is_whole or size > _FRAGMENTS:
                break
            count += 1
        return self._merged(kept, 0, count) if count > 2 else kept

    def _with_few_inline(self, segments: list[Segment]) -> list[Segment]:
        """Make a part of inline segments in a row that are more than a few bytes together."""
        first = 0
        for index, segment in enumerate([*segments, None]):
            if segment is not None and segment.number is None:
                continue
            if index - first > 1 and sum(map(_size, segments[first:index])) > 2 * INLINE:
                return self._merged(segments, first, index)
            first = index + 1
        return segments

    def _fanned(self, segments: list[Segment]) -> list[Segment]:
        """Make one part of many small ones in a row, but for the last: what comes next may share only some of it."""
        first = 0
        for index, segment in enumerate(segments):
            if segment.number is None or segment.end - segment.start > _SMALL_PART:
                first = index + 1
            elif index - first == FAN:
                return self._merged(segments, first, index)
        return segments

    def _few(self, segments: list[Segment], size: int) -> list[Segment]:
        """Keep the number of pieces bounded: half of the bound is merged, where that takes the fewest bytes."""
        most = _PIECES + isqrt(size // _BYTES_PER_SQUARED_PIECE)
        if len(segments) <= most or len(pieces_of(segments)) <= most:
            return segments
        width = most // 2
        ends = [0, *accumulate(segment.end - segment.start for segment in segments)]
        first = min(range(len(segments) - width + 1), key=lambda index: ends[index + width] - ends[index])
        return self._merged(segments, first, first + width)

    def _merged(self, segments: list[Segment], first: int, end: int) -> list[Segment]:
        data = Rope(segments[first:end]).joined()
        self.merged += 1
        return [*segments[:first], Segment(data, -self.merged, 0, len(data)), *segments[end:]]


def _inline(data: bytes) -> Segment:
    return Segment(data, None, 0, len(data))


def _coalesced(segments: list[Segment]) -> list[Segment]:
    """Make one segment of neighbours that lie next to each other, and of small inline ones."""
    found: list[Segment] = []
    for segment in segments:
        last = found[-1] if found else None
        if last is None or last.number != segment.number:
            found.append(segment)
        elif segment.number is not None and last.end == segment.start:
            found[-1] = last._replace(end=segment.end)
        elif segment.number is None and _size(last) + _size(segment) <= INLINE:
            found[-1] = _inline(last.read() + segment.read())
        else:
            found.append(segment)
    return found


def _size(segment: Segment) -> int:
    return segment.end - segment.start


def _alike(one: bytes, other: bytes) -> int:
    """Return how many first bytes of two short texts are the same."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
