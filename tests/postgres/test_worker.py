"""The threads behind a PostgreSQL store: one transaction for many commits, order by run, gone when not needed."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rehydrate.errors import CommitConflictError, StoreUnavailableError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.postgres import PostgresCheckpointStorage, session, worker
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.postgres.relays import Proxy
from tests.postgres.server import Place

CLOCK = ManualClock()
ROOT = Path(__file__).resolve().parents[2]


def threads(place: Place) -> list[threading.Thread]:
    """Return the threads of stores at a place."""
    return [thread for thread in threading.enumerate() if place.schema in thread.name]


def end(place: Place) -> None:
    """Wait until the threads of stores at a place, which were told to end, have ended."""
    for thread in threads(place):
        thread.join(5)
    assert threads(place) == []


def test_waiting_commits_share_a_transaction(far: Place, proxy: Proxy) -> None:
    """A hundred runs that commit at the same moment take a few transactions, one of them refused alone."""

    async def main() -> None:
        async with far.store(clock=CLOCK) as store:
            makers = [CommitMaker(f"r{number}") for number in range(100)]
            await asyncio.gather(*(store.commit(maker.claim()) for maker in makers))
            before = proxy.commits
            makers[7].head = "stale"
            results = await asyncio.gather(
                *(store.commit(maker.step({"k": b"v"})) for maker in makers), return_exceptions=True
            )
            assert [number for number, result in enumerate(results) if result is not None] == [7]
            # The first may be on its way before the others are there.
            assert 1 <= proxy.commits - before <= 5

    asyncio.run(main())


def test_a_commit_is_one_round_trip(far: Place, proxy: Proxy) -> None:
    """The transaction of a commit, with records, a request, a turn and its end, is one request to the server."""

    async def main() -> int:
        async with far.store(clock=CLOCK) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            before = proxy.requests
            await store.commit(maker.step({"k": b"v", "l": b"x" * 1_000_000}, ["m"], turn=maker.turn("key")))
            return proxy.requests - before

    assert asyncio.run(main()) == 1


def test_a_run_that_waits_for_a_lock_holds_up_no_reader(postgres: Place) -> None:
    """While somebody else holds a run's row, its commit waits, and other runs can be read."""

    async def main(connection: psycopg.Connection) -> None:
        async with postgres.store(clock=CLOCK) as store:
            makers = [CommitMaker("a"), CommitMaker("b")]
            for maker in makers:
                await store.commit(maker.claim({"k": b"v"}))
            connection.execute(f"SELECT 1 FROM {postgres.schema}.run WHERE run_id = 'a' FOR UPDATE".encode())
            waits = asyncio.ensure_future(store.commit(makers[0].step({"k": b"w"})))
            for _ in range(20):
                assert await store.read("b", ["k"]) == {"k": b"v"}
            assert not waits.done()
            connection.rollback()
            await waits
            assert await store.read("a", ["k"]) == {"k": b"w"}

    with psycopg.connect(postgres.url) as connection:
        asyncio.run(main(connection))


def test_calls_of_a_run_are_done_in_their_order(postgres: Place) -> None:
    """Commits, reads, renewals and the end of many runs, asked for at once, find what was asked for before."""

    async def one(store: PostgresCheckpointStorage, name: str) -> list[object]:
        maker = CommitMaker(name)
        calls: list[object] = [store.commit(maker.claim({"k": b"0"}))]
        for number in range(1, 4):
            calls += [store.read(name, ["k"]), store.commit(maker.step({"k": b"%d" % number}))]
        calls += [store.renew(name, "owner", 1, 30), store.commit(maker.end()), store.delete(name), store.head(name)]
        return await asyncio.gather(*calls)

    async def main() -> None:
        async with postgres.store(clock=CLOCK) as store:
            results = await asyncio.gather(*(one(store, f"r{number}") for number in range(10)))
        reads = [{"k": b"0"}, None, {"k": b"1"}, None, {"k": b"2"}, None]
        assert results == [[None, *reads, None, None, True, None]] * 10

    asyncio.run(main())


