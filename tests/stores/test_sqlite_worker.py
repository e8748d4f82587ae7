"""The thread behind the SQLite store: one per file, one transaction for many commits, gone when nobody needs it."""

import asyncio
import gc
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rehydrate.model.checkpoint import Latest
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import CLOCK, use


def threads(*names: str) -> list[threading.Thread]:
    """Return the living threads of files of these names."""
    wanted = {f"rehydrate {name}" for name in names}
    return [thread for thread in threading.enumerate() if thread.name in wanted]


def end(*names: str) -> None:
    """Wait until these threads, which were told to end, have ended."""
    for thread in threads(*names):
        thread.join(5)
    assert threads(*names) == []


def transactions(wal: Path) -> int:
    """Count the commits in a WAL that was not started over: frames that carry the size of the database."""
    data = wal.read_bytes()
    page = struct.unpack(">I", data[8:12])[0]
    salt = data[16:24]
    frames = [data[place : place + 24] for place in range(32, len(data), 24 + page)]
    return sum(1 for frame in frames if frame[8:16] == salt and frame[4:8] != b"\0\0\0\0")


def test_waiting_commits_share_a_transaction(tmp_path: Path) -> None:
    """A hundred runs that commit at the same moment take a few transactions, one of them refused alone."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            makers = [CommitMaker(f"r{number}") for number in range(100)]
            await asyncio.gather(*(store.commit(maker.claim()) for maker in makers))
            before = transactions(tmp_path / "runs.db-wal")
            makers[7].head = "stale"
            results = await asyncio.gather(
                *(store.commit(maker.step({"k": b"v"})) for maker in makers), return_exceptions=True
            )
            assert [number for number, result in enumerate(results) if result is not None] == [7]
            # The first may be on its way before the others are there.
            assert 1 <= transactions(tmp_path / "runs.db-wal") - before <= 5

    asyncio.run(main())


def test_store_objects_of_a_file_share_a_thread(tmp_path: Path) -> None:
    """However many store objects there are for a file, and by whatever path, one thread serves them."""
    path = tmp_path / "shared.db"
    (tmp_path / "link").symlink_to(tmp_path)

    async def main() -> None:
        stores = [SqliteCheckpointStorage(place) for place in (path, str(path), tmp_path / "link" / "shared.db")]
        for store in stores:
            assert await store.head("run") is None
        assert len(threads("shared.db", "other.db")) == 1
        await stores[0].close()
        await stores[1].close()
        assert await stores[2].head("run") is None
        other = SqliteCheckpointStorage(tmp_path / "other.db")
        await other.head("run")
        assert len(threads("shared.db", "other.db")) == 2
        await other.close()
        await stores[2].close()

    asyncio.run(main())
    end("shared.db", "other.db")
    assert not (tmp_path / "shared.db-wal").exists()


def test_a_store_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    """A store object that nobody closed frees file and thread when it is collected."""

    async def main() -> None:
        await SqliteCheckpointStorage(tmp_path / "dropped.db", clock=CLOCK).commit(CommitMaker().claim())

    asyncio.run(main())
    gc.collect()
    end("dropped.db")
    assert not (tmp_path / "dropped.db-wal").exists()
    assert list((tmp_path / "dropped.db.owners").glob("*.owner")) == []


def test_closing_and_opening_at_once_loses_nothing(tmp_path: Path) -> None:
    """Stores of one file that are opened while others close find everything, twenty times in a row."""
    path, maker = tmp_path / "runs.db", CommitMaker()

    async def main() -> None:
        store = SqliteCheckpointStorage(path, clock=CLOCK)
        await store.commit(maker.claim())
        for number in range(20):
            closing, store = asyncio.ensure_future(store.close()), SqliteCheckpointStorage(path, clock=CLOCK)
            await store.commit(maker.step({"k": b"%d" % number}))
            head = await store.head("run")
            assert head is not None
            assert head.alive
            await closing
        await store.close()

    asyncio.run(main())
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert stored.records == {"k": b"19"}


LEFT_OPEN = """
import asyncio, sys
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

store, maker = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock()), CommitMaker()

async def main():
    await store.commit(maker.claim())
    task = asyncio.ensure_future(store.commit(maker.step({"k": b"on its way"})))
    await asyncio.sleep(0)
    task.cancel()

asyncio.run(main())
"""


def test_the_end_of_a_process_finishes_what_is_on_its_way(tmp_path: Path) -> None:
    """A process that ends without closing its store writes what was asked for and leaves no owner and no WAL."""
    path = tmp_path / "runs.db"
    subprocess.run([sys.executable, "-c", LEFT_OPEN, str(path)], check=True)
    assert not (tmp_path / "runs.db-wal").exists()
    assert list((tmp_path / "runs.db.owners").glob("*.owner")) == []
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert (stored.records, stored.head.alive) == ({"k": b"on its way"}, False)


FORKED = """
import asyncio, os, sys
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

store = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock())
asyncio.run(store.commit(CommitMaker().claim({"k": b"v"})))
to_parent, to_child = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    maker = CommitMaker("child", owner="child")
    asyncio.run(store.commit(maker.claim({"k": b"first"})))
    os.write(to_parent[1], b"x")
    os.read(to_child[0], 1)
    asyncio.run(store.commit(maker.step({"k": b"second"})))
    os._exit(0)
os.read(to_parent[0], 1)
asyncio.run(store.close())
os.write(to_child[1], b"x")
os.waitpid(child, 0)
"""


def test_a_parent_that_closes_takes_nothing_from_its_child(tmp_path: Path) -> None:
    """A parent that closes its connection counts a forked child's as another one and leaves the WAL to it."""
    path = tmp_path / "runs.db"
    subprocess.run([sys.executable, "-c", FORKED, str(path)], check=True)
    stored = use(path, lambda store: store.load(Latest("child")))
    assert stored is not None
    assert (stored.header.seq, stored.records) == (1, {"k": b"second"})


def test_an_error_in_a_call_reaches_its_caller(tmp_path: Path) -> None:
    """A clock that raises fails the call that read it, not the thread and not the calls beside it."""

    class BrokenClock:
        def time(self) -> float:
            raise OSError("no time")

    async def main() -> None:
        broken = SqliteCheckpointStorage(tmp_path / "runs.db", clock=BrokenClock())
        store = SqliteCheckpointStorage(tmp_path / "runs.db", clock=CLOCK)
        results = await asyncio.gather(
            store.commit(CommitMaker("a").claim()),
            broken.commit(CommitMaker("b").claim()),
            store.commit(CommitMaker("c").claim()),
            return_exceptions=True,
        )
        assert [str(result) for result in results] == ["None", "no time", "None"]
        assert [header.run_id for header in await store.runs()] == ["a", "c"]
        with pytest.raises(OSError, match="no time"):
            await broken.head("a")
        await broken.close()
        await store.close()

    asyncio.run(main())


def test_a_thread_that_could_not_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without room for a thread is an error of the calls that it was needed for, and of no later one."""

    async def main() -> None:
        store = SqliteCheckpointStorage(tmp_path / "runs.db", clock=CLOCK)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_room)
            for _ in range(2):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    await asyncio.wait_for(store.head("run"), 5)
        assert await store.head("run") is None
        await store.close()

    asyncio.run(main())


def no_room(thread: threading.Thread) -> None:
    """Fail as the start of a thread does where the system has no room for one."""
    raise RuntimeError("can't start new thread")
