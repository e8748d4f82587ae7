"""A store in a place of this machine, a file or a folder, that one thread owns in each process.

Every call is checked and is one hop to that thread; what is done there is the `Deeds` of a kind of store. No object of
an event loop is kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar, cast

import msgspec

from rehydrate.errors import StoreClosedError
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
from rehydrate.ports import Clock, Inspection, StorePlace

from .archives import check_archive
from .arguments import (
    RunsAsked,
    check_commit_arguments,
    check_event_page,
    check_filters,
    check_flag,
    check_keys,
    check_numbers,
    check_offer,
    check_page,
    check_ref,
    check_tag,
    check_texts,
)
from .inspection import inspection, not_found
from .standing import WallClock
from .tasks import Place
from .worker import Kind, Worker, acquire

_T = TypeVar("_T")
_P = TypeVar("_P", bound=Place)
_P_contra = TypeVar("_P_contra", contravariant=True)
_Now = Callable[[], float]


class _ReadRequests(Protocol[_P_contra]):
    def __call__(
        self, place: _P_contra, /, *, workflow: str | None, run_id: str | None, after: str | None, limit: int
    ) -> list[RequestRow]: ...


@dataclass(frozen=True, kw_only=True)
class Deeds(Generic[_P]):
    """What a kind of store does at its place, on the thread that owns it."""

    write_commit: Callable[[_P, Commit, _Now], None]
    renew_lease: Callable[[_P, str, str, int, float], None]
    delete_run: Callable[[_P, str, _Now], bool]
    write_offer: Callable[[_P, Offer], int]
    write_tag: Callable[[_P, str, str, str | None], None]
    forget_checkpoints: Callable[[_P, str, Sequence[int]], list[int]]
    write_archive: Callable[[_P, Archive], None]
    read_head: Callable[[_P, str, _Now], Head | None]
    read_checkpoint: Callable[[_P, CheckpointRef, _Now], Stored | None]
    read_records: Callable[[_P, str, Sequence[str]], dict[str, bytes]]
    read_request: Callable[[_P, str], RequestRow | None]
    read_turn: Callable[[_P, str, str], TurnRow | None]
    read_requests: _ReadRequests[_P]
    read_runs: Callable[[_P, RunsAsked], list[Header]]
    read_history: Callable[[_P, str, int | None, int], list[Header]]
    read_events: Callable[[_P, str, int, int], list[StoredEvent]]
    read_offers: Callable[[_P, str, int, int], list[Offer]]
    read_tags: Callable[[_P, str], dict[str, str]]
    read_archive: Callable[[_P, str], Archive | None]


class _Commit(Generic[_P]):
    """The writing of one commit: one object for the collector to look at, where a closure would be five."""

    __slots__ = ("_commit", "_now", "_write")

    def __init__(self, write: Callable[[_P, Commit, _Now], None], commit: Commit, now: _Now) -> None:
        self._write = write
        self._commit = commit
        self._now = now

    def __call__(self, place: _P) -> None:
        self._write(place, self._commit, self._now)


class LocalStorage(Generic[_P]):
    """A store at `path`, which is absolute: one thread owns it in a process, by whatever path it is reached."""

    def __init__(
        self, path: str, kind: Kind[_P], deeds: Deeds[_P], *, clock: Clock | None = None, keep_events: bool = False
    ) -> None:
        self._keeps_events = check_flag("keep_events", keep_events)
        self._path = path
        self._kind = kind
        self._deeds = deeds
        self._now = (clock or WallClock()).time
        self._worker: Worker[_P] | None = None
        self._finalizer: weakref.finalize[[], LocalStorage[_P]] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def keeps_events(self) -> bool:
        """Whether this object keeps events of what it commits; it reads what any has kept."""
        return self._keeps_events

    @property
    def place(self) -> StorePlace:
        """Where it is; see `rehydrate.ports.Placed`."""
        return StorePlace(f"{self._kind.name} {self._path}", self._path)

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
        check_commit_arguments(commit)
        if commit.events and not self._keeps_events:
            commit = msgspec.structs.replace(commit, events=())
        work = _Commit(self._deeds.write_commit, commit, self._now)
        await self._joined().call(work, writes=True, size=_commit_bytes(commit))

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        read, now = self._deeds.read_head, self._now
        return await self._read(lambda place: read(place, run_id, now))

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        read, now = self._deeds.read_checkpoint, self._now
        return await self._read(lambda place: read(place, ref, now))

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run."""
        check_texts(run_id=run_id)
        wanted = check_keys(keys)
        read = self._deeds.read_records
        return await self._read(lambda place: read(place, run_id, wanted))

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        read = self._deeds.read_request
        return await self._read(lambda place: read(place, request_id))

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        read = self._deeds.read_turn
        return await self._read(lambda place: read(place, workflow, key))

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        read = self._deeds.read_requests
        return await self._read(lambda place: read(place, workflow=workflow, run_id=run_id, after=after, limit=limit))

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        renew, now = self._deeds.renew_lease, self._now
        await self._write(lambda place: renew(place, run_id, owner, epoch, now() + seconds))

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
        """Return the heads of runs, ordered by run id, from the one behind `after` on."""
        asked = RunsAsked(workflow, status, offered, due_by, after, limit).checked()
        read = self._deeds.read_runs
        return await self._read(lambda place: read(place, asked))

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        read = self._deeds.read_history
        return await self._read(lambda place: read(place, run_id, before, limit))

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        read = self._deeds.read_events
        return await self._read(lambda place: read(place, run_id, after, limit))

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again."""
        check_offer(offer)
        write = self._deeds.write_offer
        return await self._write(lambda place: write(place, offer), len(offer.body))

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        read = self._deeds.read_offers
        return await self._read(lambda place: read(place, run_id, after, limit))

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        write = self._deeds.write_tag
        await self._write(lambda place: write(place, run_id, name, checkpoint_id))

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids."""
        check_texts(run_id=run_id)
        read = self._deeds.read_tags
        return await self._read(lambda place: read(place, run_id))

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        asked = check_numbers(numbers)
        forget = self._deeds.forget_checkpoints
        return await self._write(lambda place: forget(place, run_id, asked))

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        check_texts(run_id=run_id)
        read = self._deeds.read_archive
        return await self._read(lambda place: read(place, run_id))

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        # On the thread, as it hashes all records of the run; and before the write, in which others would wait for it.
        await self._read(lambda _: check_archive(archive))
        write = self._deeds.write_archive
        await self._write(lambda place: write(place, archive), sum(map(_commit_bytes, archive.commits)))

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise not_found(ref)
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        delete, now = self._deeds.delete_run, self._now
        return await self._write(lambda place: delete(place, run_id, now))

    async def close(self) -> None:
        """Free what this object holds, after the calls that are on their way; a second call does nothing."""
        self._closed = True
        worker, self._worker = self._worker, None
        if worker is None or self._finalizer is None:
            return
        self._finalizer.detach()
        await worker.close()

    async def _read(self, work: Callable[[_P], _T]) -> _T:
        return cast("_T", await self._joined().call(work))

    async def _write(self, work: Callable[[_P], _T], size: int = 0) -> _T:
        return cast("_T", await self._joined().call(work, writes=True, size=size))

    def _joined(self) -> Worker[_P]:
        if self._closed:
            raise StoreClosedError(repr(self._path))
        if self._worker is None:
            worker = acquire(self._path, self._kind)
            self._finalizer = weakref.finalize(self, worker.release)
            # The end of the process closes the place for all store objects at once.
            self._finalizer.atexit = False
            self._worker = worker
        return self._worker


def _commit_bytes(commit: Commit) -> int:
    """Return how many bytes of records and events a commit holds, which bound what is written together."""
    return sum([len(put.data) for put in commit.puts]) + sum(map(len, commit.events))
