"""A lock between processes that write one file: exclusive, fair, freed by the system when its holder dies.

A gate in front of it is held while waiting, so that a busy process cannot take the lock again before one that waits.
Waiting is bounded: a stopped holder ends in an error that says so, never in silence. Not for use by several threads.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from rehydrate.errors import StoreFullError, StoreUnavailableError

#: Seconds that a write of another process may take before waiting for it is given up.
PATIENCE: Final = 60.0
#: Waits are this short at first, because a write takes less than a millisecond, and longer after `_EAGER` seconds.
_SHORT: Final = 0.00002
_LONG: Final = 0.002
_EAGER: Final = 0.02


class FileLock:
    """A lock made of two files in `directory`, which it creates."""

    def __init__(self, directory: Path, store: str) -> None:
        self._directory = directory
        self._store = store
        self._gate: int | None = None
        self._lock: int | None = None

    @contextlib.contextmanager
    def hold(self) -> Generator[None, None, None]:
        """Hold the lock. Raises `StoreUnavailableError` where it cannot be made or does not come free in time."""
        try:
            gate, lock = self._files()
            self._wait(gate)
            try:
                self._wait(lock)
            finally:
                fcntl.flock(gate, fcntl.LOCK_UN)
        except OSError as error:
            what = f"its lock files in {self._directory} cannot be used ({error.strerror})"
            fix = "Check that the folder of the store exists and that every process using it can write there."
            raise unusable(error, self._store, what, fix) from error
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files. In a forked child this frees nothing that the parent holds, as the child closes copies."""
        for descriptor in (self._gate, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._gate = self._lock = None

    def _files(self) -> tuple[int, int]:
        # A lock file that somebody removed excludes nobody any more; all come together again on a new one.
        if self._gate is None or self._lock is None or _removed(self._gate) or _removed(self._lock):
            self.close()
            self._directory.mkdir(exist_ok=True)
            self._gate = os.open(self._directory / "gate.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._lock = os.open(self._directory / "write.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._gate, self._lock

    def _wait(self, descriptor: int) -> None:
        if try_lock(descriptor, fcntl.LOCK_EX):
            return
        begun = time.monotonic()
        while not try_lock(descriptor, fcntl.LOCK_EX):
            waited = time.monotonic() - begun
            if waited > PATIENCE:
                raise StoreUnavailableError(
                    self._store,
                    f"another process has been writing to it for {PATIENCE:.0f} seconds",
                    f"Find the process that holds {self._directory / 'write.lock'}; it may be stopped.",
                )
            time.sleep(_SHORT if waited < _EAGER else _LONG)


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock of `kind` (`fcntl.LOCK_EX` or `LOCK_SH`) if it is free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unusable(error: OSError, store: str, what: str, fix: str) -> StoreUnavailableError:
    """Return the error for a lock file that cannot be used: one of its own where there is no room for it."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreFullError(store, what, "Free space on the disk, then call again.")
    return StoreUnavailableError(store, what, fix)


def _removed(descriptor: int) -> bool:
    return os.fstat(descriptor).st_nlink == 0
