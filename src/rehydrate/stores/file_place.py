"""The folder of a file store: whether one may be there, its marker, its locks, and where everything in it lies.

Lives on one thread (`worker`). It must not know what a commit is; it is that one folder for good.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

from rehydrate.errors import CheckpointCorruptError, StoreBrokenError, StoreUnavailableError, WrongStoreError

from .file_disk import (
    SyncError,
    breaks_store,
    check_is_folder,
    make_folder,
    names_in,
    new_token,
    put_in_place,
    read_whole,
    translated,
    write_new,
)
from .file_format import FILE_FORMAT, MarkerLine, opened_line, sealed_line
from .file_lock import FileLock
from .file_names import escaped, hashed
from .owner_locks import OwnerLocks

MARKER: Final = "rehydrate-store.json"
LOCKS: Final = "locks"
TEMPORARY: Final = "tmp"
#: What a store has in its folder; the marker is made last.
FOLDERS: Final = (
    TEMPORARY,
    "runs",
    "checkpoints",
    "requests",
    "turns",
    "workflows",
    "statuses",
    "open",
    "inboxes",
    "timers",
)
#: What runs are noted under that may have something in their inbox (`inboxes`) or wait for a timer (`timers`).
WAITING: Final = "waiting"
#: How many files of others are named.
_NAMED: Final = 3


class FilePlace:
    """The folder of a store, opened when first used, with `path` absolute.

    While another folder or none stands at the path, every call is refused.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.store = repr(path)
        self.root = Path(path)
        self._lock = FileLock(self.root / LOCKS, self.store)
        self.owners = OwnerLocks(self.root / LOCKS, self.store)
        self._identity: tuple[int, int] | None = None
        self._pin: int | None = None
        self._broken = False

    def run_folder(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / escaped(run_id)

    def pointer(self, kind: str, *names: str) -> Path:
        """Return the file that says where something is: `kind` is `checkpoints`, `requests` or `turns`."""
        return self.root.joinpath(kind, *hashed(*names))

    def marks(self, kind: str, value: str) -> Path:
        """Return the folder with an empty file for each name that is noted under a value.

        `kind` is `statuses`, `workflows`, `inboxes` or `timers`, or `open`, whose values are names of runs' folders.
        """
        if kind == "open":
            return self.root / kind / value
        return self.root / kind / escaped(value.lower() if kind == "statuses" else value)

    def temporary(self, suffix: str, token: str = "") -> Path:
        """Return a path for something that is not in its place yet."""
        return self.root / TEMPORARY / f"{token or new_token()}{suffix}"

    def left_behind(self) -> list[Path]:
        """Return what a process that is gone has not brought to its place; inside `writing`."""
        folder = self.root / TEMPORARY
        return [folder / name for name in sorted(names_in(folder))]

    def check_usable(self) -> None:
        """Open the store where that is still to be done. Raises where it cannot be used."""
        if self._broken:
            raise StoreBrokenError(
                self.store,
                "the disk failed before, and what is on it was not looked at since",
                "Check the disk, make a new store object, and load the head.",
            )
        if self._identity is None:
            self._open()
        self._check_identity()

    @contextlib.contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Keep every other process from writing."""
        with self._lock.hold():
            self._check_identity()
            yield

    def note(self, error: BaseException) -> None:
        """Refuse every later call where an error leaves it open what is on the disk."""
        if breaks_store(error):
            self._broken = True

    @property
    def is_over(self) -> bool:
        """Say whether a new store object needs a new place: the folder is another one, or its disk has failed."""
        return self._broken or (self._identity is not None and _identity(self.path) != self._identity)

    def disconnect(self) -> None:
        """Nothing is open between two batches that a fork could not copy."""

    def close(self) -> None:
        """Free what belongs to this process."""
        self.owners.release()
        self._lock.close()
        if self._pin is not None:
            os.close(self._pin)
            self._pin = None

    def let_go(self) -> None:
        """Free the owner locks of a folder that is gone, or whose disk has failed."""
        self.owners.release()

    def forget(self) -> None:
        """Close a forked child's copies; the locks are the parent's."""
        self.owners.forget()
        self._lock.close()

    def _open(self) -> None:
        try:
            self._make_folder()
            with self._lock.hold():
                self._check_marker()
                self.owners.sweep()
                self._pin = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._identity = _identity(self.path)
        except OSError as error:
            self.note(error)  # what is raised says that the store answers nothing any more, so it must not
            raise translated(error, self.store) from error

    def _make_folder(self) -> None:
        """Make the folder where there is none. Raises where something else is there."""
        parent = self.root.parent
        if not parent.exists():
            raise WrongStoreError(
                self.store, f"the folder {str(parent)!r} does not exist", "Make the folder, or check the path."
            )
        try:
            make_folder(self.root)
        except NotADirectoryError:
            raise WrongStoreError(
                self.store, "it is no folder", "Name a folder for the store alone, or check the path."
            ) from None
        self._check_is_ours()

    def _check_is_ours(self) -> None:
        """Raise where a folder that is no store has anything in it; before a lock file is made there."""
        names = set(names_in(self.root))
        if MARKER in names:
            return
        foreign = sorted(names - {*FOLDERS, LOCKS})
        if foreign:
            more = ", ..." if len(foreign) > _NAMED else ""
            raise WrongStoreError(
                self.store,
                f"the folder is no store and has other files in it ({', '.join(foreign[:_NAMED])}{more})",
                "Check the path, or give the store a folder of its own. Nothing was changed.",
            )

    def _check_marker(self) -> None:
        data = read_whole(self.root / MARKER)
        if data is None:
            # Looked for under the lock: another process may be making the store just now.
            if check_is_folder(self.root / "runs") and names_in(self.root / "runs"):
                raise CheckpointCorruptError(f"store {self.store}", f"it has runs and no {MARKER}")
            self._make_store()
        else:
            opened_line(data, MarkerLine, f"{MARKER} of store {self.store}")
        for name in (*FOLDERS, LOCKS):
            if not check_is_folder(self.root / name):
                raise CheckpointCorruptError(f"store {self.store}", f"its folder {name!r} is not there")

    def _make_store(self) -> None:
        for name in FOLDERS:
            make_folder(self.root / name)
        temporary = self.temporary(".json")
        write_new(temporary, [sealed_line(MarkerLine(rehydrate="store", format=FILE_FORMAT))])
        put_in_place(temporary, self.root / MARKER)

    def _check_identity(self) -> None:
        # Writes into a folder that nobody can find any more would be acknowledged and lost.
        if _identity(self.path) == self._identity:
            return
        self.let_go()
        raise StoreUnavailableError(
            self.store,
            "the folder was moved, removed or replaced while it was in use, and nothing was written",
            "Move that same folder back and call again. To use what is there now, a copy too, make a new store object.",
        )


@contextlib.contextmanager
def tidying(place: FilePlace) -> Generator[None, None, None]:
    """Do what follows a write that is there and lasts: where it fails, the write has not, and what is left over is
    taken back with the next one. A disk that fails ends the use of the store all the same."""
    try:
        yield
    except (OSError, SyncError) as error:
        place.note(error)


def _identity(path: str) -> tuple[int, int] | None:
    """Return which folder stands at a path, as device and inode; `None` where none can be seen."""
    try:
        found = os.stat(path)  # noqa: PTH116  (once per batch)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
        raise
    return found.st_dev, found.st_ino
