"""The events of one turn: numbered, opened for their reader, and handed on in order.

A channel has one reader at most. It holds no run state; what it drops or keeps changes nothing in a run.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from rehydrate.codecs import ValueCodec
from rehydrate.model.events import Emitted, Event, InvocationStarted, OutputYielded, RequestOpened
from rehydrate.model.sealed import Sealed

#: So many events wait for a slow reader; then committed ones wait before the run goes on, live ones are dropped.
BUFFER = 1024


class Channel:
    """Where one turn's events go: into the result, or to a stream's reader."""

    def __init__(self, run_id: str, codec: ValueCodec, *, streaming: bool) -> None:
        self.run_id = run_id
        self.codec = codec
        self.streaming = streaming
        self.sequence = 0
        self.dropped = 0
        self.closed = False
        self._kept: list[tuple[Event, int]] = []
        self._waiting: deque[tuple[Event, int]] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._ignored = False
        self._unbounded = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def publish(self, events: Sequence[Event]) -> None:
        """Take committed events; they get the run's next numbers."""
        for event in events:
            self.sequence += 1
            self._take((event, self.sequence))

    def surface(self, events: Sequence[Event]) -> None:
        """Take events that repeat what earlier commits hold; they get no new numbers."""
        for event in events:
            self._take((event, self.sequence))

    def live(self, event: Event) -> None:
        """Take a live event, unless the reader is too far behind."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.live, event)
            return
        if self.closed:
            return
        if self.streaming and len(self._waiting) >= BUFFER:
            self.dropped += 1
            return
        self._take((event, self.sequence))

    def _take(self, item: tuple[Event, int]) -> None:
        if not self.streaming:
            self._kept.append(item)
            return
        if self._ignored:
            return
        self._waiting.append(item)
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def has_room(self) -> bool:
        """Tell whether the next committed event need not wait for the reader."""
        return self._unbounded or not self.streaming or len(self._waiting) < BUFFER

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
        self._waiting.clear()
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

    async def next(self) -> Event | None:
        """Return the next event, `None` after the last."""
        while not self._waiting:
            if self.closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        item = self._waiting.popleft()
        self._wake_writer()
        return self._opened(item)

    def kept(self) -> tuple[Event, ...]:
        """Return all events of a turn that was not streamed."""
        return tuple(self._opened(item) for item in self._kept)

    def _opened(self, item: tuple[Event, int]) -> Event:
        event, number = item
        if isinstance(event, OutputYielded | RequestOpened | Emitted) and isinstance(event.data, Sealed):
            return msgspec.structs.replace(event, run_id=self.run_id, sequence=number, data=self.codec.open(event.data))
        return msgspec.structs.replace(event, run_id=self.run_id, sequence=number)


def started(path: str, executor_id: str, superstep: int, activation: int) -> InvocationStarted:
    """Return the live event of an executor that begins to handle a message."""
    return InvocationStarted(path=path, executor_id=executor_id, superstep=superstep, activation=activation, live=True)
