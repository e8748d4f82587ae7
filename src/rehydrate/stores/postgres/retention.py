"""What PostgreSQL keeps of a run and for how long: names of checkpoints, forgetting, and the end of a run.

What may go and what is needed is `rehydrate.stores.retention`'s to say. Each function locks its run first, so that no
commit comes in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointNotFoundError, RunBusyError, RunNotFoundError
from rehydrate.stores.retention import Version, droppable, needed
from rehydrate.stores.rows import TagRow, Written, open_row, open_written, seal_row

from .names import text_of
from .runs import find_run
from .session import Asked, Session
from .waves import columns

_TAGS: Final = "SELECT name, body FROM rehydrate.tag WHERE run = %s ORDER BY name"
_TAG: Final = """
INSERT INTO rehydrate.tag (run, name, body) VALUES (%s, %s, %s)
ON CONFLICT (run, name) DO UPDATE SET body = excluded.body
"""
_UNTAG: Final = "DELETE FROM rehydrate.tag WHERE run = %s AND name = %s"
_IS_THERE: Final = "SELECT 1 FROM rehydrate.checkpoint WHERE run = %s AND checkpoint_id = %s"
_NUMBERS: Final = "SELECT seq, checkpoint_id FROM rehydrate.checkpoint WHERE run = %s ORDER BY seq"
_VERSIONS: Final = """
SELECT key, seq, n, data IS NULL FROM rehydrate.record WHERE run = %s ORDER BY key, seq
"""
_DROP: Final = """
DELETE FROM rehydrate.record AS record USING unnest(%b::bigint[], %b::integer[]) AS old (seq, n)
WHERE record.run = %s AND record.seq = old.seq AND record.n = old.n
"""
_DROP_CHECKPOINTS: Final = "DELETE FROM rehydrate.checkpoint WHERE run = %s AND seq = ANY(%b::bigint[])"
_BODIES: Final = "SELECT seq, body FROM rehydrate.checkpoint WHERE run = %s AND seq = ANY(%b::bigint[])"
_REWRITE: Final = "UPDATE rehydrate.checkpoint SET body = %s WHERE run = %s AND seq = %s"
_DELETE: Final = (
    "DELETE FROM rehydrate.record WHERE run = %s",
    "DELETE FROM rehydrate.live WHERE run = %s",
    "DELETE FROM rehydrate.request WHERE run = %s",
    "DELETE FROM rehydrate.turn WHERE run = %s",
    "DELETE FROM rehydrate.event WHERE run = %s",
    "DELETE FROM rehydrate.tag WHERE run = %s",
    "DELETE FROM rehydrate.offer WHERE run = %s",
    "DELETE FROM rehydrate.checkpoint WHERE run = %s",
    "DELETE FROM rehydrate.run WHERE no = %s",
)


def write_tag(session: Session, run_id: str, name: str, checkpoint_id: str | None) -> None:
    """Give a checkpoint a name, or take the name back. Raises `CheckpointNotFoundError`."""
    with session.writing():
        run = find_run(session, run_id, None, lock=True)
        if run is None:
            raise RunNotFoundError(run_id)
        if checkpoint_id is None:
            session.ask_last(_UNTAG, (run.no, name.encode()))
            return
        if not session.ask(_IS_THERE, (run.no, checkpoint_id.encode())):
            raise CheckpointNotFoundError(checkpoint_id)
        session.ask_last(*tagged(run.no, run_id, name, checkpoint_id))


def tagged(no: int, run_id: str, name: str, checkpoint_id: str) -> Asked:
    """Return the statement that gives a checkpoint a name."""
    return _TAG, (no, name.encode(), seal_row(TagRow(run_id, name, checkpoint_id)))


def read_tags(session: Session, run_id: str) -> dict[str, str]:
    """Return the names of a run's checkpoints with their ids."""
    with session.reading():
        run = find_run(session, run_id, None)
        return tags_of(session, run.no, run_id) if run else {}


