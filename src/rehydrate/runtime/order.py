"""The order in which calls came back to a function: it gets them in the same order whenever it runs anew.

So code that goes by what came first goes the same way again. One that has changed and does not make a call any more is
not held up for long. Nothing is recorded here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

from rehydrate.model.passes import CallRecord

from .waiting import Waiting

#: Turns of the event loop that a function has for what it makes of one, before it is given the next.
_TURNS: Final = 8
#: How long all that waits is held back at most for a call that is not made, since something was given, in seconds.
_PATIENCE: Final = 1.0


class Order:
    """That of one pass. Numbers begin at 1; what has none came back while the function did not run."""

    __slots__ = ("_arrivals", "_by_itself", "_is_late", "_last", "_left", "_settling", "_timer", "_waiters", "_waiting")

    def __init__(self, known: Iterable[CallRecord], waiting: Waiting) -> None:
        numbered = [record for record in known if record.order]
        self._last = max((record.order for record in numbered), default=0)
        self._left = deque(sorted(record.order for record in numbered if not record.given_up))
        #: A heap by number, those without one at the end in order of arrival; who waits no more is done.
        self._waiters: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._waiting = waiting
        self._settling = False
        #: Whether the function itself made the calls that this is for, and nobody else called anything.
        self._by_itself = False
        #: Runs while somebody waits and nothing settles.
        self._timer: asyncio.TimerHandle | None = None
        #: Whether that was up, and nothing has been given since.
        self._is_late = False

    def next_number(self) -> int:
        """Return the number of what is given now."""
        self._last += 1
        return self._last

    def come_back(self) -> int:
        """Return the number of what comes back now. It has a `turn`, or is dropped."""
        self._left.append(self.next_number())
        return self._last

    def drop(self, number: int) -> None:
        """Hold nothing up for what nobody waits for any more."""
        if self._left and self._left[0] <= number and number in self._left:
            self._left.remove(number)
            self._begin_to_settle()

    async def turn(self, number: int) -> None:
        """Wait until all that came back before is given, and the function has made of it what it does at once."""
        alone = self._waiting.is_alone()
        if not alone:
            await asyncio.sleep(0)  # as it was waited for at first, tasks that are to begin begin before it
        if not self._is_next(number or inf) or (self._settling and not (alone and self._by_itself)):
            await self._wait(number or inf)
        while self._left and number and self._left[0] <= number:
            self._left.popleft()
        self._is_late = False
        self._by_itself = alone and (self._by_itself or not self._settling)
        self._begin_to_settle()

    def _is_next(self, number: float) -> bool:
        """Tell whether nothing is left that came before; one that is late, as others went before it, is not held."""
        return not self._left or number <= self._left[0]

    async def _wait(self, number: float) -> None:
        let: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiters, (number, next(self._arrivals), let))
        if not self._settling and self._timer is None:
            self._begin_to_time()
        self._waiting.running += 1
        try:
            await let
        finally:
            let.cancel()
            if self._first() is None:
                self._end_to_time()
            self._waiting.running -= 1
            self._waiting.changed()

    def _first(self) -> tuple[float, int, asyncio.Future[None]] | None:
        """Return who is to be given something next."""
        while self._waiters and self._waiters[0][2].done():
            heappop(self._waiters)
        return self._waiters[0] if self._waiters else None

    def _begin_to_time(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._be_late)

    def _end_to_time(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _be_late(self) -> None:
        """Let the first go on, unless the call that it waits for is only about to be made: code may have been slow."""
        self._is_late = True
        self._begin_to_settle()

    def _begin_to_settle(self) -> None:
        self._end_to_time()
        if not self._settling:
            self._settling = True
            self._settle(_TURNS)

    def _settle(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._settle, turns - 1)
            return
        self._settling = False
        first = self._first()
        if first is None:
            return
        if self._is_late or self._is_next(first[0]):
            self._is_late = False
            first[2].set_result(None)
        else:
            self._begin_to_time()
