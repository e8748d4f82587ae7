"""The order of calls through a store around a store: what was asked for after a write is done after it.

A write that takes more than one call of the store inside would else be overtaken. No object of an event loop is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from concurrent.futures import Future, InvalidStateError


class CallOrder:
    """The calls of one store that are on their way, and the last write of each run among them."""

    def __init__(self) -> None:
        self._calls: set[Future[None]] = set()
        self._writes: dict[str, Future[None]] = {}
        self._pid = os.getpid()

    @contextlib.asynccontextmanager
    async def call(self, run: str | None, *, writes: bool) -> AsyncGenerator[None, None]:
        """Wait for the writes of a run that are on their way, and let those wait that come while the block lasts."""
        self._forget_parent()
        call: Future[None] = Future()
        self._calls.add(call)
        before = self._writes.get(run) if run is not None else None
        if run is not None and writes:
            self._writes[run] = call
        try:
            if before is not None:
                await _end_of(before)
            yield
        finally:
            self._calls.discard(call)
            if run is not None and self._writes.get(run) is call:
                del self._writes[run]
            call.set_result(None)

    async def all_done(self) -> None:
        """Wait for the calls that are on their way."""
        self._forget_parent()
        for call in list(self._calls):
            await _end_of(call)

    def _forget_parent(self) -> None:
        """Wait for no call of the process that this one was forked from: it never ends here."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._calls.clear()
            self._writes.clear()


async def _end_of(call: Future[None]) -> None:
    # Each waits for one of its own, which is given up with it and with its loop.
    mine: Future[None] = Future()

    def end(_: Future[None]) -> None:
        with contextlib.suppress(InvalidStateError):
            mine.set_result(None)

    call.add_done_callback(end)
    await asyncio.wrap_future(mine)
