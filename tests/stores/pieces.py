"""The bytes of the package's stores, reached behind their backs: fields of a SQLite file, and files."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.stores.raw_files import files


class StoredFiles:
    """The files of a file store, locks left out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        return [str(file.relative_to(self.path)) for file in files(self.path) if "locks" not in file.parts]

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes | None) -> None:
        if data is None:
            (self.path / name).unlink()
        else:
            (self.path / name).write_bytes(data)


class StoredFields:
    """The binary fields of a SQLite store; a lost field is a lost row, which can be put back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lost: dict[str, tuple[Any, ...]] = {}

    def names(self) -> list[str]:
        found: list[str] = []
        with closing(sqlite3.connect(self.path)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rehydrate%'"
            )
            for (table,) in tables.fetchall():
                columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
                keys = [column[1] for column in columns if column[5]]
                for blob in (column[1] for column in columns if column[2] == "BLOB"):
                    rows = connection.execute(f"SELECT {', '.join(keys)} FROM {table} WHERE length({blob})")
                    found += [json.dumps([table, blob, dict(zip(keys, row, strict=True))]) for row in rows]
        return sorted(found)

    def read(self, name: str) -> bytes:
        table, column, keys = json.loads(name)
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(f"SELECT {column} FROM {table} {where(keys)}", [*keys.values()]).fetchone()[0]

    def write(self, name: str, data: bytes | None) -> None:
        table, column, keys = json.loads(name)
        values = [*keys.values()]
        with closing(sqlite3.connect(self.path)) as connection, connection:
            if data is None:
                self.lost[name] = connection.execute(f"SELECT * FROM {table} {where(keys)}", values).fetchone()
                connection.execute(f"DELETE FROM {table} {where(keys)}", values)
            elif name in self.lost:
                whole = self.lost.pop(name)
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(whole))})", whole)
            else:
                connection.execute(f"UPDATE {table} SET {column} = ? {where(keys)}", [data, *values])


def where(keys: dict[str, object]) -> str:
    return "WHERE " + " AND ".join(f"{key} = ?" for key in keys)
