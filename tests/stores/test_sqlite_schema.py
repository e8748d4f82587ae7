"""The SQLite store's schema: numbered files, each applied once, and statements that use the indexes it has."""

import hashlib
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores import (
    sqlite_archive,
    sqlite_inbox,
    sqlite_listing,
    sqlite_reading,
    sqlite_retention,
    sqlite_writing,
)
from rehydrate.stores.migrations import CURRENT, Migration, known_migrations, migrate, missing_migrations
from tests.stores.raw import ask, change, fill, use

SCHEMA = "SELECT type, name, sql FROM sqlite_master ORDER BY name"


def test_migrations_are_numbered_files_of_the_package() -> None:
    """The files are numbered from 1 without a gap and are part of the package."""
    known = known_migrations()
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))
    assert known[0].name == "0001_runs.sql"
    assert files("rehydrate.stores").joinpath("sql", "0001_runs.sql").is_file()


def test_the_checksums_known_beforehand_are_those_of_the_files() -> None:
    """A database whose migrations have these checksums is opened without reading the files, so they must be theirs."""
    assert {migration.number: migration.checksum for migration in known_migrations()} == CURRENT


def test_each_migration_is_applied_once_with_its_checksum(tmp_path: Path) -> None:
    """A store that is opened again applies nothing, and the table of checksums says what was applied."""
    path = tmp_path / "runs.db"
    fill(path)
    schema = ask(path, SCHEMA)
    names = ["0001_runs.sql", "0002_events.sql", "0003_inbox_and_tags.sql", "0004_packed.sql"]
    texts = [files("rehydrate.stores").joinpath("sql", name).read_bytes() for name in names]
    applied = [
        (number, name, hashlib.sha256(text).hexdigest())
        for number, name, text in zip((1, 2, 3, 4), names, texts, strict=True)
    ]
    assert ask(path, "SELECT * FROM rehydrate_migration") == applied
    use(path, lambda store: store.head("run"))
    assert ask(path, "SELECT * FROM rehydrate_migration") == applied
    assert ask(path, SCHEMA) == schema


@pytest.mark.parametrize("applied", range(1, len(known_migrations())))
def test_a_migrated_database_has_the_schema_of_a_new_one(tmp_path: Path, applied: int) -> None:
    """Whatever version made a file, opening it gives it the tables and indexes of a new one, and keeps its rows."""
    fresh, old = tmp_path / "fresh.db", tmp_path / "old.db"
    fill(fresh)
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        migrate(connection, "s", known_migrations()[:applied])
        connection.execute("INSERT INTO rehydrate_record VALUES (1, 'k', x'01')")
    assert ask(old, SCHEMA) != ask(fresh, SCHEMA)
    use(old, lambda store: store.head("run"))
    assert ask(old, SCHEMA) == ask(fresh, SCHEMA)
    assert ask(old, "SELECT * FROM rehydrate_record") == [(1, "k", b"\x01")]


def test_a_database_of_newer_code_is_refused(tmp_path: Path) -> None:
    """A migration that this version does not know means that newer code made the file."""
    path = tmp_path / "runs.db"
    fill(path)
    change(path, "INSERT INTO rehydrate_migration VALUES (99, '0099_later.sql', 'x')")
    with pytest.raises(CheckpointFormatError, match=r"runs\.db.*format 99; this version reads up to"):
        use(path, lambda store: store.load(Latest("run")))


def test_a_migration_that_was_another_one_is_refused(tmp_path: Path) -> None:
    """A file whose checksum is not the one applied is not this schema."""
    path = tmp_path / "runs.db"
    fill(path)
    change(path, "UPDATE rehydrate_migration SET checksum = 'x'")
    with pytest.raises(CheckpointCorruptError, match=r"0001_runs\.sql is not the one applied"):
        use(path, lambda store: store.head("run"))


def test_a_migration_is_applied_whole_or_not_at_all() -> None:
    """A migration that fails in the middle leaves nothing of itself, and is applied once it is mended."""
    first = Migration(1, "0001_a.sql", "CREATE TABLE a (x); -- a comment; with a semicolon\nCREATE INDEX i ON a (x);\n")
    broken = Migration(2, "0002_b.sql", "CREATE TABLE b (x);\nCREATE TABLE a (x);\n")
    fixed = Migration(2, "0002_b.sql", "CREATE TABLE b (x TEXT DEFAULT ';');\n")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, "s", (first,))
        connection.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError, match="table a already exists"):
            migrate(connection, "s", (first, broken))
        connection.execute("ROLLBACK")
        names = "SELECT name FROM sqlite_master WHERE name IN ('a', 'b', 'i') ORDER BY name"
        assert connection.execute(names).fetchall() == [("a",), ("i",)]
        assert missing_migrations(connection, "s", (first, fixed)) == (fixed,)
        migrate(connection, "s", (first, fixed))
        assert connection.execute(names).fetchall() == [("a",), ("b",), ("i",)]


