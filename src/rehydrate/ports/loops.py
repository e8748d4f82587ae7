"""What a loop that does not live in real time must be told: futures that another thread settles, and idle timers.

An ordinary loop needs nothing of this. It must not say what is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


def future_of_thread(loop: asyncio.AbstractEventLoop) -> asyncio.Future[object]:
    """Return a future of this loop that a thread will settle through `call_soon_threadsafe`."""
    make = cast("Callable[[], asyncio.Future[object]] | None", getattr(loop, "create_future_of_thread", None))
    return loop.create_future() if make is None else make()


def idle_timer(seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    """Call something later that nobody waits for: time need not go on for its sake."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, callback)
    note = cast("Callable[[asyncio.TimerHandle], None] | None", getattr(loop, "note_idle_timer", None))
    if note is not None:
        note(timer)
    return timer
