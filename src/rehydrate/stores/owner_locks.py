"""Owner locks: one locked file per owner id of this process, so that others see at once when the process is gone.

The system frees such a lock with its process. A forked child must close its copies, or it would keep its parent alive
for everybody. Ids become hashes before they become file names.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from pathlib import Path
from typing import Final

from rehydrate.errors import StoreUnavailableError

from .file_lock import try_lock, unusable

_SUFFIX: Final = ".owner"
#: A process that looks whether an owner lives holds its lock for microseconds; this many milliseconds are plenty.
_TRIES: Final = 500


class OwnerLocks:
    """The owner locks of one store in this process, in `directory`."""

    def __init__(self, directory: Path, store: str) -> None:
        self._directory = directory
        self._store = store
        self._held: dict[str, int] = {}

    def hold(self, owner: str) -> None:
        """Lock an owner id for this process until `release`. Raises `StoreUnavailableError` where another holds it."""
        if owner in self._held:
            return
        try:
            self._held[owner] = self._take(self._path(owner))
        except OSError as error:
            what = f"an owner file in {self._directory} cannot be used ({error.strerror})"
            fix = "Make the folder of the store writable for every process that uses it."
            raise unusable(error, self._store, what, fix) from error

    def lives(self, owner: str) -> bool:
        """Say whether the process of an owner is there; a file that can be locked, or none, shows that it is not."""
        if owner in self._held:
            return True
        try:
            descriptor = os.open(self._path(owner), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreUnavailableError(
                self._store,
                f"an owner file in {self._directory} cannot be read ({error.strerror})",
                "Make the folder of the store readable for every process that uses it.",
            ) from error
        try:
            return not try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove files of processes that are gone. The caller holds the store's write lock, so only one sweeps."""
        for path in self._directory.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                _remove_free(path)

    def release(self) -> None:
        """Remove and free all locks of this process."""
        for owner, descriptor in self._held.items():
            with contextlib.suppress(OSError):
                self._path(owner).unlink()
            os.close(descriptor)
        self._held.clear()

    def forget(self) -> None:
        """Close a forked child's copies; the files and the locks are the parent's."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _path(self, owner: str) -> Path:
        return self._directory / (hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:40] + _SUFFIX)

    def _take(self, path: Path) -> int:
        for _ in range(_TRIES):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if try_lock(descriptor, fcntl.LOCK_EX) and _is_at(descriptor, path):
                return descriptor
            # Somebody looked at it, or swept it away between the two calls.
            os.close(descriptor)
            time.sleep(0.001)
        raise StoreUnavailableError(
            self._store,
            "this owner id is held by another living process",
            "Make a new owner id in every process, also in the child of a fork.",
        )


def _remove_free(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Shared, so that a process which looks at the same moment does not take the dead owner for a living one.
        if try_lock(descriptor, fcntl.LOCK_SH) and _is_at(descriptor, path):
            path.unlink()
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)
