"""How a PostgreSQL store is: the server, what it lets this user do, migrations, size, and what waits for autovacuum.

It makes no schema and brings none up to date, on a connection for this look alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg

from rehydrate.errors import RehydrateError
from rehydrate.ports import Examination, Finding
from rehydrate.stores.findings import of_error, of_migrations, size_text
from rehydrate.stores.migrations import known_migrations

from .connections import Connector
from .failures import translate
from .schema import applied
from .session import Session

#: `server_version_num` of the oldest server that has all we ask of one.
_OLDEST: Final = 130_000
_SERVER: Final = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
    current_setting('default_transaction_read_only') = 'on', current_setting('synchronous_commit'),
    current_setting('max_connections')::int
"""
#: Users without rights on the statistics of others count only their own.
_CONNECTIONS: Final = "SELECT count(*)::int FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'"
_TABLES: Final = """
SELECT c.relname::text, pg_total_relation_size(c.oid),
    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'),
    coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') ORDER BY c.relname
"""
#: From here on it is told that few connections or many dead rows are left.
_FULL: Final = 0.9
_DEAD_ROWS: Final = 50_000


def examine_schema(connector: Connector, *, full: bool) -> Examination:
    """Look at the schema of a store; see `rehydrate.ports.Examined`. `full` looks at nothing more here."""
    del full
    findings: list[Finding] = []
    usable = False
    store = connector.place.store
    try:
        with connector.bare() as session:
            usable = _look(session, findings)
    except RehydrateError as error:
        findings.append(of_error("server", error))
    except psycopg.Error as error:
        findings.append(of_error("server", translate(error, store)))
    return Examination(tuple(findings), usable)


def _look(session: Session, findings: list[Finding]) -> bool:
    number, version, standby, read_only, durable, most = session.ask(_SERVER)[0]
    findings.append(_version(session.store, int(number), str(version)))
    if standby or read_only:
        what = "is a standby" if standby else "is set to be read-only"
        action = "Use the URL of the primary server." if standby else "Set default_transaction_read_only to off."
        findings.append(Finding("writing", "problem", f"the server {what}.", action))
    findings.append(_durability(str(durable)))
    findings.append(_connections(int(session.ask(_CONNECTIONS)[0][0]), int(most)))
    found = applied(session)
    if found is None:
        where = f"the schema {session.place.schema!r} has no store in it."
        findings.append(Finding("schema", "problem", where, "Check URL and schema; a run makes a store."))
        return False
    finding, usable = of_migrations(found, session.store, known_migrations("rehydrate.stores.postgres"))
    findings.append(finding)
    findings += _tables(session)
    return usable and not any(each.about == "rights" and each.level == "problem" for each in findings)


def _version(store: str, number: int, version: str) -> Finding:
    if number < _OLDEST:
        return Finding("server", "problem", f"{store} is PostgreSQL {version}.", "Use PostgreSQL 13 or newer.")
    return Finding("server", "ok", f"{store} is PostgreSQL {version}.")


def _durability(mode: str) -> Finding:
    if mode != "off":
        return Finding("durability", "ok", f"synchronous_commit is {mode!r}: a commit is on the disk when it returns.")
    text = "synchronous_commit is off: a crash of the server can take acknowledged checkpoints with it."
    return Finding("durability", "note", text, "Set synchronous_commit to on, unless that is what you want.")


def _connections(count: int, most: int) -> Finding:
    text = f"{count} of {most} connections are used."
    if count >= most * _FULL:
        return Finding("connections", "note", text, "Raise max_connections, or put a pooler in front of the server.")
    return Finding("connections", "ok", text)


def _tables(session: Session) -> Iterator[Finding]:
    rows = session.ask(_TABLES, (session.place.schema,))
    closed = [str(name) for name, _, allowed, _, _ in rows if not allowed]
    if closed:
        action = "Grant this user SELECT, INSERT, UPDATE and DELETE on the tables of the schema."
        yield Finding("rights", "problem", f"this user may not read and write {', '.join(closed)}.", action)
    else:
        yield Finding("rights", "ok", f"this user may read and write all {len(rows)} tables.")
    live, dead = sum(int(row[3]) for row in rows), sum(int(row[4]) for row in rows)
    text = f"{size_text(sum(int(row[1]) for row in rows))} with indexes; about {dead:,} dead rows beside {live:,}."
    if dead >= _DEAD_ROWS and dead > live:
        yield Finding("space", "note", text, "See that autovacuum runs on these tables (pg_stat_all_tables).")
    else:
        yield Finding("space", "ok", text)
