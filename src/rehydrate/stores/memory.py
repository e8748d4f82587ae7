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

from rehydrate.errors import (
    CheckpointNotFoundError,
    CommitConflictError,
    RunBusyError,
    RunNotFoundError,
    StoreClosedError,
)
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

from .archives import adopted, check_archive
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
from .memory_run import MemoryRun
from .memory_tables import MemoryTables
from .records_sum import checked_sum
from .retention import droppable
from .standing import (
    WallClock,
    check_commit,
    standing_after,
    standing_renewed,
)


class InMemoryCheckpointStorage:
    """A store in this process's memory; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too.
    """

    def __init__(self, *, clock: Clock | None = None, keep_events: bool = False) -> None:
        self._keeps_events = check_flag("keep_events", keep_events)
        self._clock = clock or WallClock()
        self._tables = MemoryTables()
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
            run = self._tables.runs.get(commit.header.run_id)
            check_commit(commit, run.standing if run else None)
            self._tables.check(commit)
            self._tables.write(commit, standing_after(commit, self._clock.time()), keeps_events=self._keeps_events)

    async def head(self, run_id: str) -> Head | None:
        """Return the run's head, or `None` for an unknown run."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            return self._head(run) if run else None

    async def load(self, ref: CheckpointRef) -> Stored | None:
        """Return a checkpoint with its records, or `None`. Raises `CheckpointCorruptError` where the sum is wrong."""
        check_ref(ref)
        with self._open():
            found = self._tables.find(ref)
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
            run = self._tables.runs.get(run_id)
            return {key: run.live[key] for key in wanted if key in run.live} if run else {}

    async def find_request(self, request_id: str) -> RequestRow | None:
        """Return a request of any run, open or not."""
        check_texts(request_id=request_id)
        with self._open():
            return self._tables.requests.get(request_id)

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        """Return the turn that an idempotency key belongs to."""
        check_texts(workflow=workflow, key=key)
        with self._open():
            return self._tables.turns.get((workflow, key))

    async def requests(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[RequestRow]:
        """Return open requests, ordered by id, from the one behind `after` on."""
        check_page(limit)
        check_filters(workflow, None, after, run_id)
        with self._open():
            rows = list(self._tables.requests.values())
            chosen = (
                row
                for row in rows
                if row.state == "open"
                and (run_id is None or row.run_id == run_id)
                and (workflow is None or self._tables.runs[row.run_id].standing.workflow == workflow)
                and (after is None or row.request_id > after)
            )
            return heapq.nsmallest(limit, chosen, key=lambda row: row.request_id)

    async def renew(self, run_id: str, owner: str, epoch: int, seconds: float) -> None:
        """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
        check_texts(run_id=run_id, owner=owner)
        with self._open():
            run = self._tables.runs.get(run_id)
            until = self._clock.time() + seconds
            renewed = standing_renewed(run.standing if run else None, run_id, owner, epoch, until)
            if run is not None:
                run.standing = renewed

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
        with self._open():
            names = list(self._tables.offered if offered else self._tables.runs)
            heads = [run.headers[run.standing.seq] for run in map(self._tables.runs.__getitem__, names)]
        chosen = (header for header in heads if asked.takes(header) and (after is None or header.run_id > after))
        return heapq.nsmallest(limit, chosen, key=lambda header: header.run_id)

    async def history(self, run_id: str, *, before: int | None = None, limit: int = 100) -> list[Header]:
        """Return headers of a run, newest first, from the one below sequence number `before` on."""
        check_page(limit, before)
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            numbers = [seq for seq in run.headers if before is None or seq < before] if run else []
            return [run.headers[seq] for seq in heapq.nlargest(limit, numbers)] if run else []

    async def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[StoredEvent]:
        """Return the kept events of a run by number, from the one behind `after` on; none for an unknown run."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            if run is None:
                return []
            first = bisect_right(run.events, after, key=lambda event: event.number)
            return run.events[first : first + limit]

    async def offer(self, offer: Offer) -> int:
        """Put something into a run's inbox and return its number, the same one for the same key again."""
        check_offer(offer)
        with self._open():
            run = self._tables.runs.get(offer.run_id)
            if run is None:
                raise RunNotFoundError(offer.run_id)
            number = run.offer(offer)
            self._tables.look_into_inbox(run)
            return number

    async def offers(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Offer]:
        """Return what is in a run's inbox, by number, from the one behind `after` on."""
        check_event_page(after, limit)
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            waiting = [o for o in run.inbox.values() if o.number > after and not o.taken] if run else []
            return waiting[:limit]

    async def tag(self, run_id: str, name: str, checkpoint_id: str | None) -> None:
        """Give a checkpoint a name in its run, or take a name back. Raises `CheckpointNotFoundError`."""
        check_tag(run_id, name, checkpoint_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            if run is None:
                raise RunNotFoundError(run_id)
            if checkpoint_id is None:
                run.tags.pop(name, None)
                return
            place = self._tables.checkpoints.get(checkpoint_id)
            if place is None or place[0] != run_id:
                raise CheckpointNotFoundError(checkpoint_id)
            run.tags[name] = place[1]

    async def tags(self, run_id: str) -> dict[str, str]:
        """Return the names that checkpoints of a run have, with their ids."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            return {name: run.headers[run.tags[name]].checkpoint_id for name in sorted(run.tags)} if run else {}

    async def forget(self, run_id: str, numbers: Sequence[int]) -> list[int]:
        """Drop checkpoints and what no other one needs; the head and what has a name stay."""
        check_texts(run_id=run_id)
        asked = check_numbers(numbers)
        with self._open():
            run = self._tables.runs.get(run_id)
            if run is None:
                return []
            dropped = droppable(run.standing.seq, set(run.tags.values()), run.headers.keys(), asked)
            self._tables.forget(run, dropped)
            return dropped

    async def archive(self, run_id: str) -> Archive | None:
        """Return a whole run, or `None` for an unknown one."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            if run is None:
                return None
            return Archive(
                commits=run.commits(),
                events=tuple(run.events),
                requests=tuple(self._tables.requests[request_id] for request_id in sorted(run.requests)),
                turns=tuple(self._tables.turns[name] for name in sorted(run.turns)),
                tags={name: run.headers[seq].checkpoint_id for name, seq in sorted(run.tags.items())},
                offers=tuple(run.inbox.values()),
            )

    async def adopt(self, archive: Archive) -> None:
        """Write a whole run: all of it, or nothing. Raises `CommitConflictError` where it is there already."""
        check_archive(archive)
        with self._open():
            tables = self._tables
            run_id = archive.commits[0].header.run_id
            if run_id in self._tables.runs:
                raise CommitConflictError(
                    run_id, "no such run", f"head {self._tables.runs[run_id].standing.checkpoint_id}"
                )
            commits = list(adopted(archive))
            for commit in commits:
                tables.check(commit)
            for turn in archive.turns:
                tables.check_turn(turn)
            for commit in commits:
                tables.write(commit, standing_after(commit, 0.0), keeps_events=False)
            run = tables.runs[run_id]
            for turn in archive.turns:
                tables.write_turn(turn, run)
            run.events = list(archive.events)
            run.tags = {name: self._tables.checkpoints[found][1] for name, found in archive.tags.items()}
            run.inbox = {offer.key: offer for offer in archive.offers}
            tables.look_into_inbox(run)

    async def inspect(self, ref: CheckpointRef) -> Inspection:
        """Return what a checkpoint says without its workflow. Raises `CheckpointNotFoundError`."""
        stored = await self.load(ref)
        if stored is None:
            raise not_found(ref)
        return inspection(stored)

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
        check_texts(run_id=run_id)
        with self._open():
            run = self._tables.runs.get(run_id)
            if run is None:
                return False
            head = self._head(run)
            if head.alive and head.owner is not None:
                raise RunBusyError(run_id, head.owner)
            self._tables.delete(run_id)
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

    def _head(self, run: MemoryRun) -> Head:
        standing = run.standing
        held = standing.owner is not None and standing.lease_end > self._clock.time()
        return Head(
            header=run.headers[standing.seq],
            owner=standing.owner,
            epoch=standing.epoch,
            alive=held and run.pid == os.getpid(),
            offered=standing.run_id in self._tables.offered,
        )
