"""The schema of a PostgreSQL store, brought up to this version by its numbered files.

That is done under a lock and in one transaction, so that many processes may begin at once. It must not change a schema
that has other tables.
"""

from __future__ import annotations

from typing import Final

from rehydrate.errors import WrongStoreError
from rehydrate.stores.migrations import Migration, known_migrations, not_applied

from .session import Session

_IS_THERE: Final = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass(%s)"
_APPLIED: Final = "SELECT number, checksum FROM rehydrate.migration"
# A lock of the transaction: one of the session would stay with a connection that a pooler gives to somebody else.
_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_OTHERS: Final = """
SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.relname LIMIT 3
"""
_SCHEMA_IS_THERE: Final = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
_MAKE_TABLE: Final = """
CREATE TABLE rehydrate.migration (number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL)
"""
_NOTE: Final = "INSERT INTO rehydrate.migration VALUES (%s, %s, %s)"


def prepare_schema(session: Session) -> None:
    """Make the schema what this version needs. Raises as `not_applied`, and for a schema of another program."""
    known = known_migrations("rehydrate.stores.postgres")
    if missing(session, known):
        with session.writing():
            session.ask(_LOCK, (session.place.number("migrations"),))
            migrate(session, known)


def migrate(session: Session, known: tuple[Migration, ...]) -> None:
    """Apply what is missing, inside of `writing`."""
    schema = session.place.schema
    if not _has_table(session):
        others = [str(row[0]) for row in session.ask(_OTHERS, (schema,))]
        if others:
            raise WrongStoreError(
                session.store,
                f"the schema {schema!r} is another program's (it has the tables {', '.join(others)})",
                "Give the store a schema of its own. Nothing was changed.",
            )
        if not session.ask(_SCHEMA_IS_THERE, (schema,)):
            session.make_schema()
        session.script(_MAKE_TABLE)
    for migration in missing(session, known):
        session.script(migration.text)
        session.ask(_NOTE, (migration.number, migration.name, migration.checksum))


def missing(session: Session, known: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """Return what is still to be applied, reading only. Raises as `not_applied`."""
    found = applied(session)
    return known if found is None else not_applied(found, session.store, known)


def applied(session: Session) -> dict[object, object] | None:
    """Return the checksums of what was applied, by number; `None` where there is no table of them."""
    return dict(session.ask(_APPLIED)) if _has_table(session) else None


def _has_table(session: Session) -> bool:
    return bool(session.ask(_IS_THERE, (f"{session.place.quoted}.migration",)))
