"""Names of checkpoints in SQLite, and what is dropped with those that nobody wants any more.

Every function runs inside a transaction of `sqlite_batch`. What may go and what is needed is `retention`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointNotFoundError, RunNotFoundError

from .checkpoint_rows import Written, seal_written
from .retention import Version, droppable, needed
from .rows import TagRow, open_row, seal_row
from .sqlite_checkpoints import CHECKPOINT, open_checkpoint
from .sqlite_database import Database
from .sqlite_packing import unpack_records
from .sqlite_reading import RunRow, find_checkpoint, find_run, read_written

_TAGS: Final = "SELECT name, body FROM rehydrate_tag WHERE run = ? ORDER BY name"
_TAG: Final = "INSERT OR REPLACE INTO rehydrate_tag VALUES (?, ?, ?)"
_UNTAG: Final = "DELETE FROM rehydrate_tag WHERE run = ? AND name = ?"
_NUMBERS: Final = "SELECT seq FROM rehydrate_checkpoint WHERE run = ? AND NOT forgotten ORDER BY seq"
_FORGET: Final = "UPDATE rehydrate_checkpoint SET forgotten = 1 WHERE run = ? AND seq = ?"
_REWRITE: Final = "UPDATE rehydrate_checkpoint SET body = ? WHERE run = ? AND seq = ?"
_DROP: Final = "DELETE FROM rehydrate_record WHERE id BETWEEN ? AND ?"
_DROP_CHECKPOINT: Final = "DELETE FROM rehydrate_checkpoint WHERE run = ? AND seq = ?"
_ALL: Final = f"""
SELECT seq, forgotten, {CHECKPOINT} FROM rehydrate_checkpoint AS checkpoint WHERE run = ? ORDER BY seq
"""  # noqa: S608
_ROWS: Final = "SELECT id, key, data IS NULL FROM rehydrate_record WHERE id BETWEEN ? AND ? ORDER BY id"


class _Span(NamedTuple):
    """The rows of one version: numbers of the first and the last."""

    version: Version
    first: int
    last: int


def write_tag(database: Database, run_id: str, name: str, checkpoint_id: str | None) -> None:
    """Give a checkpoint a name, or take the name back. Raises `CheckpointNotFoundError`."""
    run = find_run(database, run_id)
    if run is None:
        raise RunNotFoundError(run_id)
    if checkpoint_id is None:
        database.execute(_UNTAG, (run.no, name))
        return
    place = find_checkpoint(database, checkpoint_id)
    if place is None or place[0] != run.no:
        raise CheckpointNotFoundError(checkpoint_id)
    database.execute(_TAG, (run.no, name, seal_row(TagRow(run_id, name, checkpoint_id))))


def read_tags(database: Database, run_id: str) -> dict[str, str]:
    """Return the names of a run's checkpoints with their ids."""
    run = find_run(database, run_id)
    return tags_of(database, run.no, run_id) if run else {}


def tags_of(database: Database, no: int, run_id: str) -> dict[str, str]:
    """Return the names of a run's checkpoints, given its number."""
    found: dict[str, str] = {}
    for name, body in database.execute(_TAGS, (no,)).fetchall():
        what = f"name {name!r} of run {run_id!r} in store {database.store}"
        row = open_row(body, TagRow, what)
        if (row.run_id, row.name) != (run_id, name):
            raise CheckpointCorruptError(what, "its row is another name's")
        found[row.name] = row.checkpoint_id
    return found


def forget_checkpoints(database: Database, run_id: str, asked: Sequence[int]) -> list[int]:
    """Drop checkpoints, but for the head and what has a name, and the rows that no other one needs."""
    run = find_run(database, run_id)
    if run is None:
        return []
    known = [row[0] for row in database.execute(_NUMBERS, (run.no,)).fetchall()]
    tagged: set[int] = set()
    for checkpoint_id in tags_of(database, run.no, run_id).values():
        place = find_checkpoint(database, checkpoint_id)
        if place is None:
            raise CheckpointCorruptError(
                f"checkpoint {checkpoint_id!r} in store {database.store}", "it has a name only"
            )
        tagged.add(place[1])
    dropped = droppable(run.standing.seq, tagged, set(known), asked)
    if not dropped:
        return []
    gone = set(dropped)
    staying = [seq for seq in known if seq not in gone]
    database.execute_many(_FORGET, ((run.no, seq) for seq in dropped))
    # First, as it looks at the rows that are dropped then.
    _join_lineage(database, run, known, gone)
    unpack_records(database, run.no)
    _drop_unneeded(database, run, staying)
    return dropped


def _drop_unneeded(database: Database, run: RunRow, staying: Sequence[int]) -> None:
    """Drop the rows that no checkpoint needs, and the forgotten checkpoints that have none left."""
    spans: dict[str, list[_Span]] = {}
    left: dict[int, int] = {}
    for seq, forgotten, *row in database.execute(_ALL, (run.no,)).fetchall():
        # Which rows are a checkpoint's is told by its sealed body: changed numbers must not reach into another run.
        what = _what(database, run, seq)
        written = open_checkpoint(run.standing, tuple(row), what, is_forgotten=bool(forgotten))
        found = _spans(database, seq, written)
        if forgotten:
            left[seq] = len(found)
        for key, span in found:
            spans.setdefault(key, []).append(span)
    dropped: list[tuple[int, int]] = []
    for versions in spans.values():
        keeps = needed([span.version for span in versions], staying)
        for span, keep in zip(versions, keeps, strict=True):
            if keep:
                continue
            dropped.append((span.first, span.last))
            if span.version.seq in left:
                left[span.version.seq] -= 1
    database.execute_many(_DROP, dropped)
    database.execute_many(_DROP_CHECKPOINT, ((run.no, seq) for seq, count in left.items() if not count))


def _spans(database: Database, seq: int, written: Written) -> list[tuple[str, _Span]]:
    """Return what a checkpoint's commit wrote, by key."""
    found: list[tuple[str, _Span]] = []
    for number, key, removed in database.execute(_ROWS, (written.first, written.end - 1)).fetchall():
        if key is not None:
            found.append((key, _Span(Version(seq, bool(removed)), number, number)))
        elif found:
            before, span = found[-1]
            found[-1] = (before, span._replace(last=number))
    return found


def _join_lineage(database: Database, run: RunRow, known: Sequence[int], gone: set[int]) -> None:
    """Let each checkpoint whose predecessor was dropped name the one before that instead."""
    before: int | None = None
    is_open = False
    for seq in known:
        if seq in gone:
            is_open = True
            continue
        if is_open:
            named = read_written(database, run, before).header.checkpoint_id if before is not None else None
            written = read_written(database, run, seq)
            header = msgspec.structs.replace(written.header, previous_checkpoint_id=named)
            sealed = seal_written(Written(header, written.first, written.end), None)
            database.execute(_REWRITE, (sealed, run.no, seq))
        before, is_open = seq, False


def _what(database: Database, run: RunRow, seq: int) -> str:
    return f"checkpoint number {seq} of run {run.standing.run_id!r} in store {database.store}"
