"""Stores and runtimes that break P3, each as a real slip would: what a caller is told to be, in its own process only.

Nothing is taken back: the process ends. Must not break what it does not name.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import msgspec

from rehydrate import PostgresCheckpointStorage, SqliteCheckpointStorage
from rehydrate.errors import CommitConflictError
from rehydrate.model.checkpoint import Commit, Lease
from rehydrate.runtime import finding, opening

Write: TypeAlias = Callable[[Commit], Coroutine[None, None, None]]
Store: TypeAlias = PostgresCheckpointStorage | SqliteCheckpointStorage


def _commits(change: Callable[[Store, Commit, Write], Coroutine[None, None, None]]) -> None:
    """Let commits of both stores be made by `change`, which is given what makes them as they are."""
    for kind in (SqliteCheckpointStorage, PostgresCheckpointStorage):

        async def commit(self: Store, commit: Commit, right: Callable[..., object] = kind.commit) -> None:
            await change(self, commit, lambda changed: right(self, changed))

        kind.commit = commit


def _with_lease(commit: Commit, **changed: object) -> Commit:
    return msgspec.structs.replace(commit, lease=msgspec.structs.replace(commit.lease, **changed))


def last_one_wins() -> None:
    """A store without compare-and-set: what was refused is put behind whatever head and epoch there are."""

    async def change(store: Store, commit: Commit, write: Write) -> None:
        try:
            await write(commit)
        except CommitConflictError:
            head = await store.head(commit.header.run_id)
            header = msgspec.structs.replace(
                commit.header, seq=head.header.seq + 1, checkpoint_id=f"{commit.header.checkpoint_id}{head.epoch}"
            )
            epoch = head.epoch + (1 if commit.lease.claim else 0)
            behind = msgspec.structs.replace(commit, header=header, expected=head.header.checkpoint_id)
            await write(_with_lease(behind, epoch=epoch))

    _commits(change)


def claims_at_the_second_commit() -> None:
    """A claim is said to be saved at once and is written with what the turn saves first, after its executors."""
    kept: dict[str, Commit] = {}

    async def change(store: Store, commit: Commit, write: Write) -> None:
        if commit.lease.claim:
            kept[commit.header.run_id] = commit
            return
        claim = kept.pop(commit.header.run_id, None)
        if claim is not None:
            await write(claim)
        await write(commit)

    _commits(change)


def acknowledges_before_it_writes() -> None:
    """Every commit is said to be saved when it is on its way."""
    tasks: set[asyncio.Task[None]] = set()

    async def change(store: Store, commit: Commit, write: Write) -> None:
        async def quietly() -> None:
            with contextlib.suppress(CommitConflictError):
                await write(commit)

        tasks.add(asyncio.create_task(quietly()))

    _commits(change)


def swallows_conflicts() -> None:
    """A commit that has lost its race is taken for one that is there already."""

    async def change(store: Store, commit: Commit, write: Write) -> None:
        with contextlib.suppress(CommitConflictError):
            await write(commit)

    _commits(change)


def leases_end_at_once() -> None:
    """The end of a lease is the moment of its commit."""

    async def change(store: Store, commit: Commit, write: Write) -> None:
        await write(_with_lease(commit, seconds=min(commit.lease.seconds, 1e-12)))

    _commits(change)


def leases_never_end() -> None:
    """A lease is counted in days."""

    async def change(store: Store, commit: Commit, write: Write) -> None:
        await write(_with_lease(commit, seconds=commit.lease.seconds * 86_400))

    _commits(change)


def owners_are_not_looked_at() -> None:
    """A call goes on with a run whose owner is alive, as if it were told to take it over."""
    finding.check_owner = opening.check_owner = lambda call, found, *, same: None


def takeovers_claim_nothing() -> None:
    """A takeover leaves head and epoch as they are until its first superstep, and goes on in the epoch it found."""
    old: dict[str, Lease] = {}

    async def change(store: Store, commit: Commit, write: Write) -> None:
        run_id = commit.header.run_id
        head = await store.head(run_id) if commit.lease.claim else None
        if head is not None and head.owner is not None:
            old[run_id] = commit.lease
            return
        await write(_with_lease(commit, claim=True) if old.pop(run_id, None) else commit)

    _commits(change)


UNSAFE = {
    "last one wins": last_one_wins,
    "claims at the second commit": claims_at_the_second_commit,
    "acknowledges before it writes": acknowledges_before_it_writes,
    "swallows conflicts": swallows_conflicts,
    "leases end at once": leases_end_at_once,
    "leases never end": leases_never_end,
    "owners are not looked at": owners_are_not_looked_at,
    "takeovers claim nothing": takeovers_claim_nothing,
}
