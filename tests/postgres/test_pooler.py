"""A transaction-mode pooler: each transaction comes to another connection of the server, and nothing is missed."""

import asyncio
import subprocess
import sys
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rehydrate import checkpoint_storage_from_url
from rehydrate.errors import StoreUnavailableError, WrongCallError
from rehydrate.model.checkpoint import At, Latest
from rehydrate.stores.postgres import PostgresCheckpointStorage
from rehydrate.testing.store_contract import CHECKS, CommitMaker, ManualClock
from tests.postgres.relays import TransactionPooler
from tests.postgres.server import Place

CLOCK = ManualClock()


#: A few of each kind in the short form; a store that keeps state of a session fails most of them.
BEHIND_IT = [
    pytest.param(check, marks=[] if number % 6 == 0 else pytest.mark.proof) for number, check in enumerate(CHECKS)
]


@pytest.mark.parametrize("check", BEHIND_IT, ids=[check.__name__ for check in CHECKS])
def test_the_contract_holds_behind_a_pooler(pooled: Place, pooler: TransactionPooler, check) -> None:
    """Every check passes where no two transactions in a row have the same connection."""
    asyncio.run(check(pooled.store))
    assert pooler.transactions > 1


def test_the_pooler_of_these_tests_keeps_no_session(pooled: Place) -> None:
    """What the store must not use is lost there, or refused: a setting, a prepared statement."""
    with psycopg.connect(pooled.url, autocommit=True, prepare_threshold=5) as connection:
        connection.execute("SET application_name = 'mine'")
        assert connection.execute("SHOW application_name").fetchone() != ("mine",)
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            connection.execute("SELECT 1", prepare=True)


def test_each_call_is_one_transaction(pooled: Place, pooler: TransactionPooler) -> None:
    """A commit, a renewal and ways to read take one; a head's records that are not small take a second one."""

    async def main() -> list[int]:
        async with pooled.store() as store:
            maker = CommitMaker()
            counts: list[int] = []
            await store.commit(maker.claim({"k": b"v"}))
            for call in (
                store.load(Latest("run")),
                store.commit(maker.step({"k": b"w", "big": b"x" * 1_000_000}, turn=maker.turn("key"))),
                store.renew("run", "owner", 1, 30),
                store.head("run"),
                store.read("run", ["k", "big"]),
                store.load(At("run", 0)),
                store.load("run:1"),
            ):
                before = pooler.transactions
                await call
                counts.append(pooler.transactions - before)
            return counts

    assert asyncio.run(main()) == [1, 1, 1, 1, 1, 1, 2]


def test_a_store_can_borrow_the_connections_of_a_pool(postgres: Place) -> None:
    """A pool of the user's serves the store as well, gets its connections back as they were, and stays open."""

    async def main(pool: ConnectionPool) -> None:
        async with PostgresCheckpointStorage(pool, schema=postgres.schema, clock=CLOCK) as store:
            makers = [CommitMaker(f"r{number}") for number in range(20)]
            await asyncio.gather(*(store.commit(maker.claim({"k": b"v"})) for maker in makers))
            assert [header.run_id for header in await store.runs()] == sorted(maker.run_id for maker in makers)
            assert "password" not in repr(store)

    kwargs = {"row_factory": psycopg.rows.dict_row, "prepare_threshold": 3}
    with ConnectionPool(postgres.url, min_size=1, max_size=2, kwargs=kwargs, open=True) as pool:
        asyncio.run(main(pool))
        with pool.connection() as connection:
            assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}
            assert (connection.autocommit, connection.prepare_threshold) == (False, 3)


def test_a_url_names_a_store(postgres_database: str) -> None:
    """`checkpoint_storage_from_url` hands options of libpq on and takes those of the store."""
    settings = {**conninfo_to_dict(postgres_database), "options": "-c search_path=nowhere"}
    url = f"PostgreSQL:///?{urlencode(settings, quote_via=quote)}&keep_events=true"
    store = checkpoint_storage_from_url(url)
    assert isinstance(store, PostgresCheckpointStorage)
    assert store.keeps_events

    async def main() -> None:
        await store.commit(CommitMaker().claim())
        await store.close()

    asyncio.run(main())
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT run_id FROM rehydrate.run").fetchall() == [(b"run",)]


