"""The place of a SQLite store: what stands at its path, and whether a store may be there.

It says so before anything is made beside the file. It must not open the file except through SQLite: closing a
descriptor of one's own would drop the locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Final

from rehydrate.errors import StoreUnavailableError, WrongStoreError

from .sqlite_driver import Connection, Driver, connect

#: Bytes of the smallest database: one page of the smallest size.
_SMALLEST: Final = 512
#: How many tables of another program are named.
_NAMED: Final = 3
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


def identity(path: str) -> tuple[int, int] | None:
    """Return which file stands at a path, as device and inode; `None` where none can be seen."""
    try:
        found = os.stat(path)  # noqa: PTH116  (twice per transaction; a Path costs more than the call)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def pin(path: str, store: str) -> int | None:
    """Return a descriptor that keeps the number of a file from being given to another one once it is removed.

    Of the systems that do that, Linux has the kind of descriptor whose end drops no lock; elsewhere it is `None`.
    """
    kind: int | None = getattr(os, "O_PATH", None)
    if kind is None:
        return None
    try:
        return os.open(path, kind | os.O_CLOEXEC)
    except OSError as error:
        raise StoreUnavailableError(store, f"its file cannot be held ({error.strerror})", "Call again.") from error


def check_place(path: str, store: str, beside: Path, driver: Driver) -> None:
    """Raise `WrongStoreError` where no store can be at `path`.

    Where the store's folder `beside` the file is there, the file has been a store's, and opening it says the rest.
    """
    size = _size(path, store)
    if not size or beside.exists():
        return
    if size < _SMALLEST:  # SQLite takes such a file for an empty one and writes over it
        raise WrongStoreError(store, "the file is no SQLite database", "Check the path.")
    with closing(connect(path, "rw", driver)) as connection:
        check_tables(connection, store)


def check_tables(connection: Connection, store: str) -> None:
    """Raise `WrongStoreError` for a database that has tables of others and none of ours."""
    names: list[str] = sorted(row[0] for row in connection.execute(_TABLES))
    if not names or any(name.startswith("rehydrate_") for name in names):
        return
    more = ", ..." if len(names) > _NAMED else ""
    raise WrongStoreError(
        store,
        f"it is the database of another program (it has the tables {', '.join(names[:_NAMED])}{more})",
        "Check the path, or give the store a file of its own. Nothing was changed.",
    )


def _size(path: str, store: str) -> int:
    try:
        found = os.stat(path)  # noqa: PTH116  (like `identity`)
    except FileNotFoundError:
        folder = Path(path).parent
        if folder.exists():
            return 0
        raise WrongStoreError(
            store, f"the folder {str(folder)!r} does not exist", "Make the folder, or check the path."
        ) from None
    except OSError as error:
        raise WrongStoreError(store, f"its path leads nowhere ({error.strerror})", "Check the path.") from error
    if stat.S_ISDIR(found.st_mode):
        raise WrongStoreError(store, "it is a folder", f"Name a file in it, such as {str(Path(path) / 'runs.db')!r}.")
    if not stat.S_ISREG(found.st_mode):
        raise WrongStoreError(store, "it is no file but a device, pipe or socket", "Name a file.")
    return found.st_size
