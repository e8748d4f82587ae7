"""Migrations: numbered `.sql` files that make a database what this version needs, each applied once.

A table of checksums shows that the files applied are the files known. A database made by newer code is refused. The
rules are the same for every database; what is done with a connection here is SQLite's.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Final, NamedTuple

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError

from .sqlite_driver import Connection

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS rehydrate_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
)
"""
_IS_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'rehydrate_migration'"
#: The checksums of the files in `sql`: a database that has these needs none of them to be read, which is most of what
#: opening it takes. A wrong one costs that time; a number that is missing here would leave its file unapplied where the
#: others are applied, so a test compares these with the files.
CURRENT: Final[Mapping[int, str]] = {
    1: "a14c26fbb3b809ec9d1f3a4812374b7447130227ae0f2877f423a73b72e91bc8",
    2: "e641644b6b5358f97a016cf34f5d084e91b7d596d901edbde5541cfe94dd656a",
    3: "256fc46746a230bbc8a73c4ae8aca649377f4a09628d1e67a6dbe86cf4a578e7",
    4: "55245f3f7daf02f586d57c7c85afa17abcdbe8f956affcdc0f71f537c85493d0",
}
_FILE: Final = re.compile(r"(\d{4})_\w+\.sql")


class Migration(NamedTuple):
    """One numbered file."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Return what shows whether the file has changed since it was applied."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def known_migrations(package: str = "rehydrate.stores") -> tuple[Migration, ...]:
    """Return the migrations of this version, in order: the files in the folder `sql` of a package."""
    found: list[Migration] = []
    for entry in files(package).joinpath("sql").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), entry.name, entry.read_text("utf-8")))
    return tuple(sorted(found))


def missing_migrations(connection: Connection, store: str, migrations: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """Return what is still to be applied, reading only. Raises as `not_applied`."""
    applied = applied_migrations(connection)
    return migrations if applied is None else not_applied(applied, store, migrations)


def applied_migrations(connection: Connection) -> dict[object, object] | None:
    """Return the checksums of what was applied to a database by number, `None` where there is no table of them."""
    if connection.execute(_IS_THERE).fetchone() is None:
        return None
    return dict(connection.execute("SELECT number, checksum FROM rehydrate_migration").fetchall())


def not_applied(
    applied: Mapping[object, object], store: str, migrations: tuple[Migration, ...]
) -> tuple[Migration, ...]:
    """Return what is still to be applied to a database whose table has these checksums by number.

    Raises `CheckpointFormatError` for a newer database, `CheckpointCorruptError` where an applied file was another one.
    """
    numbers = [number for number in applied if isinstance(number, int)]
    if len(numbers) != len(applied):
        raise CheckpointCorruptError(f"store {store}", "its list of migrations has something else in it than numbers")
    newest = max(numbers, default=0)
    if newest > migrations[-1].number:
        raise CheckpointFormatError(f"store {store}", newest, migrations[-1].number)
    for migration in migrations:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise CheckpointCorruptError(f"store {store}", f"migration {migration.name} is not the one applied to it")
    return tuple(migration for migration in migrations if migration.number not in applied)


def migrate(connection: Connection, store: str, migrations: tuple[Migration, ...]) -> None:
    """Apply what is missing, inside the caller's transaction. Raises as `missing_migrations`."""
    connection.execute(_TABLE)
    for migration in missing_migrations(connection, store, migrations):
        _apply(connection, migration)


def _apply(connection: Connection, migration: Migration) -> None:
    for statement in _statements(migration.text):
        connection.execute(statement)
    row = (migration.number, migration.name, migration.checksum)
    connection.execute("INSERT INTO rehydrate_migration VALUES (?, ?, ?)", row)


def _statements(text: str) -> Iterator[str]:
    # `executescript` would commit the transaction that makes a migration all or nothing.
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
