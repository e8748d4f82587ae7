"""What an error of PostgreSQL means: whether it may go away, whether it is one row's, and what to tell a caller.

Every surprise becomes an error of ours with the store named; none is swallowed. No text holds a password: the server
and libpq repeat none, and the URL is never quoted.
"""

from __future__ import annotations

from typing import Final

import psycopg

from rehydrate.errors import (
    CheckpointCorruptError,
    RehydrateError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    WrongStoreError,
)

#: By SQLSTATE, or the first two characters of a class: what to do next (PostgreSQL's documentation, appendix A).
_FIXES: Final = {
    "08": "Check that the server runs and can be reached, then call again.",
    "0A": "Use PostgreSQL 13 or newer, with a psycopg and a libpq that know pipelines.",
    "25006": "Use the URL of the primary server: this one is read-only (a standby, or so configured).",
    "25P03": "Call again; this process was stopped in the middle of a transaction.",
    "28": "Check user and password in the URL, and the server's pg_hba.conf.",
    "3D000": "Make the database (createdb), or check its name in the URL.",
    "40": "Call again; many writers meet at the same rows.",
    "42501": "Grant this user the right to use the schema and to read and write its tables. The first use of a new"
    " version also needs the right to create them.",
    "53100": "Free space on the disk of the server, then call again.",
    "53200": "Free memory on the server, then call again.",
    "53300": "Raise max_connections, or put a pooler in front of the server; then call again.",
    "54": "Shorten the id, or split the value; PostgreSQL cannot hold one of this size.",
    "55P03": "Find the session that holds locks on the tables of the store (pg_locks); it may be stopped.",
    "57014": "Call again; if it comes again, raise statement_timeout.",
    "57": "Wait until the server has started, then call again.",
}
#: The errors of ours that are their own; the others of these are `StoreUnavailableError` itself.
_OWN: Final = {"25006": StoreReadOnlyError, "53100": StoreFullError}
#: What a server or libpq says when a connection cannot be made, and what to do; such errors have no SQLSTATE.
_OF_CONNECTING: Final = (
    ("password authentication failed", "28"),
    ("no password supplied", "28"),
    ("authentication failed", "28"),
    ("no pg_hba.conf entry", "28"),
    ('role "', "28"),
    ("permission denied", "42501"),
    ('database "', "3D000"),
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
    ("too many connections", "53300"),
)
#: What a pool says, by the name of the class: it may be another library's version of it, or not be there at all.
_OF_POOLS: Final = {
    "PoolClosed": "Open the pool before the store is used, and close it after the store.",
    "PoolTimeout": "Check that the server can be reached, or make the pool larger; the pool's log has the reason.",
    "TooManyRequests": "Make the pool larger, then call again.",
}
#: Seen again after a while, these may be gone: the server starts or stops, or the connection broke.
_TRANSIENT: Final = ("08", "57P01", "57P02", "57P03", "53300")
#: The transaction lost against another one and can be done again at once.
_LOST: Final = ("40001", "40P01")
#: Classes of errors that one row has caused: its data, its keys, its size; or that it cannot be read any more.
_OF_ROWS: Final = ("22", "23", "54", "XX")
#: With these the server ends the connection, so that nothing else can be done on it.
_ENDS: Final = ("FATAL", "PANIC")
#: These do not go away by waiting: who connects, what the database is called, what is granted, how old the server is.
_LASTING: Final = ("28", "3D000", "42501", "0A")
_UNKNOWN: Final = "See the server's log; if it can be mended there, call again."
_GONE: Final = "Check that the server runs and can be reached, then call again."


def is_transient(error: psycopg.Error) -> bool:
    """Say whether it may be gone when tried again."""
    state = error.sqlstate
    if state is not None:
        return state.startswith(_TRANSIENT) or state in _LOST
    if type(error).__name__ in _OF_POOLS:
        return False
    return isinstance(error, psycopg.OperationalError) and _kind_of_connecting(error) not in _LASTING


def is_of_rows(error: psycopg.Error) -> bool:
    """Say whether the error is about what one call wrote or read, and not about the server."""
    state = error.sqlstate
    return state is not None and state.startswith(_OF_ROWS) and error.diag.severity_nonlocalized not in _ENDS


def translate(error: psycopg.Error, store: str) -> RehydrateError:
    """Return the error of ours that says what an error of PostgreSQL means."""
    state = error.sqlstate
    problem = _problem(error)
    if state is None:
        pool_fix = _OF_POOLS.get(type(error).__name__)
        if pool_fix is not None:
            return StoreUnavailableError(store, problem, pool_fix)
        kind = _kind_of_connecting(error)
        own = WrongStoreError if kind in _LASTING else StoreUnavailableError
        return own(store, problem, _FIXES[kind] if kind else _GONE)
    # What a statement names and what is not there, and rows that cannot be: somebody has changed the tables.
    own = _OWN.get(state)
    if own is not None:
        return own(store, problem, _FIXES[state])
    if state.startswith(("XX", "42P01", "42703", "3F000", "23")):
        return CheckpointCorruptError(f"store {store}", problem)
    fix = _FIXES.get(state) or _FIXES.get(state[:2]) or _UNKNOWN
    own = WrongStoreError if state.startswith(_LASTING) else StoreUnavailableError
    return own(store, problem, fix)


def in_doubt(error: RehydrateError) -> RehydrateError:
    """Return the error of a write that was on its way when the connection was lost, and could not be looked for."""
    if not isinstance(error, StoreUnavailableError):
        return error
    return type(error)(
        error.store,
        f"the connection was lost in the middle of a commit, so that it is not known whether that was done, and then"
        f" {error.problem}",
        f"{error.fix} What was done is found then, and nothing is done twice.",
    )


def _kind_of_connecting(error: psycopg.Error) -> str | None:
    text = str(error)
    return next((kind for words, kind in _OF_CONNECTING if words in text), None)


def _problem(error: psycopg.Error) -> str:
    text = error.diag.message_primary or next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return text.strip().rstrip(".")
