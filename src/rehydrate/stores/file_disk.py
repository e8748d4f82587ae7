"""Writing that lasts: new files, atomic replacement, and the sync of file and folder before anything is acknowledged.

A failed sync is never tried again: the system may then call lost data clean. It knows files, not runs; symbolic links
are never followed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rehydrate.errors import (
    RehydrateError,
    StoreBrokenError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: A pipe in the place of a file must not be waited for.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: The errors of ours that are their own; the others of these are `StoreUnavailableError` itself.
_OWN: Final = {errno.ENOSPC: StoreFullError, errno.EDQUOT: StoreFullError, errno.EROFS: StoreReadOnlyError}
_NOTHING_THERE: Final = "Check that the folder of the store is where it was."
_NETWORK: Final = "Check the network and the mount, then make a new store object."
_FIXES: Final = {
    errno.EACCES: "Give this process the right to read and write the folder of the store and all in it.",
    errno.EPERM: "Give this process the right to read and write the folder of the store and all in it.",
    errno.EROFS: "Make the file system of the store writable.",
    errno.ENOSPC: "Free space on the disk, then call again.",
    errno.EDQUOT: "Free space below the quota of the disk, then call again.",
    errno.EFBIG: "Raise the limit of file sizes (ulimit -f), then call again.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), then call again.",
    errno.ENFILE: "Raise the limit of open files of the system, then call again.",
    errno.EIO: "Check the disk; what was acknowledged is there. Then make a new store object.",
    errno.ENOENT: _NOTHING_THERE,
    errno.ENOTDIR: _NOTHING_THERE,
    errno.ENAMETOOLONG: "Use a file system that allows names of 255 bytes.",
    errno.ELOOP: "A symbolic link stands in the folder of the store; remove it and put back what it stands for.",
    errno.ENOLCK: "Put the store on a file system that has locks (flock).",
    errno.ESTALE: _NETWORK,
    errno.ENOTCONN: _NETWORK,
    errno.EHOSTDOWN: _NETWORK,
    errno.EHOSTUNREACH: _NETWORK,
    errno.ETIMEDOUT: _NETWORK,
}
#: After these the disk cannot be trusted with what was written to it: a new store object reads what is really there.
_BREAKING: Final = frozenset({errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.ETIMEDOUT})


class SyncError(Exception):
    """A sync failed: what was written before may be lost, whatever a later sync says."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def new_token() -> str:
    """Return a name that was never used."""
    return secrets.token_hex(8)


def write_new(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that is not there yet, and sync it."""
    descriptor = os.open(path, _NEW, 0o666)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(descriptor, view) :]
        _sync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(temporary: Path, path: Path) -> None:
    """Move a synced file or folder to its place, whatever stands there, and sync the folder that it is in now."""
    # Opened first: once it is there, nothing but the sync may fail, as for want of a descriptor.
    with _opened_folder(path.parent) as folder:
        os.replace(temporary, path)  # noqa: PTH105  (hot, and says what it does)
        _sync(folder)


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed and removed in a folder last."""
    with _opened_folder(folder) as descriptor:
        _sync(descriptor)


@contextmanager
def _opened_folder(folder: Path) -> Generator[int]:
    descriptor = os.open(folder, _READ | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder that lasts, unless it is there. Its parent must be there."""
    try:
        folder.mkdir()
    except FileExistsError:
        check_is_folder(folder)
        return
    sync_folder(folder.parent)


def check_is_folder(folder: Path) -> bool:
    """Say whether a folder is there. Raises `OSError` for anything else at its path, a symbolic link too."""
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    return True


@contextmanager
def opened(path: Path) -> Generator[int]:
    """Give a descriptor of a file to read."""
    descriptor = os.open(path, _READ)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: Path) -> list[str]:
    """Return the names of what is in a folder."""
    return os.listdir(folder)  # noqa: PTH208  (names are asked for, and paths cost more than all the rest)


def read_range(descriptor: int, start: int, size: int) -> bytes:
    """Return up to `size` bytes of a file from `start` on; fewer only at its end."""
    data = os.pread(descriptor, size, start)
    if len(data) == size or not data:
        return data
    pieces = [data]
    got = len(data)
    while got < size and (data := os.pread(descriptor, size - got, start + got)):
        pieces.append(data)
        got += len(data)
    return b"".join(pieces)


def read_whole(path: Path) -> bytes | None:
    """Return what is in a file; `None` where there is none."""
    try:
        with opened(path) as descriptor:
            return read_range(descriptor, 0, os.fstat(descriptor).st_size)
    except FileNotFoundError:
        return None


def translated(error: OSError | SyncError, store: str) -> RehydrateError:
    """Return the error of ours that says what an error of the system means."""
    if isinstance(error, SyncError):
        reason = error.error.strerror or str(error.error)
        return StoreBrokenError(
            store,
            f"what was written could not be made to last ({reason}); whether it did is seen when it is read again",
            "Check the disk and its space. Then make a new store object and load the head.",
        )
    where = f" at {error.filename!r}" if error.filename else ""
    fix = _FIXES.get(error.errno or 0, "Check the disk and the rights to the folder, then call again.")
    kind = StoreBrokenError if breaks_store(error) else _OWN.get(error.errno or 0, StoreUnavailableError)
    return kind(store, f"{error.strerror or error}{where}", fix)


def breaks_store(error: BaseException) -> bool:
    """Say whether a store must be opened anew after an error."""
    return isinstance(error, SyncError) or (isinstance(error, OSError) and error.errno in _BREAKING)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncError(error) from error
