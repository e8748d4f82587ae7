"""SQLite through `apsw`, in the form of the standard library's connection.

The only module that imports `apsw`. Errors become those of `sqlite3` with the same codes, so that one table says what
they mean.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import apsw

from .sqlite_driver import BUSY_SECONDS, CACHED_STATEMENTS, Row, Value

_T = TypeVar("_T")
#: The types of `apsw` name a kind of buffer that not every version of Python has, so they are not known in all.
_Untyped: TypeAlias = Any
_CONSTRAINT: Final = 19
_NOT_A_DATABASE: Final = 26
_CORRUPT: Final = 11


class ApswCursor:
    """What a statement gave."""

    def __init__(self, rows: _Untyped, lastrowid: int | None = None, rowcount: int = -1) -> None:
        self._rows = rows
        self.lastrowid = lastrowid
        self.rowcount = rowcount

    def fetchone(self) -> Row:
        """Return the next row, or `None`."""
        return _told(self._rows.fetchone)

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        return _told(self._rows.fetchall)

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row


class ApswConnection:
    """An open file."""

    def __init__(self, uri: str) -> None:
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection: _Untyped = _told(
            lambda: apsw.Connection(uri, flags=flags, statementcachesize=CACHED_STATEMENTS)
        )
        self._connection.set_busy_timeout(int(BUSY_SECONDS * 1000))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        """How many rows were changed since it was opened."""
        return self._connection.total_changes()

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> ApswCursor:
        """Run one statement."""
        connection = self._connection
        rows = _told(lambda: connection.execute(statement, tuple(values)))
        return ApswCursor(rows, connection.last_insert_rowid(), connection.changes())

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]], /) -> ApswCursor:
        """Run one statement for each row."""
        connection = self._connection
        before = connection.total_changes()
        cursor = _told(lambda: connection.executemany(statement, (tuple(row) for row in rows)))
        return ApswCursor(cursor, rowcount=connection.total_changes() - before)

    def close(self) -> None:
        """Close the file."""
        _told(self._connection.close)


def _told(call: Callable[[], _T]) -> _T:
    """Do something; an error of `apsw` becomes the one that `sqlite3` would raise."""
    try:
        return call()
    except apsw.Error as error:
        raise _translated(error) from error


def _translated(error: apsw.Error) -> sqlite3.Error:
    code: int = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
    text = str(error)
    if code & 0xFF == _CONSTRAINT:
        found: sqlite3.Error = sqlite3.IntegrityError(text)
    elif code & 0xFF in (_CORRUPT, _NOT_A_DATABASE):
        found = sqlite3.DatabaseError(text)
    else:
        found = sqlite3.OperationalError(text)
    found.sqlite_errorcode = code
    return found
