"""Records of the history whose bytes lie in a newer record: they are kept as places in it instead of as rows.

Which these are is `packing`'s to say. Every function runs inside a transaction of `sqlite_batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Commit

from .packing import SMALL, packed, replaced_keys, shared_bytes, unpacked
from .rows import open_row, seal_row
from .sqlite_database import Database

#: No row has a higher number.
_NO_END: Final = 2**63
#: Places of one list, which is far below what a list may have when it is read.
_GROUP: Final = 4096

_OLD: Final = """
SELECT live.record, live.key, record.data FROM rehydrate_live AS live
JOIN rehydrate_record AS record ON record.id = live.record
WHERE live.run = ? AND live.key = ? AND live.parts = 1 AND length(record.data) < ?
"""
_DROP: Final = "DELETE FROM rehydrate_record WHERE id = ?"
_PACK: Final = "INSERT INTO rehydrate_packed VALUES (NULL, ?, ?)"
_PACKS: Final = "SELECT body FROM rehydrate_packed WHERE run = ? ORDER BY no"
_NO_PACKS: Final = "DELETE FROM rehydrate_packed WHERE run = ?"
_DATA: Final = "SELECT data FROM rehydrate_record WHERE id BETWEEN ? AND ? ORDER BY id"
_RECORD: Final = "INSERT INTO rehydrate_record VALUES (?, ?, ?)"


class Old(NamedTuple):
    """A record that a commit is about to replace or remove: the number of its row, key and bytes."""

    number: int
    key: str
    data: bytes


class _Place(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Where a record lies: `head`, then bytes of the source, then `tail`.

    `number` is that of the row that it had, `removal` that of the row which said that its key was removed, or 0.
    """

    number: int
    removal: int
    key: str
    offset: int
    size: int
    head: bytes
    tail: bytes


class _Pack(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The records that lie in the one whose rows are `first` to `last`; `places` is a compressed list."""

    run: int
    first: int
    last: int
    places: bytes


class Source(NamedTuple):
    """A record that was just written: number of its first row, number of its rows, and its bytes."""

    first: int
    rows: int
    data: bytes


class Packed(NamedTuple):
    """A record that lies in another one, or (`place` is `None`) that its key was removed, by the number of its row."""

    number: int
    key: str
    source: tuple[int, int]
    place: _Place | None


_places_of = msgspec.msgpack.Decoder(list[_Place])


def replaced_records(database: Database, no: int, commit: Commit) -> list[Old]:
    """Return the small records that a commit replaces by large ones or removes, if they may lie in what it writes."""
    found: list[Old] = []
    for key in replaced_keys(commit):
        row = database.execute(_OLD, (no, key, SMALL)).fetchone()
        if row is not None and isinstance(row[2], bytes):
            found.append(Old(*row))
    return sorted(found)


def pack_records(
    database: Database, no: int, old: Sequence[Old], sources: Sequence[Source], removals: Mapping[str, int]
) -> None:
    """Keep those of the records that lie in one of the sources as places in it; their rows go.

    `removals` are the numbers of the rows that say that keys were removed, which go, too.
    """
    left: list[Old] = list(old)
    for first, count, data in sources:
        places = _places(left, removals, data)
        if not places:
            continue
        for group in (places[start : start + _GROUP] for start in range(0, len(places), _GROUP)):
            pack = _Pack(no, first, first + count - 1, packed(_relative(group)))
            database.execute(_PACK, (no, seal_row(pack)))
        gone = {place.number for place in places}
        database.execute_many(_DROP, [(place.number,) for place in places])
        database.execute_many(_DROP, [(place.removal,) for place in places if place.removal])
        left = [record for record in left if record.number not in gone]


def packed_records(database: Database, no: int) -> list[Packed]:
    """Return a run's records that lie in others, in the order in which they were written."""
    what = f"a list of packed records in store {database.store}"
    found: list[Packed] = []
    for (body,) in database.execute(_PACKS, (no,)).fetchall():
        pack = open_row(body, _Pack, what)
        if pack.run != no:
            raise CheckpointCorruptError(what, "it belongs to another run")
        places = _absolute(unpacked(pack.places, _places_of, what))
        rows = (pack.first, pack.last)
        # Records lie in one that was written after them, in the commit that removed them.
        known = range(1, pack.first)
        if not pack.last < _NO_END or any(p.number not in known or p.removal not in range(pack.first) for p in places):
            raise CheckpointCorruptError(what, "its numbers are none that were given")
        found += [Packed(place.number, place.key, rows, place) for place in places]
        found += [Packed(place.removal, place.key, rows, None) for place in places if place.removal]
    return sorted(found, key=lambda packed: packed.number)


def read_packed(database: Database, records: Iterable[Packed]) -> Iterator[tuple[Packed, bytes | None]]:
    """Yield records that lie in others with their bytes, and nothing for bytes where a key was removed.

    They come in the order of what they lie in, which is then read once.
    """
    source, data = (0, -1), b""
    for record in sorted(records, key=lambda record: record.source):
        place = record.place
        if place is None:
            yield record, None
            continue
        if record.source != source:
            rows = database.execute(_DATA, record.source).fetchall()
            # What is missing or no bytes is found by the record sum.
            source, data = record.source, b"".join(cast("bytes", row[0]) for row in rows if isinstance(row[0], bytes))
        yield record, place.head + data[place.offset : place.offset + place.size] + place.tail


def unpack_records(database: Database, no: int) -> None:
    """Give a run's packed records rows of their own again."""
    packed = packed_records(database, no)
    if not packed:
        return
    rows = [(record.number, record.key, data) for record, data in read_packed(database, packed)]
    database.execute_many(_RECORD, rows)
    database.execute(_NO_PACKS, (no,))


def _relative(places: Sequence[_Place]) -> list[_Place]:
    """Return places whose numbers count from those of the place before: small ones, which compress well."""
    found: list[_Place] = []
    number = removal = offset = 0
    for place in places:
        found.append(
            _Place(
                place.number - number,
                place.removal - removal,
                place.key,
                place.offset - offset,
                place.size,
                place.head,
                place.tail,
            )
        )
        number, removal, offset = place.number, place.removal, place.offset + place.size
    return found


def _absolute(places: Sequence[_Place]) -> list[_Place]:
    found: list[_Place] = []
    number = removal = offset = 0
    for place in places:
        number, removal, offset = number + place.number, removal + place.removal, offset + place.offset
        found.append(_Place(number, removal, place.key, offset, place.size, place.head, place.tail))
        offset += place.size
    return found


def _places(old: Sequence[Old], removals: Mapping[str, int], data: bytes) -> list[_Place]:
    found: list[_Place] = []
    for index, start, end, offset in shared_bytes([record.data for record in old], data):
        number, key, small = old[index]
        found.append(_Place(number, removals.get(key, 0), key, offset, end - start, small[:start], small[end:]))
    return found
