"""What the PostgreSQL store writes: commits, leases, and the end of a run.

Every function here may be called again for the same calls after a connection was lost (`again`): what had been done by
then is found, and not taken for somebody else's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import psycopg

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RehydrateError, RunBusyError
from rehydrate.model.checkpoint import Commit, Header
from rehydrate.stores.rows import open_written
from rehydrate.stores.standing import check_commit, id_in_use, standing_renewed

from .failures import is_of_rows, translate
from .names import text_of
from .runs import NOW, find_run
from .session import Asked, Session
from .waves import checkpoint_body, in_order, wave

_RENEW: Final = f"""
UPDATE rehydrate.run AS run SET lease_end = {NOW} + %s
WHERE run.run_id = %s AND run.owner = %s AND run.epoch = %s RETURNING no
"""
_CHECKPOINT: Final = """
SELECT run.run_id, c.body FROM rehydrate.checkpoint AS c LEFT JOIN rehydrate.run AS run ON run.no = c.run
WHERE c.checkpoint_id = %s
"""
_AT: Final = """
SELECT c.body FROM rehydrate.checkpoint AS c JOIN rehydrate.run AS run ON run.no = c.run
WHERE run.run_id = %s AND c.seq = %s
"""
_DELETE: Final = (
    "DELETE FROM rehydrate.record WHERE run = %s",
    "DELETE FROM rehydrate.live WHERE run = %s",
    "DELETE FROM rehydrate.request WHERE run = %s",
    "DELETE FROM rehydrate.turn WHERE run = %s",
    "DELETE FROM rehydrate.event WHERE run = %s",
    "DELETE FROM rehydrate.checkpoint WHERE run = %s",
    "DELETE FROM rehydrate.run WHERE no = %s",
)
#: Of a unique index that refused a row: what the commit expected there, and what was found.
_TAKEN: Final = {
    "request_pkey": ("requests of its own", "one of another run"),
    "turn_pkey": ("its key as its own", "another turn's"),
}

#: What came of a write: nothing to tell, or why it was not done.
Outcome: TypeAlias = RehydrateError | None


class Renewal(NamedTuple):
    """A lease to lengthen."""

    run_id: str
    owner: str
    epoch: int
    seconds: float


def write_commits(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[Outcome]:
    """Write commits of different runs in one transaction; return for each `None`, or why it was not taken.

    What one of them does wrong undoes that one only.
    """
    try:
        taken = session.write(*_wave(session, commits, now))[-1]
    except psycopg.Error as error:
        if not is_of_rows(error):
            raise
        session.undo()
        if len(commits) == 1:
            return [_refused(session, commits[0], error)]
        return _write_apart(session, commits, now, again=again)
    return _outcomes(session, commits, {row[0] for row in taken}, now, again=again)


def renew_leases(session: Session, leases: Sequence[Renewal], now: float | None) -> list[Outcome]:
    """Lengthen leases; return for each `None`, or why not."""
    asked: list[Asked] = [
        (_RENEW, (now, seconds, run_id.encode(), owner.encode(), epoch)) for run_id, owner, epoch, seconds in leases
    ]
    rows = session.write(*asked)
    outcomes: list[Outcome] = []
    for found, (run_id, owner, epoch, _) in zip(rows, leases, strict=True):
        outcomes.append(None if found else _not_renewed(session, run_id, owner, epoch))
    return outcomes


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


def _wave(session: Session, commits: Sequence[Commit], now: float | None) -> list[Asked]:
    word = session.place.word
    return wave(commits, now, [word(commit.header.run_id) if commit.events else None for commit in commits])


def _write_apart(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[Outcome]:
    """Write each commit with a savepoint around it, all in one transaction."""
    taken: set[int] = set()
    errors: dict[int, psycopg.Error] = {}
    with session.writing():
        session.ask(*in_order(commits))
        for number, commit in enumerate(commits, 1):
            try:
                with session.apart():
                    rows = session.ask(*_wave(session, [commit], now)[-1])
            except psycopg.Error as error:
                if not is_of_rows(error):
                    raise
                errors[number] = error
            else:
                taken.update([number] if rows else [])
    refused = {number: _refused(session, commits[number - 1], error) for number, error in errors.items()}
    outcomes = _outcomes(session, commits, taken | set(errors), now, again=again)
    return [refused.get(number, outcome) for number, outcome in enumerate(outcomes, 1)]


def _outcomes(
    session: Session, commits: Sequence[Commit], taken: set[int], now: float | None, *, again: bool
) -> list[Outcome]:
    return [
        None if number in taken else _lost(session, commit, now, again=again)
        for number, commit in enumerate(commits, 1)
    ]


def _lost(session: Session, commit: Commit, now: float | None, *, again: bool) -> Outcome:
    """Say why a commit's run was not as expected; `None` where this very commit made it so in an earlier attempt."""
    header = commit.header
    try:
        run = find_run(session, header.run_id, now)
        if again and _is_done(session, commit):
            return None
        check_commit(commit, run.standing if run else None)
    except RehydrateError as error:
        return error
    return CommitConflictError(header.run_id, f"head {commit.expected}", "another one, which was gone a moment later")


def _is_done(session: Session, commit: Commit) -> bool:
    rows = session.ask(_CHECKPOINT, (commit.header.checkpoint_id.encode(),))
    return bool(rows) and rows[0][0] == commit.header.run_id.encode() and rows[0][1] == checkpoint_body(commit)


def _refused(session: Session, commit: Commit, error: psycopg.Error) -> RehydrateError:
    """Say what it means that a row of a commit was refused by the database."""
    header = commit.header
    constraint = error.diag.constraint_name or ""
    expected = _TAKEN.get(constraint)
    if expected is not None:
        return CommitConflictError(header.run_id, *expected)
    with contextlib.suppress(psycopg.Error):
        if constraint == "checkpoint_checkpoint_id_key":
            return _id_in_use(session, header)
        if constraint == "checkpoint_pkey":
            return _number_in_use(session, header)
    return translate(error, session.store)


def _id_in_use(session: Session, header: Header) -> RehydrateError:
    what = f"a checkpoint in store {session.store}"
    rows = session.ask(_CHECKPOINT, (header.checkpoint_id.encode(),))
    if not rows:
        return CheckpointCorruptError(what, "an index has it and its table does not")
    found = open_written(rows[0][1], what).header
    if rows[0][0] is None:
        return CheckpointCorruptError(
            f"run {found.run_id!r} in store {session.store}",
            f"its checkpoint {found.checkpoint_id} is there and the row of the run is not",
        )
    return id_in_use(header, text_of(rows[0][0], what), found.seq)


def _number_in_use(session: Session, header: Header) -> RehydrateError:
    what = f"a checkpoint of run {header.run_id!r} in store {session.store}"
    rows = session.ask(_AT, (header.run_id.encode(), header.seq))
    taken = open_written(rows[0][0], what).header.checkpoint_id if rows else "another one"
    return CommitConflictError(header.run_id, "a free number", f"number {header.seq} taken by its checkpoint {taken}")


def _not_renewed(session: Session, run_id: str, owner: str, epoch: int) -> RehydrateError:
    try:
        run = find_run(session, run_id, None)
        standing_renewed(run.standing if run else None, run_id, owner, epoch, 0.0)
    except RehydrateError as error:
        return error
    return CommitConflictError(
        run_id, f"owner {owner!r} at epoch {epoch}", "another one, which was gone a moment later"
    )
