"""The schema in PostgreSQL: numbered files, each applied once under a lock, and statements that use its indexes."""

import asyncio
import hashlib
from importlib.resources import files

import msgspec
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, StoreUnavailableError
from rehydrate.model.checkpoint import Latest, Offer, RequestRow
from rehydrate.stores.migrations import Migration, known_migrations
from rehydrate.stores.postgres import forgetting, inbox, reading, records, retention, writing
from rehydrate.stores.postgres.layout import Place as RecordPlace
from rehydrate.stores.postgres.layout import laid_out
from rehydrate.stores.postgres.place import Place as NamedPlace
from rehydrate.stores.postgres.place import settings_of
from rehydrate.stores.postgres.schema import migrate, missing
from rehydrate.stores.postgres.session import Session
from rehydrate.stores.postgres.waves import Plan, in_order, wave
from rehydrate.testing.contract_events import telling
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.postgres.server import Place

CLOCK = ManualClock()
KNOWN = known_migrations("rehydrate.stores.postgres")
TABLES = ("run", "checkpoint", "live", "request", "turn", "event", "tag", "offer")
#: All that makes a table what it is, from the catalogs.
CATALOG = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text, a.attidentity::text,
    a.attstorage::text, coalesce(pg_get_expr(d.adbin, d.adrelid), ''), a.attnum::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE n.nspname = %s AND c.relkind = 'r'