def test_a_commit_must_move_its_run_on(postgres: Place) -> None:
    """A commit with a number that is not above the head's is refused, as in every store."""

    async def main() -> None:
        async with postgres.store(clock=CLOCK) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            await store.commit(maker.step())
            maker.seq = 0
            with pytest.raises(CommitConflictError, match="a head below number 1"):
                await store.commit(maker.step({"k": b"v"}))
            assert await store.read("run", ["k"]) == {}

    asyncio.run(main())


def test_a_store_has_few_connections(postgres: Place) -> None:
    """However many callers there are, a store has four connections at most."""
    named = replace(postgres, url=make_conninfo(postgres.url, application_name=postgres.schema))
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"

    async def main() -> object:
        async with named.store(clock=CLOCK) as store:
            makers = [CommitMaker(f"r{number}") for number in range(50)]
            await asyncio.gather(*(store.commit(maker.claim()) for maker in makers))
            await asyncio.gather(*(store.load(Latest(maker.run_id)) for maker in makers * 4))
            return postgres.ask(count, (postgres.schema,))[0][0]

    assert 2 <= asyncio.run(main()) <= 4


def test_a_thread_without_work_ends_and_another_begins(postgres: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle connections are given up, and made anew when there is something to do."""
    monkeypatch.setattr(worker, "_IDLE_SECONDS", 0.0)

    async def main() -> None:
        async with postgres.store(clock=CLOCK) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            for number in range(20):
                await asyncio.to_thread(end, postgres)
                await store.commit(maker.step({"k": b"%d" % number}))
                assert await store.read("run", ["k"]) == {"k": b"%d" % number}

    asyncio.run(main())


def test_a_thread_that_waits_holds_nothing_of_its_last_call(postgres: Place) -> None:
    """Neither what was asked nor what it is part of is there until the next call comes."""
    gone = threading.Event()

    async def main() -> bool:
        async with postgres.store(clock=CLOCK) as store:

            def look(_: object) -> None:
                pass

            weakref.finalize(look, gone.set)
            await store._read(look)
            del look
            return await asyncio.to_thread(is_gone)

    def is_gone() -> bool:  # the thread lets go just after its answer
        return any(gone.wait(0.05) for _ in range(100) if gc.collect() >= 0)

    assert asyncio.run(main())


def test_a_thread_that_could_not_start_is_tried_again(postgres: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is an error of the call that it was needed for and holds up no later one of that run."""
    maker = CommitMaker()
    commit = maker.claim()

    async def main() -> None:
        store = postgres.store(clock=CLOCK, retry_waits=())
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_room)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await store.commit(commit)
        assert await asyncio.wait_for(store.head("run"), 5) is None
        await asyncio.wait_for(store.commit(commit), 5)
        await store.close()

    asyncio.run(main())


