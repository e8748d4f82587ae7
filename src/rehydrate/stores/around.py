"""A store around a store that passes every call on; what is built on it changes some of them.

It must not hold anything of a run: the store inside does.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

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
from rehydrate.ports import CheckpointStorage, Inspection, StorePlace, compresses, listing_key, place_of, watched

from .findings import ExaminedAround


class StoreAround(ExaminedAround):
    """A store whose calls are those of the store inside, which it closes."""

    def __init__(self, store: CheckpointStorage) -> None:
        self._store = store

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def keeps_events(self) -> bool:
        """Whether the store inside keeps events."""
        return self._store.keeps_events

    @property
    def place(self) -> StorePlace | None:
        """Where the store inside is, in this class; see `rehydrate.ports.Placed`."""
        inside = place_of(self._store)
        return inside and inside._replace(name=f"{type(self).__name__} {inside.name}")

    @property
    def compresses(self) -> bool:
        """Whether big records are to be compressed."""
        return compresses(self._store)

    def listing_key(self, run_id: str) -> str:
        """Return what the store inside orders a run by."""
        return listing_key(self._store, run_id)

    @property
    def wakes(self) -> bool:
        """Whether the store inside can wake readers."""
        return watched(self._store) is not None

    async def changed(self, run_id: str, after: int) -> None:
        """As the store inside; see `rehydrate.ports.Watched`."""
        waking = watched(self._store)
        if waking is not None:
            await waking.changed(run_id, after)

    async def commit(self, commit: Commit) -> None:
        """As the store inside."""
        await self._store.commit(commit)

    async def head(self, run_id: str) -> Head | None:
        """As the store inside."""
        return await self._store.head(run_id)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """As the store inside."""
        return await self._store.load(ref)

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """As the store inside."""
        return await self._store.read(run_id, keys)

    async def find_request(self, request_id: str) -> RequestRow | None:
        """As the store inside."""
        return await self._store.find_request(request_id)

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """As the store inside."""
        return await self._store.find_turn(workflow, key)

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """As the store inside."""
        return await self._store.requests(workflow=workflow, run_id=run_id, after=after, limit=limit)

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """As the store inside."""
        await self._store.renew(run_id, owner, epoch, seconds)

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
        """As the store inside."""
        return await self._store.runs(
            workflow=workflow, status=status, offered=offered, due_by=due_by, after=after, limit=limit
        )

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """As the store inside."""
        return await self._store.history(run_id, before=before, limit=limit)

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """As the store inside."""
        return await self._store.events(run_id, after=after, limit=limit)

    async def offer(self, offer: Offer) -> int:
        """As the store inside."""
        return await self._store.offer(offer)

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """As the store inside."""
        return await self._store.offers(run_id, after=after, limit=limit)

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """As the store inside."""
        await self._store.tag(run_id, name, checkpoint_id)

    async def tags(self, run_id: str) -> dict[str, str]:
        """As the store inside."""
        return await self._store.tags(run_id)

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """As the store inside."""
        return await self._store.forget(run_id, numbers)

    async def archive(self, run_id: str) -> Archive | None:
        """As the store inside."""
        return await self._store.archive(run_id)

    async def adopt(self, archive: Archive) -> None:
        """As the store inside."""
        await self._store.adopt(archive)

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """As the store inside."""
        return await self._store.inspect(ref)

    async def delete(self, run_id: str) -> bool:
        """As the store inside."""
        return await self._store.delete(run_id)

    async def close(self) -> None:
        """Close the store inside."""
        await self._store.close()
