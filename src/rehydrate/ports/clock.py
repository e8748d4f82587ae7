"""Protocols for time, ids and randomness: they come in from outside, so that tests can fix them.

The wall clock of the process is for whoever was given no clock; a test that lives in virtual time puts its own there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, in seconds since the epoch."""

    def time(self) -> float:
        """Return the time."""
        ...


class IdSource(Protocol):
    """Where new ids come from."""

    def new_id(self) -> str:
        """Return an id that was never given before, of 32 lower-case hexadecimal characters."""
        ...


class _Wall:
    """What tells the time in this process."""

    def __init__(self) -> None:
        self.tell: Callable[[], float] = time.time


_WALL = _Wall()


def wall_time() -> float:
    """Return the time of this process, in seconds since the epoch."""
    return _WALL.tell()


@contextmanager
def wall_clock(clock: Clock) -> Generator[None]:
    """Let another clock tell the time of this process."""
    before, _WALL.tell = _WALL.tell, clock.time
    try:
        yield
    finally:
        _WALL.tell = before
