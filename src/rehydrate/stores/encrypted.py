"""The encrypted store: a store around a store of any make, which is given nothing that it could read.

It keeps every promise of the store inside and adds but that one. What is hidden, and how, is in `covers`; not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import cast

import msgspec

from rehydrate.errors import WrongCallError
from rehydrate.model.checkpoint import (
    Archive,
    At,
    CheckpointRef,
    Commit,
    Head,
    Header,
    Latest,
    Offer,
    RequestRow,
    Stored,
    StoredEvent,
    TurnRow,
)
from rehydrate.ports import CheckpointStorage, Inspection, StorePlace, compresses, listing_key, place_of, watched

from .archives import check_archive
from .arguments import (
    RunsAsked,
    check_commit_arguments,
    check_event_page,
    check_filters,
    check_keys,
    check_offer,
    check_page,
    check_ref,
    check_tag,
    check_texts,
)
from .covered_archives import opened_archive
from .covered_runs import CoveredRuns
from .covers import Covers
from .findings import ExaminedAround
from .inspection import inspection, not_found
from .key_ring import KeyRing
from .passage import Passage


class EncryptedCheckpointStorage(ExaminedAround):
    """A store in which nothing that a user supplied stands in clear; `store` holds it, `keys` open it.

    Runs are listed in an order that is always the same and says nothing: that of `listing_key`. Closing it closes the
    store inside.
    """

    def __init__(self, store: CheckpointStorage, keys: KeyRing) -> None:
        if not isinstance(cast("object", keys), KeyRing):
            raise WrongCallError("keys is no KeyRing.", "Pass KeyRing({'2026-11': secrets.token_bytes(32)}).")
        self._store = store
        self._keys = keys
        self._covers = Covers(keys)
        self._names = self._covers.names
        self._passage = Passage(store, self._covers)
        self._runs = CoveredRuns(store, self._covers)

    async def __aenter__(self) -> EncryptedCheckpointStorage:
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
        """Where the store inside is, with these keys; see `rehydrate.ports.Placed`."""
        inside = place_of(self._store)
        return inside and inside._replace(name=f"{self._keys!r} {inside.name}")

    @property
    def compresses(self) -> bool:
        """Whether the store inside asks for compression, which always comes before encryption."""
        return compresses(self._store)

    def listing_key(self, run_id: str) -> str:
        """Return what `runs` orders a run by."""
        return listing_key(self._store, self._names.run(run_id))

    @property
    def wakes(self) -> bool:
        """Whether the store inside can wake readers."""
        return watched(self._store) is not None

    async def changed(self, run_id: str, after: int) -> None:
        """Return once a run may have changed; see `rehydrate.ports.Watched`."""
        check_texts(run_id=run_id)
        waking = watched(self._store)
        if waking is not None:
            await waking.changed(self._names.run(run_id), after)

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
        check_commit_arguments(commit)
        run = self._names.run(commit.header.run_id)
        async with self._passage.call(run, lambda: self._names_of(commit), writes=True):
            await self._runs.commit(run, commit)

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.head(run)
            if found is None:
                return None
            return msgspec.structs.replace(found, header=self._covers.open_header(found.header, run).header)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where anything of it was
        changed, swapped, lost or put back, and `WrongKeyError`."""
        check_ref(ref)
        inner, names = self._ref(ref)
        async with self._passage.call(next(iter(names), None), lambda: names):
            covered = await self._store.load(inner)
            return self._runs.loaded(covered, inner) if covered else None

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run. `load` alone sees what is stale."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        places = {self._names.record(run, key): key for key in check_keys(keys)}
        what = f"a record of run {run_id!r}"
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.read(run, list(places))
            opened = {place: self._covers.open_record(run, place, data, what) for place, data in found.items()}
            return {places[place]: record for place, (_, record) in opened.items()}

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        async with self._passage.call():
            found = await self._store.find_request(request_id)
            return self._covers.open_request(found, request_id) if found else None

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        hidden = self._names.workflow(workflow), self._names.turn_key(workflow, key)
        async with self._passage.call(None, lambda: dict(zip(hidden, (workflow, key), strict=True))):
            found = await self._store.find_turn(*hidden)
            return self._covers.open_turn(found, hidden, f"the turn of key {key!r}") if found else None

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, of all runs or some, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        async with self._passage.call():
            found = await self._store.requests(
                workflow=None if workflow is None else self._names.workflow(workflow),
                run_id=None if run_id is None else self._names.run(run_id),
                after=after,
                limit=limit,
            )
            return [self._covers.open_request(cover, cover.request_id) for cover in found]

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}, writes=True):
            await self._store.renew(run, owner, epoch, seconds)

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
        """Return the heads of runs, ordered by `listing_key`, from the one behind `after` on."""
        RunsAsked(workflow, status, offered, due_by, after, limit).checked()
        async with self._passage.call():
            found = await self._store.runs(
                workflow=None if workflow is None else self._names.workflow(workflow),
                status=status,
                offered=offered,
                due_by=due_by,
                after=None if after is None else self._names.run(after),
                limit=limit,
            )
            return [self._covers.open_header(cover).header for cover in found]

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.history(run, before=before, limit=limit)
            return [self._covers.open_header(cover, run).header for cover in found]

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.events(run, after=after, limit=limit)
            return [self._covers.open_event(run, cover) for cover in found]

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number. Raises as the store inside."""
        check_offer(offer)
        cover = self._covers.offer(Offer(offer.run_id, offer.key, offer.body))
        names = {cover.run_id: offer.run_id, cover.key: offer.key}
        async with self._passage.call(cover.run_id, lambda: names, writes=True):
            return await self._store.offer(Offer(cover.run_id, cover.key, cover.body))

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox and was not taken, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.offers(run, after=after, limit=limit)
            return [self._covers.open_offer(run_id, cover) for cover in found]

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}, writes=True):
            await self._store.tag(run, self._covers.texts.tag(run, name), checkpoint_id)

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids, ordered by name."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.tags(run)
            return dict(sorted((self._covers.texts.open_tag(run, name), at) for name, at in found.items()))

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}, writes=True):
            return await self._store.forget(run, numbers)

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, readable, or `None` for an unknown one. One of the store inside stays encrypted."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}):
            found = await self._store.archive(run)
            return opened_archive(self._covers, run_id, found) if found else None

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        check_archive(archive)
        run_id = archive.commits[0].header.run_id
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}, writes=True):
            await self._store.adopt(self._runs.covered(archive))

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise not_found(ref)
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        run = self._names.run(run_id)
        async with self._passage.call(run, lambda: {run: run_id}, writes=True):
            self._runs.forget(run)
            return await self._store.delete(run)

    async def close(self) -> None:
        """Close the store inside, after the calls that are on their way; a second call does nothing."""
        await self._passage.finished()
        await self._store.close()

    def _names_of(self, commit: Commit) -> dict[str, str]:
        """Return the names that an error of a commit may speak of, by their pseudonyms."""
        hidden, header, turn = self._names, commit.header, commit.turn
        names = {hidden.run(header.run_id): header.run_id, hidden.workflow(header.workflow): header.workflow}
        if turn is not None:
            names[hidden.run(turn.run_id)] = turn.run_id
            names[hidden.turn_key(turn.workflow, turn.key)] = turn.key
        return names | {hidden.run(row.run_id): row.run_id for row in commit.requests if row.run_id != header.run_id}

    def _ref(self, ref: CheckpointRef) -> tuple[CheckpointRef, dict[str, str]]:
        """Return what the store inside knows a checkpoint by, and what errors may speak of."""
        if isinstance(ref, str):
            return ref, {}
        run = self._names.run(ref.run_id)
        names = {run: ref.run_id}
        if isinstance(ref, Latest):
            return Latest(run), names
        return At(run, self._covers.texts.tag(run, ref.at) if isinstance(ref.at, str) else ref.at), names
