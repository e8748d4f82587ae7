"""What the PostgreSQL store writes at every turn: commits and leases.

Every function here may be called again for the same calls after a connection was lost (`again`): what had been done by
then is found, and not taken for somebody else's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import psycopg

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RehydrateError
from rehydrate.model.checkpoint import Commit, Header
from rehydrate.stores.standing import Standing, check_commit, id_in_use, standing_renewed

from .failures import is_of_rows, translate
from .inbox import missing_offer
from .names import id_cell, id_in_cell, text_of
from .planning import planned
from .runs import NOW, find_run
from .session import Asked, Session
from .waves import Plan, checkpoint_body, wave

_RENEW: Final = f"""
UPDATE rehydrate.run AS run SET lease_end = {NOW} + %s
WHERE run.run_id = %s AND run.owner = %s AND run.epoch = %s RETURNING no
"""
_CHECKPOINTS: Final = """
SELECT c.checkpoint_id, run.run_id, c.body, c.seq
FROM rehydrate.checkpoint AS c LEFT JOIN rehydrate.run AS run ON run.no = c.run
WHERE c.checkpoint_id = ANY(%b::bytea[]) LIMIT 1
"""
_AT: Final = """
SELECT c.checkpoint_id FROM rehydrate.checkpoint AS c JOIN rehydrate.run AS run ON run.no = c.run
WHERE run.run_id = %s AND c.seq = %s
"""
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
        with session.writing():
            plans = planned(session, commits)
            good = [plan for plan in plans if isinstance(plan, Plan)]
            if len(good) == len(commits):
                taken = session.ask_all([*_wave(session, commits, good, now), ("COMMIT", ())])[-2]
            else:
                session.undo()
                taken = []
    except psycopg.Error as error:
        if not is_of_rows(error):
            raise
        session.undo()
        if len(commits) == 1:
            return [refused(session, commits, error)]
        return _write_apart(session, commits, now, again=again)
    if len(good) < len(commits):
        # A run that is damaged holds up no other, nor does a commit that is too large.
        rest = [commit for commit, plan in zip(commits, plans, strict=True) if isinstance(plan, Plan)]
        outcomes = iter(write_commits(session, rest, now, again=again) if rest else ())
        return [next(outcomes) if isinstance(plan, Plan) else plan for plan in plans]
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


def _wave(session: Session, commits: Sequence[Commit], plans: Sequence[Plan], now: float | None) -> list[Asked]:
    word = session.place.word
    words = [word(commit.header.run_id) if commit.events else None for commit in commits]
    return wave(commits, plans, now, words)


def _write_apart(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[Outcome]:
    """Write each commit with a savepoint around what it reads and writes, all in one transaction."""
    taken: set[int] = set()
    errors: dict[int, psycopg.Error] = {}
    errors_of: dict[int, RehydrateError] = {}
    # Runs are locked one by one, in the order in which a wave locks them.
    numbered = sorted(enumerate(commits, 1), key=lambda item: item[1].header.run_id.encode())
    with session.writing():
        for number, commit in numbered:
            try:
                outcome = _write_one(session, commit, now)
            except psycopg.Error as error:
                if not is_of_rows(error):
                    raise
                errors[number] = error
                continue
            if isinstance(outcome, RehydrateError):
                errors_of[number] = outcome
            elif outcome:
                taken.add(number)
    errors_of |= {number: refused(session, [commits[number - 1]], error) for number, error in errors.items()}
    outcomes = _outcomes(session, commits, taken | set(errors_of), now, again=again)
    return [errors_of.get(number, outcome) for number, outcome in enumerate(outcomes, 1)]


def _write_one(session: Session, commit: Commit, now: float | None) -> RehydrateError | bool:
    """Say whether a commit was taken, or what is wrong with its run; where it raises, nothing of it is done."""
    with session.apart():
        (plan,) = planned(session, [commit])
        if isinstance(plan, Plan):
            return bool(session.ask(*_wave(session, [commit], [plan], now)[-1]))
    return plan


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
        if again and run is not None and _is_done(session, commit, run.standing):
            return None
        check_commit(commit, run.standing if run else None)
        missing = missing_offer(session, run.no if run else 0, commit.taken) if commit.taken else None
    except RehydrateError as error:
        return error
    if missing is not None:
        return CommitConflictError(header.run_id, f"offer {missing} in its inbox", "none")
    return CommitConflictError(header.run_id, f"head {commit.expected}", "another one, which was gone a moment later")


def _is_done(session: Session, commit: Commit, standing: Standing) -> bool:
    header, lease = commit.header, commit.lease
    if standing.epoch == lease.epoch and standing.owner not in {None, lease.owner}:
        # It was claimed by another, maybe by a call that is the same in all, at the same instant.
        return False
    rows = session.ask(_CHECKPOINTS, ([id_cell(header.checkpoint_id)],))
    return bool(rows) and rows[0][1:3] == (header.run_id.encode(), checkpoint_body(commit))


def refused(session: Session, commits: Sequence[Commit], error: psycopg.Error) -> RehydrateError:
    """Return what it means that a row of these commits of one run was refused by the database."""
    run_id = commits[0].header.run_id
    constraint = error.diag.constraint_name or ""
    expected = _TAKEN.get(constraint)
    if expected is not None:
        return CommitConflictError(run_id, *expected)
    with contextlib.suppress(psycopg.Error):
        if constraint == "checkpoint_checkpoint_id_key":
            return _id_in_use(session, commits)
        if constraint == "checkpoint_pkey":
            return _number_in_use(session, commits[-1].header)
    return translate(error, session.store)


def _id_in_use(session: Session, commits: Sequence[Commit]) -> RehydrateError:
    what = f"a checkpoint in store {session.store}"
    headers = {id_cell(commit.header.checkpoint_id): commit.header for commit in commits}
    rows = session.ask(_CHECKPOINTS, (list(headers),))
    if not rows:
        return CheckpointCorruptError(what, "an index has it and its table does not")
    cell, run_id, _, seq = rows[0]
    header = headers[cell]
    if run_id is None:
        return CheckpointCorruptError(
            f"checkpoint {header.checkpoint_id} in store {session.store}",
            "it is there and the row of its run is not",
        )
    return id_in_use(header, text_of(run_id, what), seq)


def _number_in_use(session: Session, header: Header) -> RehydrateError:
    what = f"a checkpoint of run {header.run_id!r} in store {session.store}"
    rows = session.ask(_AT, (header.run_id.encode(), header.seq))
    taken = (id_in_cell(rows[0][0], what) if rows else None) or "that was forgotten"
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
