"""The order in which calls came back to a function: it gets them in the same order whenever it runs anew.

So code that goes by what came first goes the same way again. One that has changed and does not make a call any more is
not held up for long. Nothing is recorded here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from rehydrate.model.passes import CallRecord

from .waiting import Waiting

#: Turns of the event loop that a function has for what it makes of one, before it is given the next.
_TURNS: Final = 8
#: How long something is held back at most for what came back before it, in seconds.
_PATIENCE: Final = 1.0


class Order:
    """That of one pass. Numbers begin at 1; what has none came back while the function did not run."""

    __slots__ = ("_last", "_left", "_settling", "_waiters", "_waiting")

    def __init__(self, known: Iterable[CallRecord], waiting: Waiting) -> None:
        numbered = [record for record in known if record.order]
        self._last = max((record.order for record in numbered), default=0)
        self._left = deque(sorted(record.order for record in numbered if not record.given_up))
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._waiting = waiting
        self._settling = False

    def next_number(self) -> int:
        """Return the number of what comes back now."""
        self._last += 1
        return self._last

    async def turn(self, number: int) -> None:
        """Wait until all that came back before is given."""
        if not self._waiting.is_alone():
            await asyncio.sleep(0)  # as it was waited for at first, tasks that are to begin begin before it
        if not self._is_next(number):
            await self._wait(number)
        while self._left and number and self._left[0] <= number:
            self._left.popleft()
        if self._waiters and not self._settling:
            self._settling = True
            self._settle(_TURNS)

    def _is_next(self, number: int) -> bool:
        return not self._left or self._left[0] == number

    async def _wait(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        let: asyncio.Future[None] = loop.create_future()
        waiter = (number, let)
        self._waiters.append(waiter)
        self._waiting.running += 1
        timer = loop.call_later(_PATIENCE, _let, let)
        try:
            await let
        finally:
            timer.cancel()
            self._waiters.remove(waiter)
            self._waiting.running -= 1
            self._waiting.changed()

    def _settle(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._settle, turns - 1)
            return
        self._settling = False
        for number, let in self._waiters:
            if self._is_next(number) and not let.done():
                let.set_result(None)
                return


def _let(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
