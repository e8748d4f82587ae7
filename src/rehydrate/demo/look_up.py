"""A stand-in for a licence database on the network: it answers a few look-ups at a time, each after a while.

A live object that comes with each call as a resource and is never stored. It knows nothing of licences; it only takes
time.
"""

from __future__ import annotations

import asyncio

__all__ = ["LookUp"]


class LookUp:
    """Lets `at_a_time` callers through, each after `seconds`."""

    def __init__(self, seconds: float, at_a_time: int) -> None:
        self._seconds = seconds
        self._places = asyncio.Semaphore(at_a_time)

    async def wait(self) -> None:
        """Return when a look-up would have its answer."""
        async with self._places:
            await asyncio.sleep(self._seconds)
