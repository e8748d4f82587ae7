"""Records in PostgreSQL, read from where they lie: those of the head, some of them, or those of an earlier checkpoint.

Each is found through an index, whatever the planner thinks of the tables: the cost of loading a head must not grow with
the history. Which records a checkpoint has is checked by the caller, with its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.packing import made, open_recipe

from .layout import Did, Entry, Place, folded, open_entries, open_live
from .names import data_of, id_cell, key_name
from .session import Asked, Session

_FOUND: Final = """
CROSS JOIN LATERAL (
    SELECT substr(c.data, wanted.start + 1, abs(wanted.size)) AS data FROM rehydrate.checkpoint AS c
    WHERE c.run = %s AND c.seq = wanted.seq LIMIT 1
) AS found
"""
_LIVE: Final = "SELECT seq, start, size, crc, key, data FROM rehydrate.live WHERE run = {run}"
_NAMED: Final = f"{_LIVE} AND substr(sha256(key), 1, 16) = ANY(%b::bytea[])"
_WINDOW: Final = """
SELECT c.seq, c.entries FROM rehydrate.run AS run
JOIN rehydrate.checkpoint AS c ON c.run = run.no AND c.seq > run.live_to WHERE run.no = {run} ORDER BY c.seq
"""
#: Ways to say which run.
_BY_NUMBER: Final = "%s::bigint"
_BY_ID: Final = "(SELECT no FROM rehydrate.run WHERE run_id = %s)"
_BY_HEAD: Final = """(
    SELECT run.no FROM rehydrate.checkpoint AS head
    JOIN rehydrate.run AS run ON run.no = head.run AND run.seq = head.seq WHERE head.checkpoint_id = %s
)"""
_NUMBER: Final = "SELECT no FROM rehydrate.run WHERE run_id = %s"
_ENTRIES: Final = "SELECT seq, entries FROM rehydrate.checkpoint WHERE run = %s AND seq <= %s ORDER BY seq"
_PIECES: Final = f"""
SELECT wanted.n, found.data
FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::integer[]) AS wanted (n, seq, start, size) {_FOUND}
"""
# Whole rows, as many small ones lie beside each other: to ask for each part of each takes longer than the bytes.
_ROWS: Final = """
SELECT c.seq, c.data FROM rehydrate.checkpoint AS c
WHERE c.run = %s AND c.seq BETWEEN %s AND %s AND length(c.data) <= %s
"""
#: Bytes of a row that is read as a whole, and commits that one statement reads.
_SMALL_ROW: Final = 16 * 1024
_MANY: Final = 1024
#: So many rows are read in vain for one that is needed, at most.
_SPARSE: Final = 4


def head_of(ref: str | Latest) -> list[Asked]:
    """Return the statements that tell where the records of a head are; nothing for a checkpoint that is none."""
    by, name = (_BY_HEAD, id_cell(ref)) if isinstance(ref, str) else (_BY_ID, ref.run_id.encode())
    return [(_LIVE.format(run=by), (name,)), (_WINDOW.format(run=by), (name,))]


def head_places(rows: Sequence[Sequence[object]], window: Iterable[tuple[int, object]], what: str) -> list[Place]:
    """Return where the records of a head are, from what these statements gave."""
    live: dict[str, Place | None] = {place.key: place for place in (open_live(row, what) for row in rows)}
    live.update(folded(entries_of(window, what)))
    return [place for place in live.values() if place is not None]


def records_at(session: Session, no: int, seq: int | None, what: str) -> list[tuple[str, bytes]]:
    """Return the records of a checkpoint of a run; of the head without a number."""
    if seq is None:
        asked: list[Asked] = [(_LIVE.format(run=_BY_NUMBER), (no,)), (_WINDOW.format(run=_BY_NUMBER), (no,))]
        live, window = session.ask_all(asked)
        return bytes_at(session, no, head_places(live, window, what), what)
    places = folded(entries_of(session.ask(_ENTRIES, (no, seq)), what))
    return bytes_at(session, no, [place for place in places.values() if place is not None], what)


def live_records(session: Session, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
    """Return those of the head's records that exist."""
    what = f"run {run_id!r} in store {session.store}"
    no, window, places = named_places(session, run_id, keys, what)
    found = {place.key: place for place in places} | folded(window)
    return dict(bytes_at(session, no, [place for key in keys if (place := found.get(key)) is not None], what))


