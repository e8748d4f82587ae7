"""A session: one connection for the time of one attempt, and the statements that go through it.

Nothing of it may outlive a transaction on the server (no SET, no prepared statement, no temporary table, no lock of a
session): behind a pooler the next transaction has another connection there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from .place import Place

Connection: TypeAlias = psycopg.Connection[TupleRow]
#: A statement with its values.
Asked: TypeAlias = tuple[str, Sequence[object]]

_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# For this transaction only. A process that is stopped in the middle of one must not hold its locks for good.
_LIMITS: Final = """
SELECT set_config('lock_timeout', '30s', true), set_config('idle_in_transaction_session_timeout', '30s', true)
"""


class Session:
    """Statements on one connection, in the schema of a place."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self.place = place
        self._connection = connection
        #: What begins a transaction, sent together with its first statement.
        self._opening: list[Asked] = []

    @property
    def store(self) -> str:
        """The name of the store, for errors."""
        return self.place.store

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[TupleRow]:
        """Do one statement and return its rows."""
        if self._opening:
            return self.ask_all([(statement, values)])[0]
        return _rows(self._sent(statement, values))

    def ask_last(self, statement: str, values: Sequence[object] = ()) -> list[TupleRow]:
        """Do the last statement of a transaction and end it, in one round trip."""
        return self.ask_all([(statement, values), ("COMMIT", ())])[0]

    def ask_all(self, asked: Sequence[Asked]) -> list[list[TupleRow]]:
        """Do several statements in one round trip; the first that fails raises, and those behind it are not done."""
        opening, self._opening = self._opening, []
        if opening:
            return self.ask_all([*opening, *asked])[len(opening) :]
        cursors: list[psycopg.Cursor[TupleRow]] = []
        failure: psycopg.Error | None = None
        try:
            with self._connection.pipeline():
                try:
                    cursors += [self._sent(statement, values) for statement, values in asked]
                except psycopg.Error as error:  # leaving the block with it would write to the log
                    failure = error
        except psycopg.Error as error:
            failure = failure or error
        if failure is not None:
            raise failure
        return [_rows(cursor) for cursor in cursors]

    def write(self, *asked: Asked) -> list[list[TupleRow]]:
        """Do statements as one transaction, in one round trip; when this returns they are committed."""
        return self.ask_all([(_BEGIN, ()), (_LIMITS, ()), *asked, ("COMMIT", ())])[2:-1]

    def look(self, *asked: Asked) -> list[list[TupleRow]]:
        """Show one state of the database to all of these statements, in one round trip."""
        return self.ask_all([(_BEGIN_READING, ()), *asked, ("COMMIT", ())])[1:-1]

    @contextmanager
    def writing(self) -> Generator[None]:
        """Do what is in the block as one transaction."""
        with self._transaction(_BEGIN):
            yield

    @contextmanager
    def reading(self) -> Generator[None]:
        """Show one state of the database to all statements in the block."""
        with self._transaction(_BEGIN_READING):
            yield

    @contextmanager
    def apart(self) -> Generator[None]:
        """Undo only what is in the block where it raises, inside of `writing`."""
        self.ask("SAVEPOINT one")
        try:
            yield
        except psycopg.Error:
            if self._connection.info.transaction_status is TransactionStatus.INERROR:
                self.ask_all([("ROLLBACK TO SAVEPOINT one", ()), ("RELEASE SAVEPOINT one", ())])
            raise
        self.ask("RELEASE SAVEPOINT one")

    def undo(self) -> None:
        """Give up the open transaction, if there is one."""
        if self._connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            self.ask("ROLLBACK")

    def script(self, text: str) -> None:
        """Do statements that are written in a file, inside of `writing`."""
        self._connection.execute(self.place.script(text), prepare=False)

    def make_schema(self) -> None:
        """Make the schema itself, inside of `writing`; its name is no statement in which names are replaced."""
        self._connection.execute(f"CREATE SCHEMA {self.place.quoted}".encode(), prepare=False)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[None]:
        self._opening = [(begin, ()), (_LIMITS, ())]
        is_done = False
        try:
            yield
            is_done = True
        finally:
            self._opening = []
            if not is_done:
                self.undo()
        if self._connection.info.transaction_status is TransactionStatus.INTRANS:
            self.ask("COMMIT")

    def _sent(self, statement: str, values: Sequence[object]) -> psycopg.Cursor[TupleRow]:
        # A cursor class of its own: a pool of the user's may have set others for its connections.
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        return cursor.execute(self.place.sql(statement), values, prepare=False, binary=True)


def _rows(cursor: psycopg.Cursor[TupleRow]) -> list[TupleRow]:
    return cursor.fetchall() if cursor.description else []
