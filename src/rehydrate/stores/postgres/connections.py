"""Where sessions come from: a connection of the thread's own, or one out of a pool of the user's for each attempt.

Here it is decided how often something is tried again, and how long is waited before. What is done in an attempt must be
right to do twice: the first time may have been done although its answer was lost.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol, TypeVar, runtime_checkable

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from rehydrate.errors import StoreUnavailableError

from .failures import in_doubt, is_transient, translate
from .place import Place, Settings
from .schema import prepare_schema
from .session import Connection, Session

_T = TypeVar("_T")
#: What libpq is told unless the URL says otherwise: a server that is gone is noticed within half a minute.
_SETTINGS: Final[Settings] = {
    "application_name": "rehydrate",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
#: Seconds to wait for a connection of a pool.
_POOL_SECONDS: Final = 30.0


@runtime_checkable
class Pool(Protocol):
    """What is used of a `psycopg_pool.ConnectionPool`."""

    def getconn(self, timeout: float | None = None) -> Connection:
        """Lend a connection."""
        ...

    def putconn(self, conn: Connection) -> None:
        """Take it back."""
        ...


class Source(Protocol):
    """Gives connections to one thread."""

    def take(self) -> Connection:
        """Return a connection that is in no transaction."""
        ...

    def give_back(self, connection: Connection) -> None:
        """Take it back, whatever state it is in."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...

    def forget(self) -> None:
        """Drop, in a forked child, what the parent goes on using."""
        ...


class OwnConnection:
    """One connection, kept while it is good."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: Connection | None = None

    def take(self) -> Connection:
        """Return it, made anew where the last one broke."""
        if self._connection is None:
            self._connection = connect(self._settings)
        return self._connection

    def give_back(self, connection: Connection) -> None:
        """Keep it only where nothing is left open on it."""
        if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
            self.close()

    def close(self) -> None:
        """Close it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def forget(self) -> None:
        """Close the child's copy of its socket, without a word to the server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            let_go(connection)


class PooledConnection:
    """Connections of a pool of process `pid`, each for one attempt, set as they were when they go back."""

    def __init__(self, pool: Pool, pid: int) -> None:
        self._pool = pool
        self._pid = pid
        self._settings: tuple[bool, int | None] = (False, None)

    def take(self) -> Connection:
        """Borrow one."""
        if os.getpid() != self._pid:
            # Its threads and its sockets are the parent's.
            raise StoreUnavailableError(
                "with a pool", "the pool belongs to the parent of this process", "Make pool and store after the fork."
            )
        connection = self._pool.getconn(timeout=_POOL_SECONDS)
        self._settings = connection.autocommit, connection.prepare_threshold
        connection.autocommit = True
        connection.prepare_threshold = None
        return connection

    def give_back(self, connection: Connection) -> None:
        """Return it to the pool, which throws broken ones away."""
        if not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE:
            connection.autocommit, connection.prepare_threshold = self._settings
        self._pool.putconn(connection)

    def close(self) -> None:
        """Do nothing; the pool is the user's."""

    def forget(self) -> None:
        """Do nothing; `take` refuses in a child."""


class Connector:
    """How the threads of a store reach its server. `waits` are the seconds before each further attempt."""

    def __init__(self, place: Place, source: Callable[[], Source], waits: Sequence[float]) -> None:
        self.place = place
        self._source = source
        self._waits = tuple(waits)
        self.forget()

    def link(self) -> Link:
        """Return what one thread reaches the server by."""
        return Link(self, self._source(), self._waits)

    @contextlib.contextmanager
    def bare(self) -> Generator[Session]:
        """Give a session that leaves the schema as it is, on a connection that is tried for once. Raises errors of
        PostgreSQL."""
        source = self._source()
        connection = source.take()
        try:
            yield Session(connection, self.place)
        finally:
            source.give_back(connection)
            source.close()

    def make_sure(self, session: Session) -> None:
        """Bring the schema up to this version, once."""
        if self._is_ready:
            return
        with self._lock:
            if not self._is_ready:
                prepare_schema(session)
                self._is_ready = True

    def forget(self) -> None:
        """Begin anew, also in a forked child, where a thread that is not there may have held the lock."""
        self._lock = threading.Lock()
        self._is_ready = False


class Link:
    """Sessions for one thread, and the attempts made with them."""

    def __init__(self, connector: Connector, source: Source, waits: Sequence[float]) -> None:
        self._connector = connector
        self._source = source
        self._waits = waits

    def do(self, work: Callable[[Session, bool], _T], *, writes: bool) -> _T:
        """Do `work(session, again)`; `again`: an earlier attempt may have been done. Raises no errors of PostgreSQL.

        `work` is done anew where the server could not be reached, the connection was lost, or another transaction won.
        """
        again = False
        for wait in (*self._waits, None):
            try:
                return self._attempt(work, again=again)
            except _LostConnectionError as lost:
                again, error = True, lost.error
            except psycopg.Error as found:
                error = found
            if wait is None or not is_transient(error):
                told = translate(error, self._connector.place.store)
                raise (in_doubt(told) if again and writes else told) from error
            time.sleep(wait)
        raise AssertionError("the last round returns or raises")

    def close(self) -> None:
        """Close what is open."""
        with contextlib.suppress(psycopg.Error, OSError):
            self._source.close()

    def forget(self) -> None:
        """Drop what belongs to the parent of this process."""
        self._source.forget()

    def _attempt(self, work: Callable[[Session, bool], _T], *, again: bool) -> _T:
        connection = self._source.take()
        try:
            session = Session(connection, self._connector.place)
            self._connector.make_sure(session)
            try:
                return work(session, again)
            except psycopg.Error as error:
                if connection.closed:
                    raise _LostConnectionError(error) from error
                with contextlib.suppress(psycopg.Error):
                    session.undo()
                raise
        finally:
            self._source.give_back(connection)


class _LostConnectionError(Exception):
    """The connection broke in the middle of some work."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


def connect(settings: Settings) -> Connection:
    """Make a connection that keeps no state on the server between transactions."""
    return psycopg.connect(make_conninfo("", **{**_SETTINGS, **settings}), autocommit=True, prepare_threshold=None)


def let_go(connection: Connection) -> None:
    """Close, in a forked child, its copy of a connection's socket, without a word to the server."""
    if connection.closed:
        return
    _FORGOTTEN.append(connection)
    with contextlib.suppress(OSError):
        os.close(connection.fileno())


#: Connections that a fork copied into this process. psycopg closes none that another process has made.
_FORGOTTEN: list[Connection] = []
