"""The real clock and the real source of ids; tests put others in their place."""

from __future__ import annotations

import os
import secrets

from rehydrate.ports import Clock, IdSource
from rehydrate.ports.clock import wall_time


class SystemClock(Clock):
    """The machine's clock."""

    def time(self) -> float:
        """Return the time in seconds since the epoch."""
        return wall_time()


class _Entropy:
    """The operating system's randomness, fetched for many ids at once; the child of a fork fetches its own."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def take(self) -> str:
        """Return 32 random hexadecimal characters that were never returned before."""
        try:
            return self._held.pop()
        except IndexError:
            text = secrets.token_hex(16 * 64)
            self._held = [text[start : start + 32] for start in range(32, len(text), 32)]
            return text[:32]

    def drop(self) -> None:
        """Forget what was fetched."""
        self._held = []


_ENTROPY = _Entropy()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ENTROPY.drop)


class RandomIds(IdSource):
    """Ids from the operating system's randomness; they never decide what is newer."""

    def new_id(self) -> str:
        """Return 32 random lower-case hexadecimal characters."""
        return _ENTROPY.take()