UNION ALL
SELECT 'relation', c.relname, c.relkind::text, coalesce(array_to_string(c.reloptions, ' '), ''), '', '', '', '', ''
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s
UNION ALL
SELECT 'index', tablename, indexname, replace(indexdef, %s || '.', ''), '', '', '', '', '' FROM pg_indexes
WHERE schemaname = %s
UNION ALL
SELECT 'constraint', c.relname, k.conname, pg_get_constraintdef(k.oid), '', '', '', '', ''
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s ORDER BY 1, 2, 3, 4
"""


def catalog(place: Place) -> list[tuple[object, ...]]:
    return place.ask(CATALOG, (place.schema,) * 5)


def fill(place: Place, run_id: str = "run") -> CommitMaker:
    """Store a run at rest: three checkpoints; records `a`, `b`, big ones; a request, a turn with a key, two events."""
    maker = CommitMaker(run_id)

    async def main() -> None:
        async with place.store(clock=CLOCK, keep_events=True) as store:
            await store.commit(maker.claim({"a": b"first a", "b": b"first b", "big": b"x" * 600_000}))
            request = RequestRow(f"q-{run_id}", run_id, "child#1", "open")
            await store.commit(
                maker.step({"a": b"second a" * 40}, requests=[request], turn=maker.turn(f"key-{run_id}"))
            )
            await store.commit(telling(maker.end({"b": b"second b"}), b"first", b"second", last=2))
            await store.tag(run_id, "good", f"{run_id}:1")
            await store.offer(Offer(run_id, "letter", b"come"))

    asyncio.run(main())
    return maker


def look(place: Place) -> object:
    """Open the store and ask it for a head."""

    async def main() -> object:
        async with place.store(clock=CLOCK) as store:
            return await store.head("run")

    return asyncio.run(main())


def session(place: Place, connection: psycopg.Connection) -> Session:
    return Session(connection, NamedPlace(settings_of(place.url), place.schema))


def test_each_migration_is_applied_once_with_its_checksum(postgres: Place) -> None:
    """A store that is opened again applies nothing, and the table of checksums says what was applied."""
    look(postgres)
    schema = catalog(postgres)
    names = ["0001_runs.sql", "0002_events.sql", "0003_inbox_and_tags.sql"]
    texts = [files("rehydrate.stores.postgres").joinpath("sql", name).read_bytes() for name in names]
    applied = [
        (number, name, hashlib.sha256(text).hexdigest())
        for number, name, text in zip((1, 2, 3), names, texts, strict=True)
    ]
    assert postgres.ask("SELECT number, name, checksum FROM rehydrate.migration ORDER BY number") == applied
    look(postgres)
    assert postgres.ask("SELECT number, name, checksum FROM rehydrate.migration ORDER BY number") == applied
    assert catalog(postgres) == schema


@pytest.mark.parametrize("applied", range(1, len(KNOWN)))
def test_a_migrated_schema_is_a_new_one(postgres: Place, postgres_url: str, applied: int) -> None:
    """Whatever version made a schema, opening it gives it the tables and indexes of a new one, and keeps its rows."""
    old = Place(postgres_url, f"{postgres.schema}_old")
    try:
        with psycopg.connect(old.url, autocommit=True) as connection:
            on_old = session(old, connection)
            with on_old.writing():
                migrate(on_old, KNOWN[:applied])
        old.change("INSERT INTO rehydrate.checkpoint VALUES (1, 0, 'c', 'b', 'e', 'd')")
        look(postgres)
        assert catalog(old) != catalog(postgres)
        look(old)
        assert catalog(old) == catalog(postgres)
        assert old.ask("SELECT * FROM rehydrate.checkpoint") == [(1, 0, b"c", b"b", b"e", b"d")]
    finally:
        old.change(f"DROP SCHEMA {old.schema} CASCADE")


def test_many_stores_make_a_schema_at_one_moment(postgres: Place) -> None:
    """Eight stores that find nothing make it once, and all use it."""

    async def main() -> None:
        stores = [postgres.store(clock=CLOCK) for _ in range(8)]
        await asyncio.gather(*(store.commit(CommitMaker(f"r{n}").claim()) for n, store in enumerate(stores)))
        assert len(await stores[0].runs()) == 8
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_a_migration_is_applied_whole_or_not_at_all(postgres: Place) -> None:
    """A migration that fails in the middle leaves nothing of itself, and is applied once it is mended."""
    first = Migration(1, "0001_a.sql", "CREATE TABLE rehydrate.a (x int); -- a comment; with a semicolon\n")
    broken = Migration(2, "0002_b.sql", "CREATE TABLE rehydrate.b (x int);\nCREATE TABLE rehydrate.a (x int);\n")
    fixed = Migration(2, "0002_b.sql", "CREATE TABLE rehydrate.b (x text DEFAULT ';');\n")
    names = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        found = session(postgres, connection)
        with found.writing():
            migrate(found, (first,))
        with pytest.raises(psycopg.errors.DuplicateTable), found.writing():
            migrate(found, (first, broken))
        assert postgres.ask(names, (postgres.schema,)) == [("a",), ("migration",)]
        assert missing(found, (first, fixed)) == (fixed,)
        with found.writing():
            migrate(found, (first, fixed))
    assert postgres.ask(names, (postgres.schema,)) == [("a",), ("b",), ("migration",)]


def test_a_schema_of_newer_code_is_refused(postgres: Place) -> None:
    """A migration that this version does not know means that newer code made the schema."""
    look(postgres)
    postgres.change("INSERT INTO rehydrate.migration VALUES (99, '0099_later.sql', 'x')")
    with pytest.raises(CheckpointFormatError, match=r"postgresql://.*format 99; this version reads up to"):
        look(postgres)


def test_a_migration_that_was_another_one_is_refused(postgres: Place) -> None:
    """A file whose checksum is not the one applied is not this schema."""
    look(postgres)
    postgres.change("UPDATE rehydrate.migration SET checksum = 'x'")
    with pytest.raises(CheckpointCorruptError, match=r"0001_runs\.sql is not the one applied"):
        look(postgres)


def test_a_schema_of_another_program_is_left_alone(postgres: Place) -> None:
    """Tables of others are named, and nothing is made beside them."""
    postgres.change(f"CREATE SCHEMA {postgres.schema}", "CREATE TABLE rehydrate.invoice (x int)")
    with pytest.raises(StoreUnavailableError, match="it has the tables invoice"):
        look(postgres)
    assert postgres.ask("SELECT tablename FROM pg_tables WHERE schemaname = %s", (postgres.schema,)) == [("invoice",)]


@pytest.mark.parametrize("name", ['My "schema" 100%s; --', "of rehydrate.runs"])
def test_a_schema_can_have_any_name(postgres_url: str, name: str) -> None:
    """Quotes, signs of the driver, capital letters and what names are replaced by are part of it."""
    place = Place(postgres_url, name)
    try:
        look(place)
        fill(place)
        assert look(place) is not None
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def test_a_user_that_may_only_write_can_use_what_is_there(postgres: Place) -> None:
    """The right to make tables is needed once; without any right the text says which to grant."""
    role = f"r_{postgres.schema}"
    url = make_conninfo(postgres.url, user=role)
    theirs = Place(url, postgres.schema)
    postgres.change(f"CREATE ROLE {role} LOGIN")
    try:
        with pytest.raises(StoreUnavailableError, match="permission denied for database") as no:
            look(theirs)
        assert "Grant this user the right to use the schema" in str(no.value)
        look(postgres)
        with pytest.raises(StoreUnavailableError, match="permission denied for schema"):
            look(theirs)
        postgres.change(
            f"GRANT USAGE ON SCHEMA {postgres.schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {postgres.schema} TO {role}",
        )
        fill(theirs)
    finally:
        postgres.change(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_deleted_run_leaves_no_row(postgres: Place) -> None:
    """Deleting the only run empties every table."""
    maker = fill(postgres)
    counts = {table: f"SELECT count(*) FROM rehydrate.{table}" for table in TABLES}

    async def main() -> bool:
        async with postgres.store(clock=CLOCK) as store:
            await store.commit(maker.claim({f"k{number}": b"v" for number in range(300)}))
            await store.commit(maker.end())
            assert all(postgres.ask(count)[0][0] for count in counts.values())
            return await store.delete("run")

    assert asyncio.run(main()) is True
    assert {table: postgres.ask(count)[0][0] for table, count in counts.items()} == dict.fromkeys(TABLES, 0)


@pytest.fixture
def large(postgres: Place) -> Place:
    """A store with tables large enough for indexes to be worth their while: 3,000 runs, one with 10,000 records."""
    fill(postgres)
    postgres.change(
        "INSERT INTO rehydrate.run (run_id, workflow, status, checkpoint_id, seq, epoch, lease_end, live_to, seal)"
        " SELECT convert_to('r' || n, 'UTF8'), 'flow', 'IDLE', convert_to('c' || n, 'UTF8'), 0, 1, 0, 0, ''"
        " FROM generate_series(1, 3000) AS n",
        "INSERT INTO rehydrate.checkpoint SELECT no, s, convert_to(no || '/' || s, 'UTF8'), '', '', 'data'"
        " FROM rehydrate.run, generate_series(10, 12) AS s",
        "INSERT INTO rehydrate.checkpoint SELECT 1, s, convert_to('1/' || s, 'UTF8'), '', '', 'data'"
        " FROM generate_series(100, 10000) AS s",
        "INSERT INTO rehydrate.live SELECT no, 12, 0, 4, 0, 'key' FROM rehydrate.run",
        "INSERT INTO rehydrate.request SELECT convert_to('q' || no, 'UTF8'), no, 'flow', no % 10 = 0, '' FROM"
        " rehydrate.run",
        "INSERT INTO rehydrate.offer SELECT no, n, convert_to('n' || n, 'UTF8'), '', '' FROM rehydrate.run,"
        " generate_series(10, 12) AS n",
        "INSERT INTO rehydrate.tag SELECT no, 'name', '' FROM rehydrate.run",
        "INSERT INTO rehydrate.turn SELECT convert_to('t' || no, 'UTF8'), no, 1, '' FROM rehydrate.run",
        "INSERT INTO rehydrate.event SELECT no, 100, '' FROM rehydrate.run",
        *(f"ANALYZE rehydrate.{table}" for table in TABLES),
    )
    return postgres


def plan(place: Place, statement: str, values: object) -> list[str]:
    """Return how the server would do a statement."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        rows = session(place, connection).ask(f"EXPLAIN {statement}", values)
    return [str(row[0]) for row in rows]


