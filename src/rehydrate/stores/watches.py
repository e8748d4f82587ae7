"""Watches: calls that are answered once what they look for is there, and are asked again until then.

They are asked again after this process has written, and now and then whether others have. It must not look at anything
while nobody waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from .calls import Awaited, answer

#: How often it is asked whether other processes have written, and at most the watches, in seconds.
EVERY: Final = 0.05


class Asked(Awaited, Protocol):
    """A call that may be a watch."""

    @property
    def watches(self) -> bool:
        """Whether it waits for a result that is true."""
        ...


_C = TypeVar("_C", bound=Asked)


class Watches(Generic[_C]):
    """The watches at one place, on its thread.

    `version` gives what is another once other processes have written.
    """

    def __init__(self, version: Callable[[], object]) -> None:
        self._version = version
        self._seen: object = None
        self._waiting: list[_C] = []
        #: Whether calls have written since the watches were asked.
        self._wrote = False
        self._asked = -EVERY
        self._next = 0.0

    def settle(self, calls: Sequence[_C]) -> None:
        """Answer calls that were done; those that wait for more are kept."""
        done: list[_C] = []
        for call in calls:
            waits = call.watches and not call.result and call.error is None
            (self._waiting if waits else done).append(call)
        answer(done)

    def seconds(self) -> float | None:
        """Return how long the thread may wait for its next call; `None` for as long as it likes."""
        return max(0.0, self._next - time.monotonic()) if self._waiting else None

    def due(self, *, wrote: bool) -> list[_C]:
        """Return the watches that are to be asked again, which are no longer kept; `wrote`: calls have just written.

        They are asked once in `EVERY` seconds, however much is written meanwhile.
        """
        if not self._waiting:
            self._wrote = False
            return []
        self._wrote = self._wrote or wrote
        now = time.monotonic()
        if now < self._next and not (self._wrote and now >= self._asked + EVERY):
            return []
        self._next = now + EVERY
        self._waiting = [call for call in self._waiting if not (call.future.done() or call.loop.is_closed())]
        if not self._waiting or not (self._wrote or self._others_wrote()):
            return []
        self._wrote, self._asked = False, now
        due, self._waiting = self._waiting, []
        return due

    def _others_wrote(self) -> bool:
        seen, self._seen = self._seen, self._version()
        return self._seen != seen

    def wake(self) -> None:
        """Answer all watches, so that who waits looks for himself."""
        waiting, self._waiting = self._waiting, []
        answer(waiting)
