"""Failures of steps that were raised in a function, and which of them are tried again once it has failed.

One that the function has caught, and after which it has called something, is part of the way that it took. It keeps no
records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast


class RaisedFailures:
    """Those of one pass."""

    __slots__ = ("_raised", "calls")

    def __init__(self) -> None:
        #: How many calls there were so far.
        self.calls = 0
        self._raised: list[tuple[BaseException, str, int]] = []

    def add(self, error: BaseException, call: str) -> None:
        """Note that the failure of a call is raised."""
        self._raised.append((error, call, self.calls))

    def to_repeat(self, error: BaseException) -> tuple[str, ...]:
        """Return the calls whose failures led to an error, or after which nothing was called that may have come of
        them."""
        chain = list(_behind(error))
        found = [
            call
            for raised, call, calls in self._raised
            if calls == self.calls or any(raised is other for other in chain)
        ]
        return tuple(dict.fromkeys(found))


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", found).exceptions
