"""One open SQLite file: its connection, the lock around its writes, and the owner locks of this process.

Lives on one thread (`worker`). It knows files and transactions, not runs. WAL needs every write and checkpoint
under `FileLock`, also the checkpoints at opening and closing: docs/decisions/0003-sqlite-locking.md.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rehydrate.errors import RehydrateError, StoreBrokenError, StoreUnavailableError, WrongStoreError

from .file_lock import FileLock
from .migrations import CURRENT, applied_migrations, known_migrations, migrate, missing_migrations
from .owner_locks import OwnerLocks
from .sqlite_driver import Connection, Cursor, Driver, Value, connect
from .sqlite_place import check_place, check_tables, identity, pin

_T = TypeVar("_T")


class Database:
    """A SQLite file, opened when first used, with `path` absolute.

    It is that one file for good: while another one or none stands at the path, every call is refused. So is each one
    after an error of reading or writing.
    """

    def __init__(self, path: str, driver: Driver = "sqlite3") -> None:
        self.path = path
        self.driver: Driver = driver
        self.store = repr(path)
        self._directory = Path(f"{path}.owners")
        self._lock = FileLock(self._directory, self.store)
        self.owners = OwnerLocks(self._directory, self.store)
        self._connection: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._pin: int | None = None
        self._next_record: int | None = None
        self._connections = 0
        self._broken: StoreBrokenError | None = None

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run one statement."""
        return self._opened().execute(statement, values)

    def execute_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> int:
        """Run one statement for each row and return how many rows of the database were changed."""
        return self._opened().executemany(statement, rows).rowcount

    def vacuum(self) -> None:
        """Give what was freed back to the system. No transaction may be open; others that write wait."""
        connection = self._current()
        with self._lock.hold():
            self._check_identity()
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextlib.contextmanager
    def reading(self) -> Generator[None, None, None]:
        """Show one state of the database to all statements in the block."""
        connection = self._current()
        connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Make the block one transaction of its own among all processes; an error undoes it."""
        connection = self._current()
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

    @property
    def changes(self) -> int:
        """Return how many rows were changed since the file was opened, also by what was undone."""
        return self._opened().total_changes

    def next_record(self) -> int:
        """Return the first record number that is free, inside `writing`."""
        free = self._next_record
        if free is None:
            # Not the highest record: those of a forgotten checkpoint may be gone while its range of numbers stands.
            row = self.execute("SELECT last FROM rehydrate_checkpoint ORDER BY no DESC LIMIT 1").fetchone()
            free = self._next_record = (row[0] if row else 0) + 1
        return free

    @property
    def version(self) -> object:
        """Return what is another once another connection has written. Its numbers are the connection's own."""
        try:
            return self._current().execute("PRAGMA data_version").fetchone()[0], self._connections
        except Exception:
            # Whatever it is, as an `OSError` of opening the file again: it would end the thread, whose calls this is
            # not one of. Equal to nothing, so whoever looks at what is there now is told why that cannot be done.
            return object()

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
            if self._pin is not None:
                os.close(self._pin)
                self._pin = None

    @property
    def is_over(self) -> bool:
        """Say whether it can never be used again: reading or writing failed, or another file stands at the path.

        Asked from any thread.
        """
        return self._broken is not None or (self._identity is not None and identity(self.path) != self._identity)

    def breaks(self, error: StoreBrokenError) -> None:
        """Answer every later call with this error: what this process believes may not be what is on the disk.

        A sync that failed must not be tried again, as the system may forget what it could not write and then say that
        all is well. A new database on the file reads what is there.
        """
        self._broken = self._broken or error

    def let_go(self) -> None:
        """Free what a database that is over holds in its place, for the one that comes after it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # SQLite sees that its file has moved, and neither checkpoints nor removes anything.
            connection.close()
        self.owners.release()

    def forget(self) -> None:
        """Drop, in a forked child, what the child must neither use nor close."""
        self.owners.forget()
        self._lock.close()
        if self._connection is not None:
            _NEVER_CLOSED.append(self._connection)
        self._connection = None

    def _undo_savepoint(self, connection: Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        except sqlite3.Error:
            # Half of the block would stay in the transaction: give up all of it.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def _opened(self) -> Connection:
        if self._broken is not None:
            raise copy.copy(self._broken)
        if self._connection is None:
            check_place(self.path, self.store, self._directory, self.driver)
            with self._lock.hold():
                self._connection = self._connect()
        return self._connection

    def _current(self) -> Connection:
        if self._identity is not None:
            self._check_identity()
        return self._opened()

    def _connect(self) -> Connection:
        connection = connect(self.path, "rwc" if self._identity is None else "rw", self.driver)
        with contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            check_tables(connection, self.store)
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise WrongStoreError(
                    self.store,
                    f"its journal mode stays {mode!r} where WAL was asked for",
                    "Put the file on a local disk; WAL does not work on network file systems.",
                )
            connection.execute("PRAGMA synchronous = FULL")
            if applied_migrations(connection) != CURRENT:
                self._migrate(connection)
            if self._identity is None:
                self._pin = pin(self.path, self.store)
                self._identity = identity(self.path)
            self._check_identity()
            self.owners.sweep()
            self._connections += 1
            undo.pop_all()
        return connection

    def _migrate(self, connection: Connection) -> None:
        known = known_migrations()
        if missing_migrations(connection, self.store, known):
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, self.store, known)
            connection.execute("COMMIT")

    def _check_identity(self) -> None:
        # Writes into a file that nobody can open any more would be acknowledged and lost.
        if identity(self.path) == self._identity:
            return
        self.let_go()
        raise StoreUnavailableError(
            self.store,
            "the file was moved, removed or replaced while it was in use, and nothing was written",
            "Move that same file back and call again. To use what is there now, a copy too, make a new store object.",
        )


#: Connections that a fork copied into this process, or that could not be closed under the lock: closing one, as the
#: collector would, could move or remove what another process is using.
_NEVER_CLOSED: list[Connection] = []
