"""The PostgreSQL store: checkpoints in a database that any number of processes and machines share.

It can be imported without psycopg, which is looked for when a store object is made. No object of an event loop is kept.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec

from rehydrate.errors import StoreClosedError, WrongCallError, WrongStoreError
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
from rehydrate.ports import Clock, Examination, Inspection, StorePlace
from rehydrate.stores.archives import check_archive
from rehydrate.stores.arguments import (
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
from rehydrate.stores.inspection import inspection, not_found
from rehydrate.stores.standing import check_rows

if TYPE_CHECKING:
    from .driver import Listener, Pool, Session, Worker

_T = TypeVar("_T")
#: Seconds before each further attempt to reach the server.
_WAITS: Final = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)


class PostgresCheckpointStorage:
    """A store in a schema of a PostgreSQL database, made when first used; needs the extra `postgres`.

    `url_or_pool`: a URL or connection string of libpq, or a `psycopg_pool.ConnectionPool`, which stays the caller's to
    close. `clock`: what leases are measured on, instead of the server's clock. `keep_events`: it keeps what its runs
    tell, too. `listen_url`: a URL that leads to the server itself, not to a pooler; with it readers of events are woken
    by commits of other processes. `retry_waits`: seconds before each further attempt to reach the server.
    """

    def __init__(
        self,
        url_or_pool: str | Pool,
        *,
        clock: Clock | None = None,
        keep_events: bool = False,
        schema: str = "rehydrate",
        listen_url: str | None = None,
        retry_waits: Sequence[float] = _WAITS,
    ) -> None:
        try:
            from . import driver  # noqa: PLC0415  (psycopg is an optional extra)
        except ImportError as error:
            if error.name is not None and error.name.startswith("rehydrate"):
                raise
            raise WrongStoreError(
                "in PostgreSQL", f"psycopg cannot be imported ({error})", "Run: pip install 'rehydrate[postgres]'."
            ) from error
        self._driver = driver
        self._keeps_events = check_flag("keep_events", keep_events)
        self._now: Callable[[], float | None] = _server_time if clock is None else clock.time
        self._connector = connector = driver.connector(url_or_pool, schema, retry_waits)
        self._store = connector.place.store
        self._worker = driver.Worker(connector, self._now)
        self._listener = driver.listener(connector, listen_url, retry_waits) if listen_url is not None else None
        self._finalizer = weakref.finalize(self, _release, self._worker, self._listener)
        # The end of the process is the worker's own matter.
        self._finalizer.atexit = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<PostgresCheckpointStorage {self._store}>"

    async def __aenter__(self) -> PostgresCheckpointStorage:
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
        return StorePlace(self._store)

    @property
    def wakes(self) -> bool:
        """Whether `changed` is told of commits; see `rehydrate.ports.Watched`."""
        return self._listener is not None

    async def changed(self, run_id: str, after: int) -> None:
        """Return once a run may have events behind number `after`, or some seconds later. Needs a `listen_url`."""
        check_texts(run_id=run_id)
        self._open()
        listener = self._listener
        if listener is None:
            raise WrongCallError("this store object cannot be told of commits.", "Make it with a listen_url.")
        waiting = listener.wait_for(run_id)
        try:
            head = await self.head(run_id)
            if head is not None and head.owner is not None and head.header.events <= after:
                await listener.woken(waiting)
        finally:
            listener.give_up(waiting)

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
        check_commit_arguments(commit)
        check_rows(commit)
        if commit.events and not self._keeps_events:
            commit = msgspec.structs.replace(commit, events=())
        await self._open().call(self._driver.Save(commit), commit.header.run_id)

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        read = self._driver.read_head
        return await self._read(lambda session: read(session, run_id, self._now()), run_id)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        read = self._driver.read_checkpoint
        run_id = None if isinstance(ref, str) else ref.run_id
        return await self._read(lambda session: read(session, ref, self._now()), run_id)

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run."""
        check_texts(run_id=run_id)
        wanted = check_keys(keys)
        read = self._driver.read_records
        return await self._read(lambda session: read(session, run_id, wanted), run_id)

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        read = self._driver.read_request
        return await self._read(lambda session: read(session, request_id))

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        read = self._driver.read_turn
        return await self._read(lambda session: read(session, workflow, key))

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        read = self._driver.read_requests
        return await self._read(
            lambda session: read(session, workflow=workflow, run_id=run_id, after=after, limit=limit), run_id
        )

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        await self._open().call(self._driver.Renewal(run_id, owner, epoch, seconds), run_id)

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
        read = self._driver.read_runs
        return await self._read(lambda session: read(session, asked))

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        read = self._driver.read_history
        return await self._read(lambda session: read(session, run_id, before, limit), run_id)

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        read = self._driver.read_events
        return await self._read(lambda session: read(session, run_id, after, limit), run_id)

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again."""
        check_offer(offer)
        write = self._driver.write_offer
        return await self._change(lambda session, _: write(session, offer), offer.run_id)

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        read = self._driver.read_offers
        return await self._read(lambda session: read(session, run_id, after, limit), run_id)

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        write = self._driver.write_tag
        await self._change(lambda session, _: write(session, run_id, name, checkpoint_id), run_id)

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids."""
        check_texts(run_id=run_id)
        read = self._driver.read_tags
        return await self._read(lambda session: read(session, run_id), run_id)

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        asked, before = check_numbers(numbers), list[int]()
        forget = self._driver.forget_checkpoints
        return await self._change(lambda session, _: forget(session, run_id, asked, before), run_id)

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        check_texts(run_id=run_id)
        read = self._driver.read_archive
        return await self._read(lambda session: read(session, run_id), run_id)

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        check_archive(archive)
        write, run_id = self._driver.write_archive, archive.commits[0].header.run_id
        await self._change(lambda session, again: write(session, archive, again=again), run_id)

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise not_found(ref)
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        delete = self._driver.delete_run
        return await self._change(lambda session, again: delete(session, run_id, self._now(), again=again), run_id)

    async def examine(self, *, full: bool = False) -> Examination:
        """Say how server and schema are; see `rehydrate.ports.Examined`."""
        self._open()
        return await asyncio.to_thread(self._driver.examine_schema, self._connector, full=full)

    async def close(self) -> None:
        """Free what this object holds, after the calls that are on their way; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._finalizer.detach()
        if self._listener is not None:
            self._listener.close()
        await self._worker.close()

    async def _read(self, work: Callable[[Session], _T], run_id: str | None = None) -> _T:
        return await self._single(lambda session, _: work(session), run_id, writes=False)

    async def _change(self, work: Callable[[Session, bool], _T], run_id: str) -> _T:
        return await self._single(work, run_id, writes=True)

    async def _single(self, work: Callable[[Session, bool], _T], run_id: str | None, *, writes: bool) -> _T:
        return cast("_T", await self._open().call(self._driver.Single(work, writes), run_id))

    def _open(self) -> Worker:
        if self._closed:
            raise StoreClosedError(self._store)
        return self._worker


def _release(worker: Worker, listener: Listener | None) -> None:
    worker.release()
    if listener is not None:
        listener.close()


def _server_time() -> float | None:
    return None
