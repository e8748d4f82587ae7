"""Drivers of SQLite: the standard library's `sqlite3`, and `apsw`, which brings a SQLite of its own.

What the store needs of a connection is the protocol below. Both in one process must never have one file open: each
copy of SQLite keeps its own account of locks, and closing a file in one drops the locks of the other.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote

from rehydrate.errors import WrongCallError

#: What SQLite can hold in a column.
Value: TypeAlias = str | int | float | bytes | memoryview | None
#: A row, whose columns hold anything until they were checked.
Row: TypeAlias = Any
Driver: TypeAlias = Literal["sqlite3", "apsw"]
Mode: TypeAlias = Literal["rw", "rwc"]
DRIVERS: Final = ("sqlite3", "apsw")
#: Seconds to wait for another program that has the file locked (a shell, a backup); our own processes queue.
BUSY_SECONDS: Final = 30.0
CACHED_STATEMENTS: Final = 64


class Cursor(Protocol):
    """What a statement gave."""

    @property
    def lastrowid(self) -> int | None:
        """Number of the row that an INSERT made."""
        ...

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        ...

    def fetchone(self) -> Row:
        """Return the next row, or `None`."""
        ...

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Row]: ...


class Connection(Protocol):
    """An open file. It raises errors of `sqlite3` whatever the driver."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    @property
    def total_changes(self) -> int:
        """How many rows were changed since it was opened."""
        ...

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]], /) -> Cursor:
        """Run one statement for each row."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def check_driver(driver: object) -> Driver:
    """Return the driver. Raises `WrongCallError` where it is none or its package is missing."""
    if driver == "sqlite3":
        return "sqlite3"
    if driver != "apsw":
        raise WrongCallError(f"driver is {driver!r}.", f"Use one of {', '.join(map(repr, DRIVERS))}.")
    try:
        import apsw as _  # noqa: F401, PLC0415  (an extra; whether it is there)
    except ImportError:
        raise WrongCallError('driver="apsw" needs a package.', "Run pip install 'rehydrate[apsw]'.") from None
    return "apsw"


def connect(path: str, mode: Mode, driver: Driver) -> Connection:
    """Open a file with SQLite; only `rwc` makes one where there is none."""
    uri = f"file:{quote(os.fsencode(path))}?mode={mode}"
    if driver == "apsw":
        from .sqlite_apsw import ApswConnection  # noqa: PLC0415  (an extra)

        return ApswConnection(uri)
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
