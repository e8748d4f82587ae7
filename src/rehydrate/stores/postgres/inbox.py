"""Inboxes in PostgreSQL: what was offered to runs that others have the hand on.

Which offers are the same is `rehydrate.stores.inbox`'s to say. That a commit takes them is a part of its wave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from psycopg.rows import TupleRow

from rehydrate.errors import CheckpointCorruptError, RunNotFoundError
from rehydrate.model.checkpoint import Offer
from rehydrate.stores.inbox import numbered_offer, same_offer, taken_offer
from rehydrate.stores.rows import open_row, seal_row

from .names import data_of, key_name
from .runs import find_run
from .session import Asked, Session
from .waves import columns

_KNOWN: Final = "SELECT number, body, data FROM rehydrate.offer WHERE run = %s AND name = %s"
_NEXT: Final = "SELECT coalesce(max(number), 0) + 1 FROM rehydrate.offer WHERE run = %s"
_WAITING: Final = """
SELECT o.number, o.body, o.data FROM rehydrate.offer AS o
WHERE o.run = (SELECT no FROM rehydrate.run WHERE run_id = %s) AND o.data IS NOT NULL AND o.number > %s
ORDER BY o.number LIMIT %s
"""
_ALL: Final = "SELECT number, body, data FROM rehydrate.offer WHERE run = %s ORDER BY number"
_INSERT: Final = """
INSERT INTO rehydrate.offer (run, number, name, body, data)
SELECT %s, * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[])
"""
_MISSING: Final = """
SELECT t.number FROM unnest(%b::bigint[]) AS t (number)
LEFT JOIN rehydrate.offer AS o ON o.run = %s AND o.number = t.number AND o.data IS NOT NULL
WHERE o.number IS NULL ORDER BY t.number LIMIT 1
"""
#: No number is higher.
_NO_END: Final = 2**63 - 1


def write_offer(session: Session, offer: Offer) -> int:
    """Put something into a run's inbox and return its number. Raises `RunNotFoundError` or `OfferConflictError`."""
    with session.writing():
        run = find_run(session, offer.run_id, None, lock=True)
        if run is None:
            raise RunNotFoundError(offer.run_id)
        known, following = session.ask_all([(_KNOWN, (run.no, key_name(offer.key))), (_NEXT, (run.no,))])
        if known:
            found = _opened(session, offer.run_id, known[0])
            if found.key != offer.key:
                raise CheckpointCorruptError(_what(session, offer.run_id), "its row belongs to another key")
            return same_offer(found, offer)
        number = following[0][0]
        session.ask_last(*inserted(run.no, [numbered_offer(offer, number)]))
        return number


def inserted(no: int, offers: Iterable[Offer]) -> Asked:
    """Return the statement that writes offers which have their numbers."""
    return _INSERT, (no, *columns(4, map(_row, offers)))


def missing_offer(session: Session, no: int, numbers: Sequence[int]) -> int | None:
    """Return the first of these offers that is not in a run's inbox."""
    rows = session.ask(_MISSING, (list(numbers), no))
    return rows[0][0] if rows else None


def read_offers(session: Session, run_id: str, after: int, limit: int) -> list[Offer]:
    """Return what is in a run's inbox behind `after`."""
    rows = session.ask(_WAITING, (run_id.encode(), min(after, _NO_END), min(limit, _NO_END)))
    return [_opened(session, run_id, row) for row in rows]


def all_offers(session: Session, no: int, run_id: str) -> list[Offer]:
    """Return everything that was ever offered to a run."""
    return [_opened(session, run_id, row) for row in session.ask(_ALL, (no,))]


def _row(offer: Offer) -> tuple[object, ...]:
    bare = msgspec.structs.replace(offer, body=b"", taken=False)
    return offer.number, key_name(offer.key), seal_row(bare), None if offer.taken else offer.body


def _opened(session: Session, run_id: str, row: TupleRow) -> Offer:
    number, body, data = row
    what = _what(session, run_id)
    bare = open_row(body, Offer, what)
    if (bare.run_id, bare.number) != (run_id, number):
        raise CheckpointCorruptError(what, "its row belongs to another offer")
    if data is None:
        return taken_offer(bare)
    if hashlib.sha256(data_of(data, what)).digest() != bare.digest:
        raise CheckpointCorruptError(what, "what was offered was changed")
    return msgspec.structs.replace(bare, body=data)


def _what(session: Session, run_id: str) -> str:
    return f"an offer to run {run_id!r} in store {session.store}"