def named_places(session: Session, run_id: str, keys: Sequence[str], what: str) -> tuple[int, list[Did], list[Place]]:
    """Return a run's number (0 for an unknown one), what its commits did since what is live was written, and where
    records with some keys were then."""
    name, names = run_id.encode(), [key_name(key) for key in keys]
    asked: list[Asked] = [
        (_NUMBER, (name,)),
        (_WINDOW.format(run=_BY_ID), (name,)),
        (_NAMED.format(run=_BY_ID), (name, names)),
    ]
    rows, window, live = session.ask_all(asked)
    return rows[0][0] if rows else 0, [*entries_of(window, what)], [open_live(row, what) for row in live]


def bytes_at(session: Session, no: int, places: Sequence[Place], what: str) -> list[tuple[str, bytes]]:
    """Return the records at these places of a run."""
    lying = [place for place in places if place.start >= 0]
    raw = dict(zip(lying, raw_bytes(session, no, lying, what), strict=True))
    # By place: commits of one archive may have made the same key of others.
    recipes = [(place, body) for place, body in raw.items() if place.size < 0]
    done = dict(_all_made(session, no, recipes, what))
    found: list[tuple[str, bytes]] = []
    for place in places:
        if place.start >= 0:
            data = done[place] if place.size < 0 else raw[place]
        else:
            data = place.data
        if data is None:
            raise CheckpointCorruptError(what, "a record of it is not there")
        found.append((place.key, data))
    return found


def raw_bytes(session: Session, no: int, places: Sequence[Place], what: str) -> list[bytes]:
    """Return the bytes at these places of a run, as they lie there. Raises `CheckpointCorruptError` for one missing."""
    if not places:
        return []
    rows = [(n, place.seq, place.start, place.size) for n, place in enumerate(places)]
    # As text, which takes a third of the time that the driver needs for thousands of numbers.
    columns = [f"{{{','.join(map(str, column))}}}" for column in zip(*rows, strict=True)]
    found: dict[int, bytes] = {n: data_of(data, what) for n, data in session.ask(_PIECES, (*columns, no))}
    if len(found) != len(places):
        raise CheckpointCorruptError(what, "a record of it is not there")
    return [found[n] for n in range(len(places))]


def entries_of(rows: Iterable[tuple[int, object]], what: str) -> list[tuple[int, list[Entry]]]:
    """Return what commits did, by their numbers."""
    return [(seq, open_entries(entries, f"checkpoint number {seq} of {what}")) for seq, entries in rows]


def _all_made(
    session: Session, no: int, recipes: Sequence[tuple[Place, object]], what: str
) -> list[tuple[Place, bytes]]:
    """Return records that are made of earlier ones, given the place and the list of each."""
    opened = [(place, *open_recipe(body, place.seq, f"record {place.key!r} of {what}")) for place, body in recipes]
    rows = _rows_of(session, no, sorted({span.seq for _, spans, _ in opened for span in spans}))
    others = [Place("", s.seq, s.start, s.size) for _, spans, _ in opened for s in spans if s.seq not in rows]
    parts = iter(raw_bytes(session, no, others, what))
    found: list[tuple[Place, bytes]] = []
    for place, spans, tail in opened:
        shared = [rows[s.seq][s.start : s.start + s.size] if s.seq in rows else next(parts) for s in spans]
        found.append((place, made(spans, tail, shared, f"record {place.key!r} of {what}")))
    return found


def _rows_of(session: Session, no: int, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the data of those of these commits that lie close together and are small."""
    asked: list[Asked] = []
    first = 0
    for index, seq in enumerate(seqs):
        following = seqs[index + 1] if index + 1 < len(seqs) else None
        if following is None or following - seq > _SPARSE or following - seqs[first] >= _MANY:
            if index > first:
                asked.append((_ROWS, (no, seqs[first], seq, _SMALL_ROW)))
            first = index + 1
    return {seq: data for rows in (session.ask_all(asked) if asked else ()) for seq, data in rows}
