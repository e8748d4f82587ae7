"""The events of one turn: numbered, opened for their reader, and handed on in order.

A channel has one reader of its own, and any number of followers that it tells. It holds no run state; what it drops or
keeps changes nothing in a run.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol
from weakref import ref

import msgspec

from rehydrate.codecs import ValueCodec
from rehydrate.errors import StreamStateError
from rehydrate.model.events import Emitted, Event, EventsDropped, InvocationStarted, OutputYielded, RequestOpened
from rehydrate.model.sealed import Sealed

from .observing import Observing

#: So many events wait for a slow reader; then committed ones wait before the run goes on, live ones are dropped.
BUFFER: Final = 1024


class Buffer:
    """What waits for one reader: a committed event is always kept, a live one only while there is room."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Event, int]] = deque()
        #: Number of live events that found no room.
        self.dropped = 0
        self._untold = 0

    def is_full(self) -> bool:
        """Tell whether the reader is too far behind."""
        return len(self.waiting) >= BUFFER

    def take(self, event: Event, number: int) -> None:
        """Keep an event; where live ones were dropped before it, say so in their place."""
        if self._untold:
            self.waiting.append((EventsDropped(live=True, count=self._untold), number if event.live else number - 1))
            self._untold = 0
        self.waiting.append((event, number))

    def take_live(self, event: Event, number: int) -> bool:
        """Keep a live event where there is room, and tell whether it was kept."""
        if self.is_full():
            self.dropped += 1
            self._untold += 1
            return False
        self.take(event, number)
        return True


class Follower(Protocol):
    """Someone else who wants to know what a turn tells; called on the turn's own thread."""

    def take_live(self, event: Event, number: int) -> None:
        """Take a live event, with the number of the last committed one."""
        ...

    def wake(self) -> None:
        """Learn that something was committed, or that no event follows."""
        ...


class Channel:
    """Where one turn's events go: into the result, or to a stream's reader."""

    def __init__(self, run_id: str, codec: ValueCodec, *, streaming: bool) -> None:
        self.run_id = run_id
        self.codec = codec
        self.streaming = streaming
        #: True while live events have anyone to go to.
        self.heard = streaming
        self.sequence = 0
        self.closed = False
        #: Tells the observers of the call what goes on in it.
        self.observed: Observing | None = None
        self._buffer = Buffer()
        self._kept: list[tuple[Event, int]] = []
        self._followers: list[ref[Follower]] = []
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._ignored = False
        self._unbounded = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @property
    def dropped(self) -> int:
        """Number of live events that the reader was too slow for."""
        return self._buffer.dropped

    def publish(self, events: Sequence[Event], *, again: bool = False) -> None:
        """Take committed events; they get the run's next numbers, unless they repeat what earlier commits hold."""
        for event in events:
            self.sequence += not again
            self._take(event)
        if self.observed is not None:
            self.observed.told(events)
        if events and self._followers:
            self._wake_followers()

    def live(self, event: Event) -> None:
        """Take a live event, unless the reader is too far behind."""
        if not self.heard:
            return
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.live, event)
            return
        if self.closed:
            return
        for follower in self._following():
            follower.take_live(event, self.sequence)
        if self.streaming and not self._ignored and self._buffer.take_live(event, self.sequence):
            self._wake_reader()

    def follow(self, follower: Follower) -> None:
        """Tell a follower too, for as long as somebody holds it; it is woken as soon as that has begun."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.follow, follower)
            return
        self._followers.append(ref(follower))
        self.heard = True
        follower.wake()

    def _following(self) -> list[Follower]:
        if not self._followers:
            return []
        found = [follower for follower in (weak() for weak in self._followers) if follower is not None]
        if len(found) < len(self._followers):
            self._followers = [ref(follower) for follower in found]
            self.heard = self.streaming or bool(found)
        return found

    def _wake_followers(self) -> None:
        for follower in self._following():
            follower.wake()

    def _take(self, event: Event) -> None:
        if not self.streaming:
            self._kept.append((event, self.sequence))
            return
        if self._ignored:
            return
        self._buffer.take(event, self.sequence)
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def has_room(self) -> bool:
        """Tell whether the next committed event need not wait for the reader."""
        return self._unbounded or not self.streaming or not self._buffer.is_full()

    async def room(self) -> None:
        """Wait until the reader has taken something, or asks for something itself."""
        self._writer = asyncio.get_running_loop().create_future()
        await self._writer

    def nudge(self) -> None:
        """Let the run go on although its reader is behind: the reader waits for it."""
        self._wake_writer()

    def wait_no_more(self) -> None:
        """Take what still comes without waiting for the reader: the run is about to end."""
        self._unbounded = True
        self._wake_writer()

    def ignore(self) -> None:
        """Read the rest away."""
        self._ignored = self._unbounded = True
        self._buffer.waiting.clear()
        self._wake_writer()

    def ignore_later(self) -> None:
        """Read the rest away, asked from another thread."""
        self._loop.call_soon_threadsafe(self.ignore)

    def _wake_writer(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    def close(self) -> None:
        """Say that no event follows."""
        self.closed = True
        self._wake_reader()
        self._wake_followers()

    async def next(self) -> Event | None:
        """Return the next event, `None` after the last. Raises `StreamStateError` where another task waits for it."""
        waiting = self._buffer.waiting
        while not waiting:
            if self.closed:
                return None
            if self._reader is not None and not self._reader.done():
                raise StreamStateError("another task reads this stream.", "Read it in one task and hand events on.")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        event, number = waiting.popleft()
        self._wake_writer()
        return opened(event, self.run_id, number, self.codec)

    def kept(self) -> tuple[Event, ...]:
        """Return all events of a turn that was not streamed."""
        return tuple(opened(event, self.run_id, number, self.codec) for event, number in self._kept)


def opened(event: Event, run_id: str, number: int, codec: ValueCodec) -> Event:
    """Return an event as its reader gets it: with run and number, and with data that nobody else holds."""
    if isinstance(event, OutputYielded | RequestOpened | Emitted) and isinstance(event.data, Sealed):
        codec = codec.copies if isinstance(event, Emitted) else codec
        return msgspec.structs.replace(event, run_id=run_id, sequence=number, data=codec.open(event.data))
    return msgspec.structs.replace(event, run_id=run_id, sequence=number)


def started(path: str, executor_id: str, superstep: int, activation: int) -> InvocationStarted:
    """Return the live event of an executor that begins to handle a message."""
    return InvocationStarted(path=path, executor_id=executor_id, superstep=superstep, activation=activation, live=True)
