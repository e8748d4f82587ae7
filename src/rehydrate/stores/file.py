"""The file store: checkpoints as files of a folder, shared by any number of store objects, event loops and processes.

Every call is one hop to the thread that owns the folder. No object of an event loop is kept. What lies where, and why a
kill at any moment harms nothing: docs/decisions/0016-file-store.md.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
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
    folder_text,
)
from .file_batch import serve
from .file_history import forget_checkpoints, read_archive, read_tags, write_archive, write_tag
from .file_inbox import read_offers, write_offer
from .file_place import FilePlace
from .file_reading import (
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
from .file_undo import delete_run
from .file_writing import renew_lease, write_commit
from .inspection import inspection, ref_text
from .standing import WallClock
from .worker import Kind, Worker, acquire

_T = TypeVar("_T")
_KIND: Final = Kind("file", FilePlace, serve, most=1)


class FileCheckpointStorage:
    """A store in a folder of its own, made when first used; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too.

    The folder must be writable, also to read. A store object is for the one folder that it has opened: where that is
    moved or removed, every call raises `StoreUnavailableError` until it is back. A disk that fails ends the use of all
    store objects of the folder; new ones read what is really there.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, clock: Clock | None = None, keep_events: bool = False
    ) -> None:
        self._keeps_events = keep_events
        # One thread owns a folder in a process, by whatever path it is reached.
        self._path = os.path.realpath(folder_text(directory))
        self._now = (clock or WallClock()).time
        self._worker: Worker[FilePlace] | None = None
        self._finalizer: weakref.finalize[[], FileCheckpointStorage] | None = None
        self._closed = False

    async def __aenter__(self) -> FileCheckpointStorage:
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
        await self._write(lambda place: write_commit(place, commit, now))

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        now = self._now
        return await self._read(lambda place: read_head(place, run_id, now))

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        now = self._now
        return await self._read(lambda place: read_checkpoint(place, ref, now))

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run."""
        check_texts(run_id=run_id)
        wanted = check_keys(keys)
        return await self._read(lambda place: read_records(place, run_id, wanted))

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        return await self._read(lambda place: read_request(place, request_id))

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        return await self._read(lambda place: read_turn(place, workflow, key))

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        return await self._read(
            lambda place: read_requests(place, workflow=workflow, run_id=run_id, after=after, limit=limit)
        )

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        now = self._now
        await self._write(lambda place: renew_lease(place, run_id, owner, epoch, now() + seconds))

    async def runs(
        self, *, workflow: str | None = None, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Header]:
        """Return the heads of runs, ordered by run id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, status, after)
        return await self._read(
            lambda place: read_runs(place, workflow=workflow, status=status, after=after, limit=limit)
        )

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        return await self._read(lambda place: read_history(place, run_id, before, limit))

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        return await self._read(lambda place: read_events(place, run_id, after, limit))

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again."""
        check_offer(offer)
        return await self._write(lambda place: write_offer(place, offer))

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        return await self._read(lambda place: read_offers(place, run_id, after, limit))

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        await self._write(lambda place: write_tag(place, run_id, name, checkpoint_id))

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids."""
        check_texts(run_id=run_id)
        return await self._read(lambda place: read_tags(place, run_id))

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        asked = check_numbers(numbers)
        return await self._write(lambda place: forget_checkpoints(place, run_id, asked))

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        check_texts(run_id=run_id)
        return await self._read(lambda place: read_archive(place, run_id))

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        check_archive(archive)
        await self._write(lambda place: write_archive(place, archive))

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
        return await self._write(lambda place: delete_run(place, run_id, now))

    async def close(self) -> None:
        """Free what this object holds, after the calls that are on their way; a second call does nothing."""
        self._closed = True
        worker, self._worker = self._worker, None
        if worker is None or self._finalizer is None:
            return
        self._finalizer.detach()
        await worker.close()

    async def _read(self, work: Callable[[FilePlace], _T]) -> _T:
        return cast("_T", await self._joined().call(work))

    async def _write(self, work: Callable[[FilePlace], _T]) -> _T:
        return cast("_T", await self._joined().call(work, writes=True))

    def _joined(self) -> Worker[FilePlace]:
        if self._closed:
            raise StoreClosedError(repr(self._path))
        if self._worker is None:
            worker = acquire(self._path, _KIND)
            self._finalizer = weakref.finalize(self, worker.release)
            # The end of the process closes the folder for all store objects at once.
            self._finalizer.atexit = False
            self._worker = worker
        return self._worker