def test_no_statement_reads_a_whole_table(large: Place) -> None:
    """Every statement finds its rows through an index: its cost does not grow with the store, or with the history."""
    maker = CommitMaker()
    claim = maker.claim({"k": b"v"})
    request = RequestRow("q", "run", "", "open")
    commit = telling(maker.step({"k": b"v"}, ["l"], requests=[request], turn=maker.turn("k")), b"e", last=1)
    commit = msgspec.structs.replace(commit, taken=(1,))
    commits = [claim, *(CommitMaker(f"r{n}").claim() for n in range(3)), commit]
    plans = [Plan(laid_out(each, "it"), {"k": RecordPlace("k", 0, 0, 1), "l": None}) for each in commits]
    run, runs = (7,), reading._RUNS
    of_run = "run = (SELECT no FROM rehydrate.run WHERE run_id = %s)"
    asked = {
        "head": (reading._HEAD, (None, b"run")),
        "place": (reading._PLACE, (None, b"run:1")),
        "live": (records._LIVE.format(run=records._BY_NUMBER), (1,)),
        "named": (records._NAMED.format(run=records._BY_ID), (b"run", [b"a"])),
        "window": (records._WINDOW.format(run=records._BY_NUMBER), (1,)),
        **{f"head {n}": asked for n, asked in enumerate([*records.head_of("run:1"), *records.head_of(Latest("run"))])},
        "pieces": (records._PIECES, (*["{0,1}"] * 4, 1)),
        "rows": (records._ROWS, (1, 100, 200, 16_384)),
        "history": (reading._HISTORY, (5, b"run", 10)),
        "events": (reading._EVENTS, (b"run", 0, 10)),
        "request": (reading._REQUEST, (b"q",)),
        "turn": (reading._TURN, (b"t",)),
        "runs": (runs.format(where="true"), (10,)),
        "runs of a workflow": (runs.format(where="run.workflow = %s AND run.run_id > %s"), (b"flow", b"r2", 10)),
        "runs of a status": (runs.format(where="run.status = %s AND run.run_id > %s"), ("IDLE", b"r2", 10)),
        "timers that are up": (runs.format(where=reading._IS_DUE), (5.0, 10)),
        "renew": (writing._RENEW, (None, 30, b"run", b"owner", 1)),
        "checkpoint": (writing._CHECKPOINTS, ([b"run:1"],)),
        "at a number": (reading._AT_NUMBER, (None, 1, b"run")),
        "at a name": (reading._TAGGED, (b"run", b"good")),
        "requests": (reading._OPEN.format(where="true"), (10,)),
        "requests of a workflow": (
            reading._OPEN.format(where="workflow = %s AND request_id > %s"),
            (b"flow", b"q", 10),
        ),
        "requests of a run": (reading._OPEN.format(where=of_run), (b"run", 10)),
        "offers": (inbox._WAITING, (b"run", 0, 10)),
        "offer of a key": (inbox._KNOWN, (7, b"name")),
        "next offer": (inbox._NEXT, (7,)),
        "tags": (retention._TAGS, (7,)),
        "is there": (retention._IS_THERE, (7, b"run:1")),
        "versions": (forgetting._ENTRIES, (7,)),
        "drop": (forgetting._DROP, (7, [1, 2])),
        "since": (forgetting._SINCE, (7, 7)),
        "gone": (forgetting._GONE, (7, [b"name"])),
        "move": (forgetting._MOVE, ([1], [0], [1], [0], [b"key"], [None], 7)),
        "number": (writing._AT, (b"run", 1)),
        "one commit": wave([commit], plans[-1:], None, ["word"])[-1],
        "commits": wave(commits, plans, None, ["word", None, None, None, None])[-1],
        "locks": in_order(commits),
        **{f"delete {number}": (text, run) for number, text in enumerate(retention._DELETE)},
    }
    plans = {name: plan(large, *statement) for name, statement in asked.items()}
    assert {name: found for name, found in plans.items() if any("Seq Scan" in line for line in found)} == {}
    pages = [found for name, found in plans.items() if name.startswith(("runs", "requests"))]
    assert [line for found in pages for line in found if "Sort" in line] == []