def tags_of(session: Session, no: int, run_id: str) -> dict[str, str]:
    """Return the names of a run's checkpoints, given its number."""
    found: dict[str, str] = {}
    for name, body in session.ask(_TAGS, (no,)):
        what = f"name {name!r} of run {run_id!r} in store {session.store}"
        row = open_row(body, TagRow, what)
        if (row.run_id, row.name.encode()) != (run_id, name):
            raise CheckpointCorruptError(what, "its row is another name's")
        found[row.name] = row.checkpoint_id
    return found


def forget_checkpoints(session: Session, run_id: str, asked: Sequence[int], before: list[int]) -> list[int]:
    """Drop checkpoints, but for the head and what has a name, and the records that no other one needs.

    `before` is what an earlier attempt was about to drop, and is set to what this one drops.
    """
    with session.writing():
        run = find_run(session, run_id, None, lock=True)
        if run is None:
            return []
        known = {seq: text_of(name, f"run {run_id!r}") for seq, name in session.ask(_NUMBERS, (run.no,))}
        if before and not any(seq in known for seq in before):
            return before
        named = _numbers_of(session, known, tags_of(session, run.no, run_id))
        dropped = droppable(run.standing.seq, named, known, asked)
        before[:] = dropped
        if not dropped:
            return []
        gone = set(dropped)
        staying = [seq for seq in known if seq not in gone]
        session.ask_all(
            [
                *_lineage(session, run.no, run_id, list(known), gone),
                (_DROP, (*columns(2, _unneeded(session, run.no, staying)), run.no)),
                (_DROP_CHECKPOINTS, (run.no, dropped)),
            ]
        )
        return dropped


def delete_run(session: Session, run_id: str, now: float | None, *, again: bool) -> bool:
    """Delete a run and all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
    with session.writing():
        run = find_run(session, run_id, now, lock=True)
        if run is None:
            return again
        owner = run.standing.owner
        if owner is not None and run.alive:
            raise RunBusyError(run_id, owner)
        session.ask_all([(statement, (run.no,)) for statement in _DELETE])
    return True


def _numbers_of(session: Session, known: dict[int, str], tags: dict[str, str]) -> set[int]:
    by_id = {checkpoint_id: seq for seq, checkpoint_id in known.items()}
    for checkpoint_id in tags.values():
        if checkpoint_id not in by_id:
            raise CheckpointCorruptError(f"checkpoint {checkpoint_id!r} in store {session.store}", "it has a name only")
    return {by_id[checkpoint_id] for checkpoint_id in tags.values()}


def _unneeded(session: Session, no: int, staying: Sequence[int]) -> list[tuple[object, ...]]:
    """Return the versions of records, as sequence number and place, that no checkpoint needs."""
    found: list[tuple[object, ...]] = []
    for _, rows in groupby(session.ask(_VERSIONS, (no,)), lambda row: row[0]):
        versions = [(Version(seq, removed), n) for _, seq, n, removed in rows]
        keeps = needed([version for version, _ in versions], staying)
        found += [(version.seq, n) for (version, n), keep in zip(versions, keeps, strict=True) if not keep]
    return found


def _lineage(session: Session, no: int, run_id: str, known: Sequence[int], gone: set[int]) -> list[Asked]:
    """Return what lets each checkpoint whose predecessor was dropped name the one before that instead."""
    pairs: list[tuple[int, int | None]] = []
    before: int | None = None
    is_open = False
    for seq in known:
        if seq in gone:
            is_open = True
            continue
        if is_open:
            pairs.append((seq, before))
        before, is_open = seq, False
    wanted = [seq for pair in pairs for seq in pair if seq is not None]
    written: dict[int, Written] = {}
    for seq, body in session.ask(_BODIES, (no, wanted)) if wanted else []:
        written[seq] = open_written(body, f"checkpoint number {seq} of run {run_id!r} in store {session.store}")
    asked: list[Asked] = []
    for seq, former in pairs:
        named = written[former].header.checkpoint_id if former is not None else None
        row = written[seq]
        header = msgspec.structs.replace(row.header, previous_checkpoint_id=named)
        asked.append((_REWRITE, (seal_row(Written(header, row.first, row.end)), no, seq)))
    return asked
