"""What PostgreSQL keeps of a run and for how long: names of checkpoints, forgetting, and the end of a run.

What may go and what is needed is `rehydrate.stores.retention`'s to say. Each function locks its run first, so that no
commit comes in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointNotFoundError, RunBusyError, RunNotFoundError
from rehydrate.stores.retention import droppable
from rehydrate.stores.rows import TagRow, open_row, seal_row

from .forgetting import unneeded, written_live
from .headers import Named, header_columns, open_header, seal_header
from .names import id_cell, id_in_cell
from .runs import RunRow, find_run
from .session import Asked, Session

_TAGS: Final = "SELECT name, body FROM rehydrate.tag WHERE run = %s ORDER BY name"
_TAG: Final = """
INSERT INTO rehydrate.tag (run, name, body) VALUES (%s, %s, %s)
ON CONFLICT (run, name) DO UPDATE SET body = excluded.body
"""
_UNTAG: Final = "DELETE FROM rehydrate.tag WHERE run = %s AND name = %s"
_IS_THERE: Final = "SELECT 1 FROM rehydrate.checkpoint WHERE run = %s AND checkpoint_id = %s"
_NUMBERS: Final = """
SELECT seq, checkpoint_id FROM rehydrate.checkpoint WHERE run = %s AND body IS NOT NULL ORDER BY seq
"""
_HEADERS: Final = f"""
SELECT {header_columns("c")} FROM rehydrate.checkpoint AS c WHERE c.run = %s AND c.seq = ANY(%b::bigint[])
"""
_REWRITE: Final = "UPDATE rehydrate.checkpoint SET body = %s WHERE run = %s AND seq = %s"
_DELETE: Final = (
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
        if not session.ask(_IS_THERE, (run.no, id_cell(checkpoint_id))):
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
        what = f"run {run_id!r} in store {session.store}"
        known = {seq: id_in_cell(cell, what) for seq, cell in session.ask(_NUMBERS, (run.no,))}
        if before and not any(seq in known for seq in before):
            return before
        named = _numbers_of(session, known, tags_of(session, run.no, run_id))
        dropped = droppable(run.standing.seq, named, known, asked)
        before[:] = dropped
        if not dropped:
            return []
        # First: records that it finds may be moved by what is freed.
        session.ask_all(written_live(session, run.no, what))
        session.ask_all([*_lineage(session, run, known, set(dropped)), *unneeded(session, run.no, dropped, what)])
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


def _numbers_of(session: Session, known: dict[int, str | None], tags: dict[str, str]) -> set[int]:
    by_id = {checkpoint_id: seq for seq, checkpoint_id in known.items()}
    for checkpoint_id in tags.values():
        if checkpoint_id not in by_id:
            raise CheckpointCorruptError(f"checkpoint {checkpoint_id!r} in store {session.store}", "it has a name only")
    return {by_id[checkpoint_id] for checkpoint_id in tags.values()}


def _lineage(session: Session, run: RunRow, known: dict[int, str | None], gone: set[int]) -> list[Asked]:
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
    rows = {row[0]: row for row in session.ask(_HEADERS, (run.no, [seq for seq, _ in pairs]))} if pairs else {}
    standing = run.standing
    asked: list[Asked] = []
    for seq, former in pairs:
        named = known[former] if former is not None else None
        header = open_header(session, Named(standing.run_id, standing.workflow), seq, tuple(rows[seq]))
        header = msgspec.structs.replace(header, previous_checkpoint_id=named)
        asked.append((_REWRITE, (seal_header(header, named), run.no, seq)))
    return asked
