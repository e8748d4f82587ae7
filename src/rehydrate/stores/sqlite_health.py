"""How a SQLite store is: its file, the SQLite that reads it, journal mode, migrations, freed space and lock files.

It looks through a connection of its own, which makes nothing and brings nothing up to date, on the thread that owns
the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rehydrate.errors import RehydrateError
from rehydrate.ports import Examination, Finding

from .file_lock import FileLock
from .findings import of_disk, of_error, of_migrations, of_owners, size_text
from .migrations import applied_migrations, known_migrations
from .sqlite_database import Database
from .sqlite_driver import Connection, connect
from .sqlite_errors import translate
from .sqlite_place import check_place, check_tables

#: The first SQLite that cannot corrupt a WAL file when one process commits while another one checkpoints.
_MENDED: Final = (3, 51, 3)
_MUCH: Final = 0.25
_WORTH: Final = 10_000_000
_LONG_WAL: Final = 64_000_000
#: So many lines of what SQLite finds damaged are told.
_MOST: Final = 5


def examine_file(database: Database, *, full: bool) -> Examination:
    """Look at the file of a store; see `rehydrate.ports.Examined`."""
    findings: list[Finding] = []
    usable = False
    try:
        usable = _look(database, findings, full=full)
    except RehydrateError as error:
        findings.append(of_error("file", error))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        findings.append(of_error("file", translate(error, database.store)))
    return Examination(tuple(findings), usable)


def _look(database: Database, findings: list[Finding], *, full: bool) -> bool:
    path, beside = Path(database.path), Path(f"{database.path}.owners")
    check_place(database.path, database.store, beside, database.driver)
    if not path.exists() or not path.stat().st_size:
        findings.append(
            Finding("file", "problem", f"there is no store at {database.store}.", "Check the path; a run makes one.")
        )
        return False
    lock = FileLock(beside, database.store)
    try:
        # Opening and closing may move the WAL into the file, so both are a matter for the lock.
        with lock.hold():
            connection = connect(database.path, "rw", database.driver)
        try:
            return _look_inside(connection, database, lock, findings, full=full)
        finally:
            with lock.hold():
                connection.close()
    finally:
        lock.close()


def _look_inside(
    connection: Connection, database: Database, lock: FileLock, findings: list[Finding], *, full: bool
) -> bool:
    check_tables(connection, database.store)
    path = Path(database.path)
    findings.append(Finding("file", "ok", f"{database.store}, {size_text(path.stat().st_size)}."))
    findings += [_version(connection, database), _journal_mode(connection)]
    found, usable = of_migrations(applied_migrations(connection), database.store, known_migrations())
    findings.append(found)
    with lock.hold():  # as a write of ours, which changes nothing
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    findings.append(Finding("writing", "ok", "a transaction can be begun."))
    findings += [_freed(connection), *_wal(path), of_disk(path.parent), of_owners(Path(f"{path}.owners"))]
    if full:
        findings.append(_integrity(connection))
    return usable


def _version(connection: Connection, database: Database) -> Finding:
    version = str(connection.execute("SELECT sqlite_version()").fetchone()[0])
    told = f"version {version}, by {database.driver}"
    if tuple(int(part) for part in version.split(".")[:3]) >= _MENDED:
        return Finding("SQLite", "ok", f"{told}.")
    text = f"{told}; before 3.51.3 a WAL file can be damaged by two programs, which the lock of this store prevents."
    return Finding("SQLite", "note", text, "Let no other program write to the file, or use driver=apsw (extra apsw).")


def _journal_mode(connection: Connection) -> Finding:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode == "wal":
        return Finding("journal mode", "ok", "SQLite returns 'wal'.")
    text = f"SQLite returns {mode!r}: another program has changed it."
    return Finding(
        "journal mode", "note", text, "Nothing: the next use of the store asks for WAL, or says why it is not."
    )


def _freed(connection: Connection) -> Finding:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    text = f"{size_text(free * size)} of {size_text(pages * size)} are freed and used again."
    if free * size >= _WORTH and free >= pages * _MUCH:
        return Finding("space", "note", text, "To give it back to the system: await storage.vacuum().")
    return Finding("space", "ok", text)


def _wal(path: Path) -> Iterator[Finding]:
    wal = Path(f"{path}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size >= _LONG_WAL:
        text = f"{size_text(size)} are not moved into the file yet; a program that goes on reading keeps them there."
        yield Finding("WAL", "note", text, "Find the program that has the file open and does not end its reading.")


def _integrity(connection: Connection) -> Finding:
    rows = connection.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
    told = [str(row[0]) for row in rows]
    if told == ["ok"]:
        return Finding("pages", "ok", "SQLite finds the file whole.")
    return Finding("pages", "problem", f"SQLite finds: {'; '.join(told)}.", "Restore the file from a backup.")
