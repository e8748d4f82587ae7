"""One open SQLite file: its connection, the lock around its writes, and the owner locks of this process.

Lives on one thread (`sqlite_worker`). It knows files and transactions, not runs. WAL needs every write and checkpoint
under `FileLock`, also the checkpoints at opening and closing: docs/decisions/0003-sqlite-locking.md.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from rehydrate.errors import RehydrateError, StoreUnavailableError

from .file_lock import FileLock
from .migrations import known_migrations, migrate, missing_migrations
from .owner_locks import OwnerLocks

_T = TypeVar("_T")
#: What SQLite can hold in a column.
Value: TypeAlias = str | int | float | bytes | memoryview | None
#: Seconds to wait for another program that has the file locked (a shell, a backup); our own processes queue.
_BUSY_SECONDS: Final = 30.0
_CACHED_STATEMENTS: Final = 64


class Database:
    """A SQLite file, opened when first used, with `path` absolute."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.store = repr(path)
        directory = Path(f"{path}.owners")
        self._lock = FileLock(directory, self.store)
        self.owners = OwnerLocks(directory, self.store)
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._next_record: int | None = None

    def execute(self, statement: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._opened().execute(statement, values)

    def execute_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> int:
        """Run one statement for each row and return how many rows of the database were changed."""
        return self._opened().executemany(statement, rows).rowcount

    @contextlib.contextmanager
    def reading(self) -> Generator[None, None, None]:
        """Show one state of the database to all statements in the block."""
        connection = self._opened()
        connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Make the block one transaction of its own among all processes; an error undoes it."""
        connection = self._opened()
        with self._lock.hold():
            self._check_identity()
            self._next_record = None
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def apart(self, work: Callable[[Database], _T]) -> _T:
        """Do `work` in the open transaction; where it raises, undo only what it did."""
        connection = self._opened()
        connection.execute("SAVEPOINT one")
        kept = False
        try:
            result = work(self)
            connection.execute("RELEASE one")
            kept = True
        finally:
            if not kept:
                self._undo_savepoint(connection)
        return result

    @property
    def in_transaction(self) -> bool:
        """Say whether a transaction is open; SQLite ends one by itself at some errors."""
        return self._connection is not None and self._connection.in_transaction

    def next_record(self) -> int:
        """Return the first record number that is free, inside `writing`."""
        free = self._next_record
        if free is None:
            free = self._next_record = (self.execute("SELECT max(id) FROM rehydrate_record").fetchone()[0] or 0) + 1
        return free

    def use_records(self, end: int) -> None:
        """Take the record numbers below `end`."""
        self._next_record = end

    def disconnect(self) -> None:
        """Close the connection; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        # The last connection to close moves the WAL into the file: a checkpoint, so a matter for the lock.
        try:
            with self._lock.hold():
                connection.close()
        except RehydrateError:
            _NEVER_CLOSED.append(connection)
            raise

    def close(self) -> None:
        """Close everything that belongs to this process."""
        try:
            self.disconnect()
        finally:
            self.owners.release()
            self._lock.close()

    def forget(self) -> None:
        """Drop, in a forked child, what the child must neither use nor close."""
        self.owners.forget()
        self._lock.close()
        if self._connection is not None:
            _NEVER_CLOSED.append(self._connection)
        self._connection = None

    def _undo_savepoint(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        except sqlite3.Error:
            # Half of the block would stay in the transaction: give up all of it.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            with self._lock.hold():
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )
        with contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise StoreUnavailableError(
                    self.store,
                    f"its journal mode stays {mode!r} where WAL was asked for",
                    "Put the file on a local disk; WAL does not work on network file systems.",
                )
            connection.execute("PRAGMA synchronous = FULL")
            known = known_migrations()
            if missing_migrations(connection, self.store, known):
                connection.execute("BEGIN IMMEDIATE")
                migrate(connection, self.store, known)
                connection.execute("COMMIT")
            self._identity = _identity(self.path)
            self.owners.sweep()
            undo.pop_all()
        return connection

    def _check_identity(self) -> None:
        # Writes into a file that nobody can open any more would be acknowledged and lost.
        if _identity(self.path) == self._identity:
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        raise StoreUnavailableError(
            self.store,
            "the file was moved, removed or replaced while it was open",
            "Put the file back and call again; nothing was written.",
        )


#: Connections that a fork copied into this process, or that could not be closed under the lock: closing one, as the
#: collector would, could move or remove what another process is using.
_NEVER_CLOSED: list[sqlite3.Connection] = []


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (once per transaction; a Path costs more than the call)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