def test_ids_are_ordered_as_code_points(postgres: Place) -> None:
    """The order of runs is that of the other stores, whatever the database's collation says of letters."""
    names = ["B", "a", "Z", "é", "z", "_", "🙂", "\uffff", "a b", "ab", "A"]

    async def main() -> list[str]:
        async with postgres.store(clock=CLOCK) as store:
            await asyncio.gather(*(store.commit(CommitMaker(name).claim()) for name in names))
            page = await store.runs(after="Z", limit=4)
            assert [header.run_id for header in page] == sorted(names)[3:7]
            return [header.run_id for header in await store.runs()]

    assert asyncio.run(main()) == sorted(names)


def test_an_id_too_long_for_an_index_is_refused_in_words(postgres: Place) -> None:
    """Run ids are limited by PostgreSQL's indexes, far above what the library allows; keys of records are not."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK) as store:
            with pytest.raises(StoreUnavailableError, match="Shorten the id"):
                await store.commit(CommitMaker("".join(chr(0x4E00 + n) for n in range(5000))).claim())
            maker = CommitMaker()
            await store.commit(maker.claim({"k" * 100_000: b"v"}, seconds=30))
            stored = await store.load(Latest("run"))
            assert stored is not None
            assert stored.records == {"k" * 100_000: b"v"}

    asyncio.run(main())
