"""The memory store: the reference that the others are compared with.

It goes through the same bytes as every store and keeps them until the process ends. It must not share an object that
can change with its callers; a forked child has a copy of its own and owns none of the runs in it.
"""

from __future__ import annotations

import heapq
import os
from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock
from types import TracebackType

from rehydrate.errors import CheckpointNotFoundError, CommitConflictError, RunBusyError, StoreClosedError
from rehydrate.model.checkpoint import (
    CheckpointRef,
    Commit,
    Head,
    Header,
    Latest,
    RequestRow,
    Stored,
    StoredEvent,
    TurnRow,
)
from rehydrate.ports import Clock, Inspection

from .arguments import (
    check_commit_arguments,
    check_event_page,
    check_filters,
    check_keys,
    check_page,
    check_ref,
    check_texts,
)
from .inspection import inspection
from .records_sum import checked_sum
from .standing import (
    Standing,
    WallClock,
    check_commit,
    id_in_use,
    numbered_events,
    standing_after,
    standing_renewed,
)

_Versions = list[tuple[int, bytes | None]]


class _Run:
    """One run: its standing, its headers by number, its live records, and every version of each record."""

    __slots__ = ("events", "headers", "live", "pid", "requests", "standing", "turns", "versions")

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.pid = 0
        self.headers: dict[int, Header] = {}
        self.live: dict[str, bytes] = {}
        self.events: list[StoredEvent] = []
        self.versions: dict[str, _Versions] = {}
        self.requests: set[str] = set()
        self.turns: set[tuple[str, str]] = set()

    def write(self, commit: Commit, standing: Standing) -> None:
        seq = commit.header.seq
        for key in commit.removes:
            self.live.pop(key, None)
            self.versions.setdefault(key, []).append((seq, None))
        for put in commit.puts:
            self.live[put.key] = put.data
            self.versions.setdefault(put.key, []).append((seq, put.data))
        self.headers[seq] = commit.header
        self.standing = standing
        self.pid = os.getpid()

    def records_at(self, seq: int) -> dict[str, bytes]:
        if seq == self.standing.seq:
            return dict(self.live)
        records: dict[str, bytes] = {}
        for key, versions in self.versions.items():
            newest = bisect_right(versions, seq, key=lambda version: version[0])
            data = versions[newest - 1][1] if newest else None
            if data is not None:
                records[key] = data
        return records


