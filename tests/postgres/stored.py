"""The bytes of a PostgreSQL store, reached behind its back: columns that are sealed, or that hold sealed data."""

import json
from types import TracebackType
from typing import Any

import psycopg

from tests.postgres.server import Place

#: By table: what names a row, and the columns of which every byte is checked. Ids that rows are found by are not.
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (("no",), ("seal", "workflow", "checkpoint_id")),
    "checkpoint": (("run", "seq"), ("body", "entries", "data")),
    "request": (("request_id",), ("body",)),
    "turn": (("name",), ("body",)),
    "event": (("run", "number"), ("body",)),
    "tag": (("run", "name"), ("body",)),
    "offer": (("run", "number"), ("body", "data")),
}


class StoredColumns:
    """The sealed columns of all rows at a place; a lost column is a lost row, which can be put back."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.lost: dict[str, tuple[Any, ...]] = {}

    def __enter__(self) -> "StoredColumns":
        self._connection = psycopg.connect(self.place.url, autocommit=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def names(self) -> list[str]:
        found: list[str] = []
        for table, (keys, columns) in COLUMNS.items():
            for column in columns:
                rows = self._ask(f"SELECT {', '.join(keys)} FROM {{}}.{table} WHERE length({column}) > 0", ())
                found += [json.dumps([table, column, [_plain(value) for value in row]]) for row in rows]
        return sorted(found)

    def read(self, name: str) -> bytes:
        table, column, where, values = _parts(name)
        return self._ask(f"SELECT {column} FROM {{}}.{table} {where}", values)[0][0]

    def write(self, name: str, data: bytes | None) -> None:
        table, column, where, values = _parts(name)
        if data is None:
            # An identity column takes a row back only where it is told to.
            self.lost[name] = self._ask(f"DELETE FROM {{}}.{table} {where} RETURNING *", values)[0]
        elif name in self.lost:
            whole = self.lost.pop(name)
            marks = ", ".join(["%s"] * len(whole))
            self._ask(f"INSERT INTO {{}}.{table} OVERRIDING SYSTEM VALUE VALUES ({marks})", whole)
        else:
            self._ask(f"UPDATE {{}}.{table} SET {column} = %s {where}", (data, *values))

    def _ask(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.format(self.place.schema).encode(), values)
        return cursor.fetchall() if cursor.description else []


def _plain(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _parts(name: str) -> tuple[str, str, str, tuple[object, ...]]:
    table, column, given = json.loads(name)
    where = "WHERE " + " AND ".join(f"{key} = %s" for key in COLUMNS[table][0])
    return table, column, where, tuple(bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in given)
