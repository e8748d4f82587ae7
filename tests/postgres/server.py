"""What the fixtures of PostgreSQL tests are made of: a server, and empty places on it."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from rehydrate.stores.postgres import PostgresCheckpointStorage
from rehydrate.testing.store_contract import ManualClock
from tests.postgres.keeper import Handle

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """An empty schema on a server; `url` may lead there through something in between."""

    url: str
    schema: str

    def store(self, *, clock: ManualClock | None = None, **options: object) -> PostgresCheckpointStorage:
        """Return a store there; it can be pickled as `place.store`."""
        return PostgresCheckpointStorage(self.url, schema=self.schema, clock=clock, **options)

    def ask(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Do a statement of SQL, in which the schema is called `rehydrate`, behind the store's back."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.replace("rehydrate.", f"{self.schema}.").encode(), values)
            return cursor.fetchall() if cursor.description else []

    def change(self, *statements: str) -> int:
        """Do statements and return how many rows they changed."""
        with self.changing() as change:
            return sum(map(change, statements))

    @contextmanager
    def changing(self) -> Iterator[Callable[[str], int]]:
        """Give what does one statement and returns how many rows it changed."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield lambda text: connection.execute(text.replace("rehydrate.", f"{self.schema}.").encode()).rowcount


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Give the URL of a server: what `DATABASE_URL` names, or one that is shared by all who give this folder."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    handle = Handle(folder)
    yield handle.url
    handle.close()


@contextmanager
def empty_place(url: str) -> Iterator[Place]:
    """Give a place that is empty, and remove it afterwards."""
    place = Place(url, f"t{os.getpid()}_{next(_NUMBERS)}")
    yield place
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {place.schema} CASCADE".encode())


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """Give a database that is new, and remove it afterwards."""
    name = f"d{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield make_conninfo(url, dbname=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