STATEMENTS = [
    (module, name, statement)
    for module in (sqlite_reading, sqlite_writing, sqlite_inbox, sqlite_retention, sqlite_archive)
    for name, value in sorted(vars(module).items())
    for statement in ([value] if isinstance(value, str) else value if isinstance(value, tuple) else [])
    if name.startswith("_") and name not in {"__doc__", "__name__", "__file__", "__package__", "__cached__"}
]


@pytest.mark.parametrize("statement", [pytest.param(text, id=name) for _, name, text in STATEMENTS])
def test_no_statement_reads_a_whole_table(tmp_path: Path, statement: str) -> None:
    """Every statement finds its rows through a key: its cost does not grow with the store."""
    path = tmp_path / "runs.db"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        marks = [1] * statement.count("?")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", marks)]
    assert [line for line in plan if line.startswith("SCAN") or "TEMP B-TREE" in line] == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("1", "SCAN run USING INDEX sqlite_autoindex_rehydrate_run_1"),
        ("run.run_id > ?", "SEARCH run USING INDEX sqlite_autoindex_rehydrate_run_1 (run_id>?)"),
        ("run.workflow = ?", "SEARCH run USING INDEX rehydrate_run_by_workflow (workflow=?)"),
        ("run.status = ? AND run.run_id > ?", "SEARCH run USING INDEX rehydrate_run_by_status (status=? AND run_id>?)"),
    ],
)
def test_pages_of_runs_come_from_an_index(tmp_path: Path, where: str, expected: str) -> None:
    """A page of runs is read in the order of an index, without sorting."""
    path = tmp_path / "runs.db"
    fill(path)
    statement = vars(sqlite_listing)["_RUNS"].format(where=where)
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * statement.count("?"))]
    assert plan[0] == expected
    assert [line for line in plan if "TEMP B-TREE" in line] == []


def test_runs_with_an_inbox_are_found_from_what_waits(tmp_path: Path) -> None:
    """Runs without anything in their inbox, and what was taken, are not looked at."""
    path = tmp_path / "runs.db"
    fill(path)
    statement = vars(sqlite_listing)["_OFFERED"].format(where="run.workflow = ? AND run.run_id > ?")
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * statement.count("?"))]
    assert [line for line in plan if "rehydrate_offer" in line] == [
        "SCAN rehydrate_offer USING INDEX rehydrate_offer_waiting"
    ]
    assert "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)" in plan


def test_runs_with_a_timer_that_is_up_are_found_from_the_timers(tmp_path: Path) -> None:
    """Runs that wait for people, or for a later time, are not looked at."""
    path = tmp_path / "runs.db"
    fill(path)
    statement = vars(sqlite_listing)["_DUE"].format(where="run.workflow = ? AND run.run_id > ?")
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * statement.count("?"))]
    assert plan[:2] == [
        "SEARCH rehydrate_run USING COVERING INDEX rehydrate_run_by_due (due<?)",
        "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)",
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("1", "SCAN rehydrate_request USING INDEX rehydrate_request_open"),
        ("request_id > ?", "SEARCH rehydrate_request USING INDEX rehydrate_request_open (request_id>?)"),
        ("run = ?", "SEARCH rehydrate_request USING INDEX rehydrate_request_open_by_run (run=?)"),
        ("workflow = ?", "SEARCH rehydrate_request USING INDEX rehydrate_request_open_by_workflow (workflow=?)"),
    ],
)
def test_pages_of_open_requests_come_from_an_index(tmp_path: Path, where: str, expected: str) -> None:
    """A page of open requests is read in the order of an index that holds no other ones, without sorting."""
    path = tmp_path / "runs.db"
    fill(path)
    statement = vars(sqlite_listing)["_OPEN"].format(where=where)
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * statement.count("?"))]
    assert plan == [expected]


def test_a_deleted_run_leaves_no_row(tmp_path: Path) -> None:
    """Deleting the only run empties every table."""
    path = tmp_path / "runs.db"
    fill(path)
    tables = ("run", "checkpoint", "record", "live", "request", "turn", "event", "tag", "offer")
    assert all(ask(path, f"SELECT count(*) FROM rehydrate_{table}")[0][0] for table in tables)
    assert use(path, lambda store: store.delete("run")) is True
    assert {table: ask(path, f"SELECT count(*) FROM rehydrate_{table}")[0][0] for table in tables} == dict.fromkeys(
        tables, 0
    )


def test_a_deleted_run_with_damaged_bounds_takes_nothing_of_others(tmp_path: Path) -> None:
    """What is deleted is told by checked rows: changed numbers cannot make it reach into another run."""
    path = tmp_path / "runs.db"
    fill(path)
    maker = fill(path, "other")
    change(path, "UPDATE rehydrate_checkpoint SET first = 1, last = 1000000")
    assert use(path, lambda store: store.delete("run")) is True
    stored = use(path, lambda store: store.load(Latest("other")))
    assert stored is not None
    assert stored.records == maker.records
