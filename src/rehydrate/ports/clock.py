"""Protocols for time, ids and randomness: they come in from outside, so that tests can fix them."""

from __future__ import annotations

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