class InMemoryCheckpointStorage:
    """A store in this process's memory; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too.
    """

    def __init__(self, *, clock: Clock | None = None, keep_events: bool = False) -> None:
        self._keeps_events = keep_events
        self._clock = clock or WallClock()
        self._runs: dict[str, _Run] = {}
        self._checkpoints: dict[str, tuple[str, int]] = {}
        self._requests: dict[str, RequestRow] = {}
        self._turns: dict[tuple[str, str], TurnRow] = {}
        self._lock = Lock()
        self._pid = os.getpid()
        self._closed = False

    async def __aenter__(self) -> InMemoryCheckpointStorage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def keeps_events(self) -> bool:
        """Whether events are kept."""
        return self._keeps_events

    async def commit(self, commit: Commit) -> None:
        """Write one commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
        check_commit_arguments(commit)
        with self._open():
            run = self._runs.get(commit.header.run_id)
            check_commit(commit, run.standing if run else None)
            self._check_names(commit)
            self._write(commit, run)

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._runs.get(run_id)
            return self._head(run) if run else None

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        with self._open():
            found = self._find(ref)
            if found is None:
                return None
            run, seq = found
            header, records, head = run.headers[seq], run.records_at(seq), self._head(run)
        return Stored(header=header, records=records, digests=checked_sum(header, records), head=head)

    async def read(self, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return those of the head's records that exist; none for an unknown run."""
        check_texts(run_id=run_id)
        wanted = check_keys(keys)
        with self._open():
            run = self._runs.get(run_id)
            return {key: run.live[key] for key in wanted if key in run.live} if run else {}

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        with self._open():
            return self._requests.get(request_id)

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        with self._open():
            return self._turns.get((workflow, key))

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        with self._open():
            run = self._runs.get(run_id)
            until = self._clock.time() + seconds
            renewed = standing_renewed(run.standing if run else None, run_id, owner, epoch, until)
            if run is not None:
                run.standing = renewed

    async def runs(
        self, *, workflow: str | None = None, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Header]:
        """Return the heads of runs, ordered by run id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, status, after)
        with self._open():
            heads = [run.headers[run.standing.seq] for run in self._runs.values()]
        chosen = (
            header
            for header in heads
            if (workflow is None or header.workflow == workflow)
            and (status is None or header.status.value == status)
            and (after is None or header.run_id > after)
        )
        return heapq.nsmallest(limit, chosen, key=lambda header: header.run_id)

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        with self._open():
            run = self._runs.get(run_id)
            numbers = [seq for seq in run.headers if before is None or seq < before] if run else []
            return [run.headers[seq] for seq in heapq.nlargest(limit, numbers)] if run else []

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        with self._open():
            run = self._runs.get(run_id)
            if run is None:
                return []
            first = bisect_right(run.events, after, key=lambda event: event.number)
            return run.events[first : first + limit]

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise CheckpointNotFoundError(ref.run_id if isinstance(ref, Latest) else ref)
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._runs.get(run_id)
            if run is None:
                return False
            head = self._head(run)
            if head.alive and head.owner is not None:
                raise RunBusyError(run_id, head.owner)
            del self._runs[run_id]
            for header in run.headers.values():
                del self._checkpoints[header.checkpoint_id]
            for request_id in run.requests:
                del self._requests[request_id]
            for name in run.turns:
                del self._turns[name]
            return True

    async def close(self) -> None:
        """Refuse every later call; a second call does nothing."""
        self._closed = True

    def _open(self) -> Lock:
        if self._closed:
            raise StoreClosedError("in memory")
        if self._pid != os.getpid():
            # A thread of the parent may have held the lock at the fork; here nobody would ever release it.
            self._lock = Lock()
            self._pid = os.getpid()
        return self._lock

    def _head(self, run: _Run) -> Head:
        standing = run.standing
        held = standing.owner is not None and standing.lease_end > self._clock.time()
        return Head(
            header=run.headers[standing.seq],
            owner=standing.owner,
            epoch=standing.epoch,
            alive=held and run.pid == os.getpid(),
        )

    def _find(self, ref: CheckpointRef) -> tuple[_Run, int] | None:
        if isinstance(ref, Latest):
            run = self._runs.get(ref.run_id)
            return (run, run.standing.seq) if run else None
        place = self._checkpoints.get(ref)
        return (self._runs[place[0]], place[1]) if place else None

    def _check_names(self, commit: Commit) -> None:
        header = commit.header
        if header.checkpoint_id in self._checkpoints:
            raise id_in_use(header, *self._checkpoints[header.checkpoint_id])
        for row in commit.requests:
            known = self._requests.get(row.request_id)
            if known is not None and known.run_id != row.run_id:
                raise CommitConflictError(header.run_id, f"request {row.request_id} as its own", "another run's")
        turn = commit.turn
        held = self._turns.get((turn.workflow, turn.key)) if turn else None
        if turn and held and (held.run_id, held.number) != (turn.run_id, turn.number):
            raise CommitConflictError(header.run_id, f"key {turn.key!r} as its own", "another turn's")

    def _write(self, commit: Commit, run: _Run | None) -> None:
        header = commit.header
        standing = standing_after(commit, self._clock.time())
        if run is None:
            run = self._runs[header.run_id] = _Run(standing)
        run.write(commit, standing)
        if self._keeps_events:
            run.events += numbered_events(commit)
        self._checkpoints[header.checkpoint_id] = (header.run_id, header.seq)
        for row in commit.requests:
            self._requests[row.request_id] = row
            run.requests.add(row.request_id)
        if commit.turn is not None:
            name = (commit.turn.workflow, commit.turn.key)
            self._turns[name] = commit.turn
            run.turns.add(name)
