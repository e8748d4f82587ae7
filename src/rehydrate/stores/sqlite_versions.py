"""The rows of an earlier checkpoint: of each key the newest version up to it, wherever its bytes lie.

It runs inside a transaction of `sqlite_batch`, and reads only the data that it gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from .sqlite_database import Database
from .sqlite_packing import Packed, packed_records, read_packed

_WRITTEN: Final = """
SELECT record.id, record.key, record.data IS NULL FROM rehydrate_checkpoint AS checkpoint
JOIN rehydrate_record AS record ON record.id BETWEEN checkpoint.first AND checkpoint.last
WHERE checkpoint.run = ? AND checkpoint.seq <= ? ORDER BY checkpoint.seq, record.id
"""
_LAST: Final = "SELECT last FROM rehydrate_checkpoint WHERE run = ? AND seq = ?"
_DATA: Final = "SELECT data FROM rehydrate_record WHERE id BETWEEN ? AND ? ORDER BY id"
#: By key: first and last row of the version, a place in another record, or nothing where the key was removed.
_Newest: TypeAlias = dict[str, tuple[int, int] | Packed | None]


def rows_at(database: Database, no: int, seq: int) -> Iterator[tuple[object, object]]:
    """Give the rows of an earlier checkpoint: of each key the newest record, unless the key was removed."""
    newest: _Newest = {}
    last = database.execute(_LAST, (no, seq)).fetchone()[0]
    packed = [record for record in packed_records(database, no) if record.number <= last]
    packed.reverse()
    current: str | None = None
    for row_id, key, gone in database.execute(_WRITTEN, (no, seq)).fetchall():
        while packed and packed[-1].number < row_id:
            _note(newest, packed.pop())
        if key is not None:
            current = key
            newest[key] = None if gone else (row_id, row_id)
            continue
        span = newest.get(current) if current is not None else None
        if current is not None and span is not None and not isinstance(span, Packed):
            newest[current] = (span[0], row_id)
    for record in reversed(packed):
        _note(newest, record)
    for record, data in read_packed(database, [place for place in newest.values() if isinstance(place, Packed)]):
        yield record.key, data
    for key, place in newest.items():
        if place is not None and not isinstance(place, Packed):
            for (data,) in database.execute(_DATA, place):
                yield key, data


def _note(newest: _Newest, record: Packed) -> None:
    newest[record.key] = None if record.place is None else record
