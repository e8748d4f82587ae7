"""The claim as a call sees it: it waits until its turn's input is saved, and no longer than it wants to.

The commit itself is the actor's; here is only who is told of it.
"""

from __future__ import annotations

import asyncio
from typing import Final

#: How long a cancelled call waits for a commit on its way, in seconds.
CANCEL_SECONDS: Final = 5.0


class Claim:
    """One claim on its way: `saved` once it is, `given_up` where nobody waited for it any more."""

    __slots__ = ("_waiter", "given_up", "saved")

    def __init__(self) -> None:
        self.saved = False
        self.given_up = False
        self._waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, task: asyncio.Task[None]) -> None:
        """Wait for the claim that `task` makes. Raises what the store raised.

        Cancelled, it waits on for the commit on its way, for some seconds; a claim that is saved later still must
        start nothing.
        """
        try:
            await self._waiter
        except asyncio.CancelledError:
            if not self.saved and not task.done():
                self._waiter = asyncio.get_running_loop().create_future()
                await asyncio.wait([self._waiter], timeout=CANCEL_SECONDS)
                if self._waiter.done():
                    self._waiter.exception()  # nobody else reads it
            self.given_up = not self.saved
            raise

    def succeed(self) -> bool:
        """Say that the claim is saved, and return whether the run goes on."""
        if self.given_up:
            return False
        self.saved = True
        if not self._waiter.done():
            self._waiter.set_result(None)
        return True

    def fail(self, error: BaseException) -> None:
        """Say that the claim could not be saved."""
        if not self._waiter.done():
            self._waiter.set_exception(error)
