"""`RunEvents`: the events of a run behind a number, as its store has kept them, and on from there while it runs here.

It reads at its own pace and no run waits for it. It must not touch the run that it follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from rehydrate.codecs.events import decode_event
from rehydrate.codecs.records import decode_record
from rehydrate.errors import (
    EventsNotKeptError,
    ForeignCheckpointError,
    NoStoreError,
    RunNotFoundError,
    StreamStateError,
    WrongCallError,
)
from rehydrate.model.checkpoint import Head, StoredEvent, key_text
from rehydrate.model.events import Event
from rehydrate.model.records import RunRecord
from rehydrate.ports import CheckpointStorage, watched

from .actor import Actor
from .call import check_storage
from .events import Buffer, Channel, opened
from .owner import drivers, process_owner
from .program import Program

#: So many events are read at once.
_PAGE: Final = 100


class RunEvents:
    """An async iterator of events: all committed ones behind `after`, and the live ones that come meanwhile.

    Made by `Workflow.events()`. Where this process drives the run it goes on to the end of the turn; where another one
    does and the store can wake its readers, it does so too, without live events. Else it ends with what is stored.
    Raises `EventsNotKeptError` where the store has not kept the next one.
    """

    def __init__(self, program: Program, store: CheckpointStorage | None, run_id: str, after: int) -> None:
        check_storage(store)
        if store is None:
            raise NoStoreError("reading the events of a run")
        self._program = program
        self._store: CheckpointStorage = store
        self._run_id = run_id
        self._position = after
        self._page: deque[StoredEvent] = deque()
        self._live = Buffer()
        self._channel: Channel | None = None
        self._birth = ""
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._reading = False
        self._ended = False

    @property
    def dropped(self) -> int:
        """Number of live events that were dropped because the reader was too far behind."""
        return self._live.dropped

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> Event:
        """Return the next event."""
        if self._reading:
            raise StreamStateError("another task reads these events.", "Read them in one task and hand events on.")
        self._reading = True
        try:
            event = self._next()
            while event is None:
                if self._ended:
                    raise StopAsyncIteration
                await self._fill()
                event = self._next()
            return event
        finally:
            self._reading = False

    def _next(self) -> Event | None:
        """Return the next event that is at hand; a live one stands behind the committed one that it names."""
        live = self._live.waiting
        if live and self._channel is not None and live[0][1] <= self._position:
            event, number = live.popleft()
            # What was copied for a live event is known where it was told; that may be another object of this workflow.
            return opened(event, self._run_id, number, self._channel.codec)
        if not self._page:
            return None
        stored = self._page[0]
        if stored.number > self._position + 1:
            raise EventsNotKeptError(self._run_id, self._position + 1, stored.number - 1)
        self._page.popleft()
        event = decode_event(self._run_id, stored)
        self._position = stored.number
        return opened(event, self._run_id, stored.number, self._program.codec)

    async def _fill(self) -> None:
        """Read the next page; where there is none, wait for the run, or end."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._woken.clear()
        head = await self._store.head(self._run_id)
        if head is None:
            raise RunNotFoundError(self._run_id)
        self._check(head)
        driven = await self._follow(head)
        page = await self._store.events(self._run_id, after=self._position, limit=_PAGE)
        self._page.extend(page)
        if page:
            return
        if head.header.events > self._position:
            raise EventsNotKeptError(self._run_id, self._position + 1, head.header.events)
        if driven:
            await self._woken.wait()
            return
        waking = watched(self._store) if _is_driven_elsewhere(head) else None
        if waking is not None:
            await waking.changed(self._run_id, self._position)
        else:
            self._ended = True

    def _check(self, head: Head) -> None:
        """Refuse the run of another workflow, and a number that this run has not come to."""
        header, name = head.header, self._program.graph.name
        if header.workflow != name:
            belongs_to = f"workflow {header.workflow!r}"
            raise ForeignCheckpointError(header.checkpoint_id, belongs_to, f"workflow {name!r}")
        if self._position > header.events:
            raise WrongCallError(
                f"after is {self._position}, and the last event of run {self._run_id!r} is number {header.events}.",
                "Pass the sequence number of the last event that you have of this run.",
            )

    async def _follow(self, head: Head) -> bool:
        """Tell whether this process drives the run now; then its turn tells us what comes."""
        if head.owner != process_owner():
            return False
        if not self._birth:
            key = key_text("", "run", "")
            found = await self._store.read(self._run_id, [key])
            record = decode_record("run", found[key]) if key in found else None
            self._birth = record.birth if isinstance(record, RunRecord) else ""
        actors = [actor for actor in drivers(self._birth, head.epoch) if isinstance(actor, Actor) and actor.claimed]
        if not actors:
            return False
        channel = actors[0].channel
        if channel is self._channel:
            return True
        self._channel = channel
        try:
            channel.follow(self)
        except RuntimeError:  # its event loop was closed just now
            return False
        return True

    def take_live(self, event: Event, number: int) -> None:
        """Take a live event, from whatever thread the run is driven by."""
        if threading.get_ident() != self._thread:
            self._call(lambda: self.take_live(event, number))
            return
        self._live.take_live(event, number)
        self._woken.set()

    def wake(self) -> None:
        """Look at the store again, told from whatever thread the run is driven by."""
        if threading.get_ident() == self._thread:
            self._woken.set()
        else:
            self._call(self._woken.set)

    def _call(self, function: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the reader's event loop was closed
                self._loop.call_soon_threadsafe(function)


def _is_driven_elsewhere(head: Head) -> bool:
    return head.alive and head.owner != process_owner()
