"""The SQLite store: checkpoints in one file, shared by any number of store objects, event loops and processes.

Every call is one hop to the thread that owns the file, and one transaction there. No object of an event loop is kept.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, TypeVar, cast

import msgspec

from rehydrate.errors import CheckpointNotFoundError, StoreClosedError
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
from rehydrate.ports import Clock, Inspection

from .archives import check_archive
from .arguments import (
    check_commit_arguments,
    check_event_page,
    check_filters,
    check_keys,
    check_numbers,
    check_offer,
    check_page,
    check_ref,
    check_tag,
    check_texts,
    path_text,
)
from .inspection import inspection, ref_text
from .sqlite_archive import read_archive, write_archive
from .sqlite_batch import serve
from .sqlite_database import Database
from .sqlite_driver import DRIVERS, Driver, check_driver
from .sqlite_inbox import read_offers, write_offer
from .sqlite_reading import (
    read_checkpoint,
    read_events,
    read_head,
    read_history,
    read_records,
    read_request,
    read_requests,
    read_runs,
    read_turn,
)
from .sqlite_retention import forget_checkpoints, read_tags, write_tag
from .sqlite_writing import commit_bytes, delete_run, renew_lease, write_commit
from .standing import WallClock
from .worker import Kind, Worker, acquire

_T = TypeVar("_T")
_KINDS: Final = {
    driver: Kind("sqlite", partial(Database, driver=driver), serve, variant=f"driver={driver!r}") for driver in DRIVERS
}


class SqliteCheckpointStorage:
    """A store in the SQLite file at `path`, made when first used; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too. `driver`: "apsw" brings a newer SQLite than that of most systems
    (extra `apsw`).

    Beside the file stand SQLite's own `-wal` and `-shm` and the folder `<path>.owners` with lock files; so its folder
    must be writable, also to read. A store object is for the one file that it has opened: where that is moved or
    removed, every call raises `StoreUnavailableError` until it is back.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        keep_events: bool = False,
        driver: Driver = "sqlite3",
    ) -> None:
        self._keeps_events = keep_events
        self._driver: Driver = check_driver(driver)
        # One thread owns a file in a process, by whatever path it is reached.
        self._path = os.path.realpath(path_text(path))
        self._now = (clock or WallClock()).time
        self._worker: Worker[Database] | None = None
        self._finalizer: weakref.finalize[[], SqliteCheckpointStorage] | None = None
        self._closed = False

    async def __aenter__(self) -> SqliteCheckpointStorage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def keeps_events(self) -> bool:
        """Whether this object keeps events of what it commits; it reads what any has kept."""
        return self._keeps_events

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
        check_commit_arguments(commit)
        if commit.events and not self._keeps_events:
            commit = msgspec.structs.replace(commit, events=())
        now = self._now
        await self._write(lambda database: write_commit(database, commit, now), commit_bytes(commit))

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        now = self._now
        return await self._read(lambda database: read_head(database, run_id, now))

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        now = self._now
        return await self._read(lambda database: read_checkpoint(database, ref, now))

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run."""
        check_texts(run_id=run_id)
        wanted = check_keys(keys)
        return await self._read(lambda database: read_records(database, run_id, wanted))

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        return await self._read(lambda database: read_request(database, request_id))

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        return await self._read(lambda database: read_turn(database, workflow, key))

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        return await self._read(
            lambda database: read_requests(database, workflow=workflow, run_id=run_id, after=after, limit=limit)
        )

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        now = self._now
        await self._write(lambda database: renew_lease(database, run_id, owner, epoch, now() + seconds))

    async def runs(
        self, *, workflow: str | None = None, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Header]:
        """Return the heads of runs, ordered by run id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, status, after)
        return await self._read(
            lambda database: read_runs(database, workflow=workflow, status=status, after=after, limit=limit)
        )

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        return await self._read(lambda database: read_history(database, run_id, before, limit))

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        return await self._read(lambda database: read_events(database, run_id, after, limit))

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again."""
        check_offer(offer)
        return await self._write(lambda database: write_offer(database, offer), len(offer.body))

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        return await self._read(lambda database: read_offers(database, run_id, after, limit))

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        await self._write(lambda database: write_tag(database, run_id, name, checkpoint_id))

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids."""
        check_texts(run_id=run_id)
        return await self._read(lambda database: read_tags(database, run_id))

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        asked = check_numbers(numbers)
        return await self._write(lambda database: forget_checkpoints(database, run_id, asked))

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        check_texts(run_id=run_id)
        return await self._read(lambda database: read_archive(database, run_id))

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        check_archive(archive)
        size = sum(map(commit_bytes, archive.commits))
        await self._write(lambda database: write_archive(database, archive), size)

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise CheckpointNotFoundError(ref_text(ref))
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        now = self._now
        return await self._write(lambda database: delete_run(database, run_id, now))

    async def vacuum(self) -> None:
        """Give the space of what was deleted and forgotten back to the system.

        It writes the whole file anew, and whoever commits meanwhile waits; SQLite uses freed space again without it.
        """
        await self._joined().call(Database.vacuum, alone=True)

    async def close(self) -> None:
        """Free what this object holds, after the calls that are on their way; a second call does nothing."""
        self._closed = True
        worker, self._worker = self._worker, None
        if worker is None or self._finalizer is None:
            return
        self._finalizer.detach()
        await worker.close()

    async def _read(self, work: Callable[[Database], _T]) -> _T:
        return cast("_T", await self._joined().call(work))

    async def _write(self, work: Callable[[Database], _T], size: int = 0) -> _T:
        return cast("_T", await self._joined().call(work, writes=True, size=size))

    def _joined(self) -> Worker[Database]:
        if self._closed:
            raise StoreClosedError(repr(self._path))
        if self._worker is None:
            worker = acquire(self._path, _KINDS[self._driver])
            self._finalizer = weakref.finalize(self, worker.release)
            # The end of the process closes the file for all store objects at once.
            self._finalizer.atexit = False
            self._worker = worker
        return self._worker
