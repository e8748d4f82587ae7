"""What can be wrong with a server: each trouble says what it is and what to do next."""

import asyncio
import socket
from collections.abc import Callable
from types import SimpleNamespace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rehydrate.errors import (
    CheckpointCorruptError,
    RehydrateError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from rehydrate.stores.postgres.failures import is_of_rows
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.postgres.relays import Relay
from tests.postgres.server import Place
from tests.postgres.wire import message, startup

CLOCK = ManualClock()


class Refusing(Relay):
    """A server that answers every client with one error."""

    def __init__(self, state: str, text: str) -> None:
        self.error = message(b"E", b"SFATAL\0VFATAL\0C%s\0M%s\0\0" % (state.encode(), text.encode()))
        self.asked = 0
        super().__init__("dbname=runs user=us password=s3cret")

    def serve(self, client: socket.socket) -> None:
        startup(client)
        self.asked += 1
        client.sendall(self.error)


def failed(place: Place, waits: tuple[float, ...] = (), **options: object) -> RehydrateError:
    """Return the error of a commit to a store."""

    async def main() -> RehydrateError:
        async with place.store(clock=CLOCK, retry_waits=waits, **options) as store:
            with pytest.raises(RehydrateError) as no:
                await store.commit(CommitMaker().claim({"k": b"v"}))
            return no.value

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("state", "text", "action", "attempts"),
    [
        ("28P01", 'password authentication failed for user "us"', "Check user and password in the URL", 1),
        ("28000", 'no pg_hba.conf entry for host "x"', "Check user and password in the URL", 1),
        ("3D000", 'database "runs" does not exist', "Make the database", 1),
        ("42501", 'permission denied for database "runs"', "Grant this user the right", 1),
        ("53300", "sorry, too many clients already", "Raise max_connections", 3),
        ("57P03", "the database system is starting up", "Check that the server runs", 3),
    ],
)
def test_a_server_that_lets_nobody_in_says_why(state: str, text: str, action: str, attempts: int) -> None:
    """What waiting cannot mend is not tried again; the text has the server's words, what to do, and no password."""
    server = Refusing(state, text)
    try:
        error = failed(Place(server.url, "rehydrate"), (0.0, 0.0))
        assert isinstance(error, StoreUnavailableError)
        assert text in str(error)
        assert f"'postgresql://127.0.0.1:{server.port}/runs'" in str(error)
        assert action in str(error)
        assert "s3cret" not in f"{error} {error!r} {error.__cause__!r}"
        assert server.asked == attempts
    finally:
        server.close()


@pytest.mark.parametrize(
    ("state", "kind", "says"),
    [
        ("53100", StoreFullError, "Free space on the disk of the server"),
        ("53200", StoreUnavailableError, "Free memory on the server"),
        ("55P03", StoreUnavailableError, "Find the session that holds locks"),
        ("57014", StoreUnavailableError, "statement_timeout"),
        ("40001", StoreUnavailableError, "many writers meet"),
        ("58030", StoreUnavailableError, "See the server's log"),
        ("XX001", CheckpointCorruptError, "it broke"),
        ("23514", CheckpointCorruptError, "it broke"),
        ("P0001", StoreUnavailableError, "See the server's log"),
    ],
)
def test_a_server_that_cannot_write_says_why(
    postgres: Place, state: str, kind: type[RehydrateError], says: str
) -> None:
    """An error in the middle of a commit leaves nothing of it, and the store can be used when it is mended."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK, retry_waits=(0.0, 0.0)) as store:
            await store.head("run")
            breaks(postgres, "checkpoint", state)
            makers = [CommitMaker(f"r{number}") for number in range(3)]
            results = await asyncio.gather(
                *(store.commit(maker.claim({"k": b"v"})) for maker in makers), return_exceptions=True
            )
            assert [type(result) for result in results] == [kind] * 3
            assert says in str(results[0])
            assert await store.runs() == []
            postgres.change("DROP TRIGGER breaks ON rehydrate.checkpoint")
            await store.commit(CommitMaker().claim())

    asyncio.run(main())


def test_an_error_that_ends_the_connection_is_no_rows() -> None:
    """A server that breaks down while it reads ends the connection: all is asked again on another one."""

    class Ends(psycopg.errors.DataCorrupted):
        diag = SimpleNamespace(severity_nonlocalized="FATAL")

    assert is_of_rows(psycopg.errors.DataCorrupted()) is True
    assert is_of_rows(Ends()) is False


def breaks(place: Place, table: str, state: str, when: str = "true") -> None:
    """Let inserts into a table fail with a SQLSTATE."""
    place.change(
        f"CREATE OR REPLACE FUNCTION rehydrate.breaks() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF {when} THEN RAISE EXCEPTION 'it broke' USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$",
        f"CREATE TRIGGER breaks BEFORE INSERT ON rehydrate.{table} FOR EACH ROW EXECUTE FUNCTION rehydrate.breaks()",
    )


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_transaction_that_lost_is_done_again(postgres: Place, state: str) -> None:
    """A deadlock or a serialization failure costs an attempt, and each commit is there once."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK, retry_waits=(0.0, 0.0)) as store:
            await store.head("run")
            postgres.change("CREATE SEQUENCE rehydrate.tries")
            name = f"'{postgres.schema}.tries'"
            breaks(postgres, "checkpoint", state, f"nextval({name}) < 3")
            makers = [CommitMaker(f"r{number}") for number in range(3)]
            await asyncio.gather(*(store.commit(maker.claim({"k": b"v"})) for maker in makers))
            assert [header.seq for header in await store.runs()] == [0, 0, 0]

    asyncio.run(main())


