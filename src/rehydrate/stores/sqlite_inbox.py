"""Inboxes in SQLite: what was offered to runs that others have the hand on.

Every function runs inside a transaction of `sqlite_batch`. Which offers are the same is `inbox`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RunNotFoundError
from rehydrate.model.checkpoint import Offer

from .inbox import numbered_offer, same_offer, taken_offer
from .rows import open_row, seal_row
from .sqlite_database import Database, Value
from .sqlite_reading import NO_END, find_run

_NEXT: Final = "SELECT coalesce(max(number), 0) + 1 FROM rehydrate_offer WHERE run = ?"
_BY_KEY: Final = "SELECT number, body FROM rehydrate_offer WHERE run = ? AND key = ?"
_BY_NUMBER: Final = "SELECT number, body FROM rehydrate_offer WHERE run = ? AND number = ?"
_WAITING: Final = """
SELECT number, body FROM rehydrate_offer WHERE run = ? AND NOT is_taken AND number > ? ORDER BY number LIMIT ?
"""
_ALL: Final = "SELECT number, body FROM rehydrate_offer WHERE run = ? ORDER BY number"
_INSERT: Final = "INSERT INTO rehydrate_offer VALUES (?, ?, ?, ?, ?)"
_TAKE: Final = "UPDATE rehydrate_offer SET is_taken = 1, body = ? WHERE run = ? AND number = ?"


def write_offer(database: Database, offer: Offer) -> int:
    """Put something into a run's inbox and return its number. Raises `RunNotFoundError` or `OfferConflictError`."""
    run = find_run(database, offer.run_id)
    if run is None:
        raise RunNotFoundError(offer.run_id)
    row = database.execute(_BY_KEY, (run.no, offer.key)).fetchone()
    if row is not None:
        known = _opened(database, offer.run_id, row)
        if known.key != offer.key:
            raise CheckpointCorruptError(_what(database, offer.run_id), "its row belongs to another key")
        return same_offer(known, offer)
    number = database.execute(_NEXT, (run.no,)).fetchone()[0]
    insert_offers(database, run.no, [numbered_offer(offer, number)])
    return number


def insert_offers(database: Database, no: int, offers: Iterable[Offer]) -> None:
    """Write offers that have their numbers."""
    rows: list[tuple[Value, ...]] = [(no, o.number, o.key, int(o.taken), seal_row(o)) for o in offers]
    database.execute_many(_INSERT, rows)


def take_offers(database: Database, no: int, run_id: str, numbers: Iterable[int]) -> None:
    """Take offers out of an inbox. Raises `CommitConflictError` where one is not in it."""
    for number in numbers:
        row = database.execute(_BY_NUMBER, (no, number)).fetchone()
        found = _opened(database, run_id, row) if row is not None else None
        if found is None or found.taken:
            raise CommitConflictError(run_id, f"offer {number} in its inbox", "none")
        database.execute(_TAKE, (seal_row(taken_offer(found)), no, number))


def read_offers(database: Database, run_id: str, after: int, limit: int) -> list[Offer]:
    """Return what is in a run's inbox behind `after`."""
    run = find_run(database, run_id)
    if run is None:
        return []
    return [
        _opened(database, run_id, row)
        for row in database.execute(_WAITING, (run.no, min(after, NO_END), min(limit, NO_END))).fetchall()
    ]


def all_offers(database: Database, no: int, run_id: str) -> list[Offer]:
    """Return everything that was ever offered to a run."""
    return [_opened(database, run_id, row) for row in database.execute(_ALL, (no,)).fetchall()]


def _opened(database: Database, run_id: str, row: tuple[int, object]) -> Offer:
    found = open_row(row[1], Offer, _what(database, run_id))
    if (found.run_id, found.number) != (run_id, row[0]):
        raise CheckpointCorruptError(_what(database, run_id), "its row belongs to another offer")
    return found


def _what(database: Database, run_id: str) -> str:
    return f"an offer to run {run_id!r} in store {database.store}"
