"""What goes with checkpoints that are forgotten: rows of which nothing needs a byte any more, and dead bytes in others.

What is needed is `rehydrate.stores.retention`'s to say. It reads, inside of the transaction that forgets and holds the
lock of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rehydrate.stores.packing import open_recipe
from rehydrate.stores.retention import Version, needed

from .layout import Entry, Place, folded, live_row, seal_entries
from .names import key_name
from .records import entries_of, raw_bytes
from .session import Asked, Session
from .waves import LIVE_AGAIN, NEW_LIVE, columns

_ENTRIES: Final = """
SELECT seq, entries, body IS NOT NULL, length(data) FROM rehydrate.checkpoint WHERE run = %s ORDER BY seq
"""
_SINCE: Final = """
SELECT seq, entries FROM rehydrate.checkpoint
WHERE run = %s AND seq > (SELECT live_to FROM rehydrate.run WHERE no = %s) ORDER BY seq
"""
_LIVE: Final = NEW_LIVE + LIVE_AGAIN
_GONE: Final = "DELETE FROM rehydrate.live WHERE run = %s AND substr(sha256(key), 1, 16) = ANY(%b::bytea[])"
_LIVE_TO: Final = "UPDATE rehydrate.run SET live_to = seq WHERE no = %s"
_DROP: Final = "DELETE FROM rehydrate.checkpoint WHERE run = %s AND seq = ANY(%b::bigint[])"
_FORGET: Final = """
UPDATE rehydrate.checkpoint SET checkpoint_id = NULL, body = NULL WHERE run = %s AND seq = ANY(%b::bigint[])
"""
_LIST: Final = "UPDATE rehydrate.checkpoint SET entries = %b WHERE run = %s AND seq = %s"
_REWRITE: Final = "UPDATE rehydrate.checkpoint SET entries = %b, data = %b WHERE run = %s AND seq = %s"
_MOVE: Final = """
UPDATE rehydrate.live AS live SET start = moved.start, crc = moved.crc
FROM unnest(%b::bigint[], %b::integer[], %b::integer[], %b::integer[], %b::bytea[], %b::bytea[])
    AS moved (seq, start, size, crc, key, data)
WHERE live.run = %s AND live.seq = moved.seq
    AND substr(sha256(live.key), 1, 16) = substr(sha256(moved.key), 1, 16)
"""
#: Dead bytes in a row that are worth writing it anew, if they are half of it.
_WORTH: Final = 4096


def unneeded(session: Session, no: int, dropped: Sequence[int], what: str) -> list[Asked]:
    """Return the statements that free what no checkpoint needs once these are dropped."""
    rows = session.ask(_ENTRIES, (no,))
    commits = entries_of(((seq, entries) for seq, entries, _, _ in rows), what)
    gone = set(dropped)
    staying = [seq for seq, _, is_there, _ in rows if is_there and seq not in gone]
    kept = _kept(commits, staying)
    made = [Place(e.key, seq, e.start, e.size) for seq, entries in commits for e in entries if e.size < 0]
    sources = _sources(session, no, [place for place in made if kept[place.seq][place.key]], what)
    stays = set(staying)
    empty, asked = list[int](), list[Asked]()
    for (seq, entries), (_, _, is_there, length) in zip(commits, rows, strict=True):
        left = [entry for entry in entries if kept[seq][entry.key]]
        if seq not in stays and not left and seq not in sources:
            empty.append(seq)
        elif len(left) < len(entries) or not is_there:
            used = sum(entry.used for entry in left)
            if seq in sources or length - used < max(_WORTH, used):
                if len(left) < len(entries):
                    asked.append((_LIST, (seal_entries(left, session.store), no, seq)))
            else:
                asked += _rewritten(session, no, seq, left, what)
    return [(_FORGET, (no, [seq for seq in dropped if seq not in empty])), *asked, (_DROP, (no, empty))]


def written_live(session: Session, no: int, what: str) -> list[Asked]:
    """Return the statements that write what is live at the head, so that no earlier commit is needed to tell."""
    rows = session.ask(_SINCE, (no, no))
    live = folded(entries_of(rows, what))
    places = [live_row(place) for place in live.values() if place is not None]
    names = [key_name(key) for key, place in live.items() if place is None]
    return [(_LIVE, (no, *columns(6, places))), (_GONE, (no, names)), (_LIVE_TO, (no,))]


def _kept(commits: Iterable[tuple[int, list[Entry]]], staying: Sequence[int]) -> dict[int, dict[str, bool]]:
    """Say of what each commit did to each key whether a checkpoint that stays needs it."""
    versions: dict[str, list[Version]] = {}
    kept: dict[int, dict[str, bool]] = {}
    for seq, entries in commits:
        kept[seq] = {}
        for entry in entries:
            versions.setdefault(entry.key, []).append(Version(seq, entry.removed))
    for key, found in versions.items():
        for version, keep in zip(found, needed(found, staying), strict=True):
            kept[version.seq][key] = keep
    return kept


def _sources(session: Session, no: int, made: Sequence[Place], what: str) -> set[int]:
    """Return the numbers of the commits that these records are made of."""
    found: set[int] = set()
    for place, body in zip(made, raw_bytes(session, no, made, what), strict=True):
        spans, _ = open_recipe(body, place.seq, f"record {place.key!r} of {what}")
        found.update(span.seq for span in spans)
    return found


def _rewritten(session: Session, no: int, seq: int, left: Sequence[Entry], what: str) -> list[Asked]:
    """Return what writes a row anew with only these of its records, and lets live ones be found there."""
    lying = [entry for entry in left if entry.start >= 0]
    data = raw_bytes(session, no, [Place(entry.key, seq, entry.start, entry.size) for entry in lying], what)
    entries = [entry for entry in left if entry.start < 0]
    moved: list[tuple[object, ...]] = []
    at = 0
    for entry in lying:
        entries.append(entry._replace(start=at))
        moved.append(live_row(Place(entry.key, seq, at, entry.size)))
        at += entry.used
    return [
        (_REWRITE, (seal_entries(entries, session.store), b"".join(data), no, seq)),
        (_MOVE, (*columns(6, moved), no)),
    ]
