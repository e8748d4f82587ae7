"""Standing: how a run stands in its store (head, owner, epoch, lease), and the rules by which a commit moves it.

All stores share these rules, so that a race ends the same way in each. Nothing here reads or writes.
"""

from __future__ import annotations

import msgspec

from rehydrate.errors import CommitConflictError, WrongCallError
from rehydrate.model.checkpoint import Commit, Header, StoredEvent
from rehydrate.ports.clock import wall_time


class Standing(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A run's head and owner. `lease_end` is on the store's clock, in seconds since the epoch."""

    run_id: str
    workflow: str
    checkpoint_id: str
    seq: int
    epoch: int
    owner: str | None
    lease_end: float


class WallClock:
    """The clock of a store that was given none."""

    def time(self) -> float:
        """Return the time."""
        return wall_time()


def check_commit(commit: Commit, standing: Standing | None) -> None:
    """Raise `CommitConflictError` unless the commit may follow where its run stands (`None`: there is no such run)."""
    check_rows(commit)
    header, lease = commit.header, commit.lease
    found = standing.checkpoint_id if standing else None
    if found != commit.expected:
        raise CommitConflictError(header.run_id, _named(commit.expected), _named(found))
    epoch = standing.epoch if standing else 0
    if standing is None and not lease.claim:
        raise CommitConflictError(header.run_id, "a claim", "a commit without one on a new run")
    if lease.epoch != epoch + (1 if lease.claim else 0):
        needed = lease.epoch - 1 if lease.claim else lease.epoch
        raise CommitConflictError(header.run_id, f"epoch {needed}", f"epoch {epoch}")
    if standing is None:
        return
    if header.workflow != standing.workflow:
        raise CommitConflictError(header.run_id, f"workflow {header.workflow!r}", f"workflow {standing.workflow!r}")
    if header.seq <= standing.seq:
        raise CommitConflictError(header.run_id, f"a head below number {header.seq}", f"number {standing.seq}")


def check_rows(commit: Commit) -> None:
    """Raise `WrongCallError` where a commit brings rows of another run."""
    run_id = commit.header.run_id
    strangers = {row.run_id for row in commit.requests if row.run_id != run_id}
    if commit.turn is not None and commit.turn.run_id != run_id:
        strangers.add(commit.turn.run_id)
    if strangers:
        raise WrongCallError(
            f"a commit of run {run_id!r} holds rows of {', '.join(map(repr, sorted(strangers)))}.",
            "Commit each run's rows with that run.",
        )


def id_in_use(header: Header, run_id: str, seq: int) -> CommitConflictError:
    """Return the error of a commit whose checkpoint id another checkpoint has: number `seq` of run `run_id`."""
    found = f"{header.checkpoint_id} in use by checkpoint number {seq} of run {run_id!r}"
    return CommitConflictError(header.run_id, "a new checkpoint id", found)


def standing_after(commit: Commit, now: float) -> Standing:
    """Return how the run stands once the commit is written."""
    header, lease = commit.header, commit.lease
    held = lease.seconds > 0
    return Standing(
        run_id=header.run_id,
        workflow=header.workflow,
        checkpoint_id=header.checkpoint_id,
        seq=header.seq,
        epoch=lease.epoch,
        owner=lease.owner if held else None,
        lease_end=now + lease.seconds if held else 0.0,
    )


def numbered_events(commit: Commit) -> list[StoredEvent]:
    """Return the events of a commit with their numbers, of which the header has the last."""
    first = commit.header.events - len(commit.events) + 1
    return [StoredEvent(number, data) for number, data in enumerate(commit.events, first)]


def standing_renewed(standing: Standing | None, run_id: str, owner: str, epoch: int, until: float) -> Standing:
    """Return the standing with a longer lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
    if standing is None:
        raise CommitConflictError(run_id, f"owner {owner!r}", _named(None))
    if standing.owner != owner or standing.epoch != epoch:
        found = f"owner {standing.owner!r} at epoch {standing.epoch}" if standing.owner else "no owner"
        raise CommitConflictError(run_id, f"owner {owner!r} at epoch {epoch}", found)
    return msgspec.structs.replace(standing, lease_end=until)


def _named(checkpoint_id: str | None) -> str:
    return "no such run" if checkpoint_id is None else f"head {checkpoint_id}"
