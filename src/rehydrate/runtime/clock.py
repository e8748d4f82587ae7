"""The real clock and the real source of ids; tests put others in their place."""

from __future__ import annotations

import secrets
import time

from rehydrate.ports import Clock, IdSource


class SystemClock(Clock):
    """The machine's clock."""

    def time(self) -> float:
        """Return the time in seconds since the epoch."""
        return time.time()


class RandomIds(IdSource):
    """Ids from the operating system's randomness; they never decide what is newer."""

    def new_id(self) -> str:
        """Return 32 random lower-case hexadecimal characters."""
        return secrets.token_hex(16)