def test_options_of_a_url_reach_libpq_as_they_were_written(postgres_database: str) -> None:
    """Escaped signs, a plus, a blank value and one that is given twice are not written anew."""
    given = "&".join(f"{name}={quote(value, safe='')}" for name, value in conninfo_to_dict(postgres_database).items())
    url = f"postgresql:///?{given}&application_name=a%2Fb+c%3Dd&keep_events=true&options=-c%20work_mem%3D77MB"
    store = checkpoint_storage_from_url(url)
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'a/b+c=d'"

    async def main() -> None:
        await store.commit(CommitMaker().claim())
        with psycopg.connect(postgres_database) as connection:
            assert connection.execute(asked).fetchone() == (1,)
        await store.close()

    asyncio.run(main())


def test_a_pool_is_refused_in_a_forked_child(postgres: Place) -> None:
    """Its threads and sockets are the parent's, also where the store was not used before."""
    program = """
import asyncio, os, sys
from psycopg_pool import ConnectionPool
from rehydrate import PostgresCheckpointStorage
from rehydrate.errors import StoreUnavailableError

pool = ConnectionPool(sys.argv[1], min_size=1, max_size=2, open=True)
store = PostgresCheckpointStorage(pool, schema=sys.argv[2], retry_waits=())
assert asyncio.run(store.head("run")) is None
child = os.fork()
if child == 0:
    try:
        asyncio.run(store.head("run"))
    except StoreUnavailableError as error:
        os._exit(0 if "Make pool and store after the fork" in str(error) else 4)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert asyncio.run(store.head("run")) is None
asyncio.run(store.close())
pool.close()
"""
    subprocess.run([sys.executable, "-c", program, postgres.url, postgres.schema], check=True, timeout=60)


def test_what_is_no_place_is_refused(postgres: Place) -> None:
    """An asyncio pool, a pool that is not open, a URL that is none and names that are none say what to give instead."""

    def store(place: object, **options: object) -> PostgresCheckpointStorage:
        return PostgresCheckpointStorage(place, **options)

    for place in (AsyncConnectionPool(postgres.url, open=False), 5, None, "sqlite:///secret.db", "secret@:/secret"):
        with pytest.raises(WrongCallError) as no:
            store(place)
        assert "secret" not in str(no.value)
    for schema in ("", "a\0b", "pg_mine", "x" * 64, "a\ud800", 3):
        with pytest.raises(WrongCallError, match="schema"):
            store(postgres.url, schema=schema)
    with pytest.raises(WrongCallError, match="URL"):
        store(postgres.url, listen_url="host")
    closed = store(ConnectionPool(postgres.url, open=False), retry_waits=())
    with pytest.raises(StoreUnavailableError, match="not open"):
        asyncio.run(closed.head("run"))


def test_a_password_is_in_no_text(postgres: Place) -> None:
    """Neither a store's name nor an error repeats the password of the URL."""
    url = make_conninfo(postgres.url, password="s3cret", user="nobody")
    store = PostgresCheckpointStorage(url, retry_waits=())
    with pytest.raises(StoreUnavailableError) as no:
        asyncio.run(store.head("run"))
    assert "s3cret" not in f"{store!r} {no.value} {no.value!r} {no.value.__cause__}"
    assert 'role "nobody" does not exist' in str(no.value)


def test_nothing_is_left_on_the_connections_of_a_pooler(pooled: Place, pooler: TransactionPooler) -> None:
    """Whoever gets a connection after the store finds no setting, lock, prepared statement or channel of it."""

    async def main() -> None:
        async with pooled.store(keep_events=True) as store:
            maker = CommitMaker()
            await store.commit(maker.claim({"k": b"v"}))
            await store.load(Latest("run"))
            await store.tag("run", "good", "run:0")
            await store.commit(maker.end())
            assert await store.delete("run") is True

    asyncio.run(main())
    left = """
    SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
        current_setting('search_path'), (SELECT count(*) FROM pg_prepared_statements),
        (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
    """
    with psycopg.connect(pooled.url, autocommit=True, prepare_threshold=None) as connection:
        found = {connection.execute(left).fetchone() for _ in range(3)}
    assert found == {("0", "0", '"$user", public', 0, 0, 0)}