def test_one_thread_does_what_no_other_can_be_started_for(postgres: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is one, calls side by side and those behind others of their run are all done by it."""
    maker = CommitMaker()

    async def main() -> None:
        store = postgres.store(clock=CLOCK, retry_waits=())
        await store.commit(maker.claim())
        monkeypatch.setattr(threading.Thread, "start", no_room)
        commits = [store.commit(maker.step({"k": b"%d" % number})) for number in range(3)]
        heads = [store.head(f"none {number}") for number in range(8)]
        assert await asyncio.wait_for(asyncio.gather(*commits, *heads), 5) == [None] * 11
        assert await store.read("run", ["k"]) == {"k": b"2"}
        assert len(threads(postgres)) == 1
        await store.close()

    asyncio.run(main())


def no_room(thread: threading.Thread) -> None:
    """Fail as the start of a thread does where the system has no room for one."""
    raise RuntimeError("can't start new thread")


def test_a_store_that_is_dropped_ends_its_threads(postgres: Place) -> None:
    """A store object that nobody closed frees threads and connections when it is collected."""

    async def main() -> None:
        await postgres.store(clock=CLOCK).commit(CommitMaker().claim())

    asyncio.run(main())
    gc.collect()
    end(postgres)


def test_closing_ends_the_threads(postgres: Place) -> None:
    """When `close` returns, what was asked for is done and no thread or connection is left."""

    async def main() -> None:
        store = postgres.store(clock=CLOCK)
        makers = [CommitMaker(f"r{number}") for number in range(20)]
        commits = [asyncio.ensure_future(store.commit(maker.claim())) for maker in makers]
        await asyncio.sleep(0)
        await store.close()
        assert all(commit.done() and commit.exception() is None for commit in commits)
        await asyncio.to_thread(end, postgres)

    asyncio.run(main())


def test_an_error_in_a_call_reaches_its_caller(postgres: Place) -> None:
    """A clock that raises fails the calls that read it, not the threads."""

    class BrokenClock:
        broken = True

        def time(self) -> float:
            if self.broken:
                raise OSError("no time")
            return 1.0

    async def main() -> None:
        clock = BrokenClock()
        async with postgres.store(clock=clock, retry_waits=()) as store:
            for call in (store.commit(CommitMaker("a").claim()), store.head("a"), store.renew("a", "owner", 1, 30)):
                with pytest.raises(OSError, match="no time"):
                    await call
            clock.broken = False
            await store.commit(CommitMaker("a").claim())
            assert [header.run_id for header in await store.runs()] == ["a"]

    asyncio.run(main())


def test_leases_run_on_the_servers_clock(postgres: Place) -> None:
    """Without a clock it is the server's time that a lease ends by, whatever this machine's clock says."""
    left_of = "SELECT lease_end - extract(epoch FROM clock_timestamp())::float8 FROM rehydrate.run"

    async def main() -> None:
        async with postgres.store() as store:
            maker = CommitMaker()
            await store.commit(maker.claim(seconds=100))
            (left,) = postgres.ask(left_of)[0]
            assert 90 < left <= 100
            await store.renew("run", "owner", 1, 1000)
            (left,) = postgres.ask(left_of)[0]
            assert 990 < left <= 1000
            head = await store.head("run")
            assert head.alive
            postgres.change("UPDATE rehydrate.run SET lease_end = lease_end - 1001")
            head = await store.head("run")
            assert not head.alive
            assert await store.delete("run") is True

    asyncio.run(main())


LEFT_OPEN = """
import asyncio, sys
from rehydrate import PostgresCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

store, maker = PostgresCheckpointStorage(sys.argv[1], schema=sys.argv[2], clock=ManualClock()), CommitMaker()

async def main():
    await store.commit(maker.claim())
    task = asyncio.ensure_future(store.commit(maker.step({"k": b"on its way"})))
    await asyncio.sleep(0)
    task.cancel()

asyncio.run(main())
"""

FORKED = """
import asyncio, os, sys
from rehydrate import PostgresCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

store = PostgresCheckpointStorage(sys.argv[1], schema=sys.argv[2], clock=ManualClock(), listen_url=sys.argv[1])
maker, theirs = CommitMaker(), CommitMaker("child", owner="child")

async def use(maker, run_id, number):
    await asyncio.gather(*(store.head(f"none {n}") for n in range(8)))
    await store.commit(maker.step({"k": b"%d" % number}))
    return (await store.read(run_id, ["k"]))["k"]

async def begin():
    await store.commit(maker.claim({"k": b"v"}))
    await store.changed("run", 0)

asyncio.run(begin())
threads = [*vars(vars(store)["_worker"])["_links"], vars(store)["_listener"]]
sources = [vars(thread).get("_source", thread) for thread in threads]
# A thread that was started for a call which another did has no connection yet.
connections = [vars(source)["_connection"] for source in sources]
sockets = [connection.fileno() for connection in connections if connection is not None]
assert len(sockets) >= 2
child = os.fork()
mine = theirs if child == 0 else maker
if child == 0:
    # The end of the parent must be seen by the server.
    assert not any(os.path.exists(f"/proc/self/fd/{number}") for number in sockets)
    asyncio.run(store.commit(theirs.claim()))
read = [asyncio.run(use(mine, mine.run_id, number)) for number in range(20)]
assert read == [b"%d" % number for number in range(20)], read
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
asyncio.run(store.commit(maker.end({"k": b"end"})))
asyncio.run(store.close())
"""


def run(program: str, place: Place) -> None:
    """Run a program in an interpreter of its own."""
    subprocess.run([sys.executable, "-c", program, place.url, place.schema], check=True, cwd=ROOT)


def test_the_end_of_a_process_finishes_what_is_on_its_way(postgres: Place) -> None:
    """A process that ends without closing its store writes what was asked for."""
    run(LEFT_OPEN, postgres)
    assert postgres.ask("SELECT max(seq) FROM rehydrate.checkpoint") == [(1,)]


def test_a_forked_child_has_connections_of_its_own(postgres: Place) -> None:
    """Parent and child use one store object side by side, and neither hears an answer of the other's."""
    run(FORKED, postgres)
    keys = "SELECT run.run_id, max(c.seq) FROM rehydrate.checkpoint c JOIN rehydrate.run ON run.no = c.run GROUP BY 1"
    assert sorted(postgres.ask(keys)) == [(b"child", 20), (b"run", 21)]


def test_the_public_name_needs_no_driver() -> None:
    """Importing the package or the class loads no psycopg; making a store without it says what to install."""
    program = """
import sys
import rehydrate
assert rehydrate.PostgresCheckpointStorage is not None
assert "psycopg" not in sys.modules
sys.modules["psycopg"] = None
try:
    rehydrate.PostgresCheckpointStorage("postgresql://x/y")
except rehydrate.errors.StoreUnavailableError as error:
    assert str(error).endswith("Run: pip install 'rehydrate[postgres]'."), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_a_commit_that_waits_too_long_for_a_lock_is_given_up(postgres: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that holds a run's row and does nothing costs a bounded wait, and the error says where to look."""
    monkeypatch.setattr(session, "_LIMITS", "SELECT set_config('lock_timeout', '20ms', true)")

    async def main(connection: psycopg.Connection) -> None:
        async with postgres.store(clock=CLOCK, retry_waits=()) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            connection.execute(f"SELECT 1 FROM {postgres.schema}.run FOR UPDATE".encode())
            commit = maker.step({"k": b"v"})
            with pytest.raises(StoreUnavailableError, match="pg_locks"):
                await store.commit(commit)
            connection.rollback()
            await store.commit(commit)

    with psycopg.connect(postgres.url) as connection:
        asyncio.run(main(connection))


def test_a_lost_race_to_take_a_run_in_is_a_conflict(postgres: Place) -> None:
    """Who takes in a run that another transaction is making waits for it, and is told that the run is there."""

    async def main(connection: psycopg.Connection) -> None:
        async with postgres.store(clock=CLOCK, retry_waits=()) as store:
            maker = CommitMaker()
            for commit in (maker.claim({"k": b"v"}), maker.end()):
                await store.commit(commit)
            archive = await store.archive("run")
            assert archive is not None
            copied = f"INSERT INTO {postgres.schema}.run OVERRIDING SYSTEM VALUE SELECT * FROM held"
            connection.execute(f"CREATE TEMPORARY TABLE held AS SELECT * FROM {postgres.schema}.run".encode())
            connection.commit()
            assert await store.delete("run") is True
            connection.execute(copied.encode())
            waits = asyncio.ensure_future(store.adopt(archive))
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
            while not postgres.ask(waiting)[0][0]:
                assert not waits.done()
                await asyncio.sleep(0)
            connection.commit()
            with pytest.raises(CommitConflictError, match="no such run"):
                await waits

    with psycopg.connect(postgres.url) as connection:
        asyncio.run(main(connection))


def test_a_load_shows_one_moment(postgres: Place) -> None:
    """While another store commits, each load has the records of the one head that it shows."""

    async def write(store: PostgresCheckpointStorage) -> None:
        maker = CommitMaker()
        await store.commit(maker.claim({f"k{key}": b"0" for key in range(20)}))
        for number in range(100):
            await store.commit(maker.step({f"k{key}": b"%d" % number for key in range(20)}))

    async def main() -> int:
        async with postgres.store(clock=CLOCK) as store, postgres.store(clock=CLOCK) as other:
            writing = asyncio.ensure_future(write(other))
            loads = 0
            while not writing.done():
                stored = await store.load(Latest("run"))
                if stored is not None:
                    assert len(set(stored.records.values())) == 1
                    loads += 1
            await writing
            return loads

    assert asyncio.run(main()) > 1