@pytest.mark.parametrize(("state", "kind"), [("22000", StoreUnavailableError), ("XX001", CheckpointCorruptError)])
def test_one_row_that_is_refused_undoes_its_own_commit_only(
    postgres: Place, state: str, kind: type[RehydrateError]
) -> None:
    """Of commits that share a transaction, the one with a row that the server refuses fails, and only that."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK, retry_waits=()) as store:
            makers = [CommitMaker(f"r{number}") for number in range(10)]
            await asyncio.gather(*(store.commit(maker.claim()) for maker in makers))
            breaks(postgres, "checkpoint", state, "length(NEW.data) = 777")
            results = await asyncio.gather(
                *(
                    store.commit(maker.step({"k": b"v" * (777 if number == 4 else 300)}))
                    for number, maker in enumerate(makers)
                ),
                return_exceptions=True,
            )
            assert [number for number, result in enumerate(results) if result is not None] == [4]
            assert isinstance(results[4], kind)
            assert [header.seq for header in await store.runs()] == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda url: make_conninfo(url, dbname="nowhere"), "Make the database"),
        (lambda url: make_conninfo(url, user="nobody"), "Check user and password"),
        (lambda url: make_conninfo(url, host="/nowhere"), "Check that the server runs"),
        (lambda url: make_conninfo(url, host="no-such-host.invalid"), "Check that the server runs"),
    ],
)
def test_a_url_that_leads_to_the_wrong_place_says_so(postgres: Place, change: Callable[[str], str], says: str) -> None:
    """An unknown database, an unknown user and a host that is not there are told apart."""
    error = failed(Place(change(postgres.url), postgres.schema))
    assert isinstance(error, StoreUnavailableError)
    assert says in str(error)


def test_a_standby_says_so(postgres: Place) -> None:
    """A server that may not be written is told from one that is gone, and what is there can be read."""
    standby = Place(make_conninfo(postgres.url, options="-c default_transaction_read_only=on"), postgres.schema)
    assert "Use the URL of the primary" in str(failed(standby))

    async def main() -> None:
        async with postgres.store(clock=CLOCK) as store, standby.store(clock=CLOCK) as reader:
            await store.commit(CommitMaker().claim({"k": b"v"}))
            with pytest.raises(StoreReadOnlyError):
                await reader.commit(CommitMaker("other").claim())
            assert await reader.read("run", ["k"]) == {"k": b"v"}

    asyncio.run(main())


def test_a_table_that_is_gone_is_damage(postgres: Place) -> None:
    """A schema that somebody has taken apart is reported with the store's name."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK, retry_waits=()) as store:
            await store.commit(CommitMaker().claim())
            postgres.change("DROP TABLE rehydrate.live")
            with pytest.raises(CheckpointCorruptError, match=r"postgresql://.*live"):
                await store.read("run", ["k"])
            with pytest.raises(CheckpointCorruptError, match=r"live"):
                await store.commit(CommitMaker("other").claim({f"k{number}": b"v" for number in range(300)}))

    asyncio.run(main())


def test_refused_rows_write_nothing_to_the_log(postgres: Place, caplog: pytest.LogCaptureFixture) -> None:
    """What a caller is told by an error stands in no log as well."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK, retry_waits=()) as store:
            await store.commit(CommitMaker().claim())
            breaks(postgres, "checkpoint", "22000")
            for number in range(20):
                with pytest.raises(StoreUnavailableError):
                    await store.commit(CommitMaker(f"r{number}").claim({"k": b"v" * 100_000}))

    asyncio.run(main())
    assert caplog.records == []
