"""The place of a PostgreSQL store: a database by URL or pool, and the schema in it; and how both are named.

No name here holds a password. Ids are data; the schema is the one name that becomes part of a statement, quoted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from rehydrate.errors import WrongCallError

#: What libpq is told, by its own names.
Settings: TypeAlias = Mapping[str, str | int | None]
#: The schema as the statements and migrations of the package name it.
_WRITTEN_AS: Final = "rehydrate."
#: A URL with an `@` that does not stand alone between a user and a host, or where libpq looks for one behind the `?`.
_AMBIGUOUS: Final = re.compile(r"postgres(?:ql)?://(?:[^?]*[/@][^?]*@|[^/]*\?[^/]*@)")
#: PostgreSQL cuts longer names off.
_LONGEST: Final = 63


class Place:
    """A schema in a database. `settings` are of libpq; a pool has its own and gives none."""

    def __init__(self, settings: Settings | None, schema: str) -> None:
        check_schema(schema)
        self.schema = schema
        self.store = repr(_name(settings, schema))
        self.quoted = '"' + schema.replace('"', '""') + '"'
        self._statements: dict[str, bytes] = {}

    def sql(self, statement: str) -> bytes:
        """Return a statement with placeholders, for this schema."""
        found = self._statements.get(statement)
        if found is None:
            text = statement.replace(_WRITTEN_AS, f"{self.quoted}.".replace("%", "%%"))
            found = self._statements[statement] = text.encode()
        return found

    def script(self, text: str) -> bytes:
        """Return statements without placeholders, for this schema."""
        return text.replace(_WRITTEN_AS, f"{self.quoted}.").encode()

    def number(self, what: str) -> int:
        """Return a number that stands for something in this schema, such as a lock of it."""
        return int.from_bytes(self._hash(what)[:8], "big", signed=True)

    def word(self, run_id: str) -> str:
        """Return what watchers of a run in this schema are woken by."""
        return self._hash(f"run {run_id}")[:16].hex()

    def _hash(self, what: str) -> bytes:
        return hashlib.sha256(f"rehydrate {self.schema}\0{what}".encode()).digest()


def settings_of(url: object) -> Settings:
    """Return what a URL says to libpq. Raises `WrongCallError` where it is none; its text shows nothing of it."""
    if not isinstance(url, str):
        raise WrongCallError(
            f"a PostgreSQL store was given {type(url).__name__}.", "Pass a URL or a psycopg_pool.ConnectionPool."
        )
    # What libpq says of a URL repeats parts of it, and a password may be one: also where it takes the end of one for
    # a host, as the password has an `@` or a slash in it.
    found = None if _AMBIGUOUS.match(url) else _parsed(url)
    if found is None:
        raise WrongCallError(
            "this is no URL of a PostgreSQL database.",
            "Write postgresql://user:password@host:5432/database, with special characters escaped by '%'.",
        )
    return found


def _parsed(url: str) -> Settings | None:
    try:
        return conninfo_to_dict(url)
    except (ProgrammingError, UnicodeError):
        return None


def check_schema(schema: object) -> None:
    """Raise `WrongCallError` where a schema cannot be named so."""
    if not isinstance(schema, str) or not schema or "\0" in schema or not _fits(schema):
        raise WrongCallError(
            f"{schema!r} is not the name of a schema.", f"Pass a str of 1 to {_LONGEST} bytes, such as 'rehydrate'."
        )
    if schema.startswith("pg_"):
        raise WrongCallError(
            f"the schema {schema!r} is PostgreSQL's own.", "Pass a name that does not begin with 'pg_'."
        )


def _fits(name: str) -> bool:
    try:
        return len(name.encode()) <= _LONGEST
    except UnicodeEncodeError:
        return False


def _name(settings: Settings | None, schema: str) -> str:
    place = "postgresql://"
    if settings is None:
        place += "(the server of its pool)"
    else:
        host = settings.get("host") or settings.get("hostaddr") or settings.get("service") or ""
        port = settings.get("port")
        place += f"{host}{f':{port}' if port else ''}/{settings.get('dbname') or ''}"
    return place if schema == "rehydrate" else f"{place} schema {schema}"
