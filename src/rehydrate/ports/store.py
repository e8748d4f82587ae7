"""The store protocol: what a run needs of the place where its checkpoints live.

A store sees sealed records and headers, never user types, and opens none of them. It must not hold an object of an
event loop in a field: one store serves any number of loops, one after the other or at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rehydrate.model.checkpoint import (
    Archive,
    CheckpointRef,
    Commit,
    Head,
    Header,
    Offer,
    RequestRow,
    Stored,
    StoredEvent,
    TurnRow,
)
from rehydrate.model.inspection import Inspection


@runtime_checkable
class CheckpointStorage(Protocol):
    """Where checkpoints live; see `rehydrate.testing.store_contract` for the suite that every store passes."""

    @property
    def keeps_events(self) -> bool:
        """Whether the store writes a commit's events; else it is given none."""
        ...

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head or epoch are not the expected ones."""
        ...

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        ...

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None` for an unknown one."""
        ...

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist."""
        ...

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        ...

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        ...

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, of all runs or some, ordered by id, from the one behind `after` on."""
        ...

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        ...

    async def runs(
        self,
        *,
        workflow: str | None = None,
        status: str | None = None,
        offered: bool = False,
        due_by: float | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Header]:
        """Return the heads of runs, ordered by run id, from the one behind `after` on; `offered`: of those that have
        something in their inbox; `due_by`: of those at rest with a timer that is up then, in seconds since 1970."""
        ...

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        ...

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again.

        Raises `RunNotFoundError`, and `OfferConflictError` where the key was given with something else.
        """
        ...

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox and was not taken, by number, from the one behind `after` on."""
        ...

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, which keeps it from being forgotten; `None` takes the name back.

        Raises `CheckpointNotFoundError` where the run has no such checkpoint.
        """
        ...

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids, ordered by name."""
        ...

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop these checkpoints of a run and what no other one needs; return the numbers that were dropped.

        The head and what has a name stay.
        """
        ...

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        ...

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        ...

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        ...

    async def close(self) -> None:
        """Free what the store holds; a second call does nothing."""
        ...
