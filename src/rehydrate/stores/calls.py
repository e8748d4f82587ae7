"""Calls that a thread does for event loops: how their answers get back to whoever waits.

No object of a loop outlives its call. It must not know what a call does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol


class Awaited(Protocol):
    """A call that is done, with its result or its error, and the future of the loop that waits for it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that asked."""
        ...

    @property
    def future(self) -> asyncio.Future[object]:
        """What its caller waits for."""
        ...

    @property
    def result(self) -> object:
        """What came of it, where there is no error."""
        ...

    @property
    def error(self) -> BaseException | None:
        """Why nothing came of it."""
        ...


def answer(calls: Sequence[Awaited]) -> None:
    """Give their answers to calls, from any thread: one wake-up per loop, however many calls."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Awaited]] = {}
    for call in calls:
        by_loop.setdefault(call.loop, []).append(call)
    for loop, answered in by_loop.items():
        # A loop that was closed has nobody waiting.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, answered)


def _settle(calls: list[Awaited]) -> None:
    for call in calls:
        # A caller that was cancelled waits for no answer.
        if call.future.done():
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
