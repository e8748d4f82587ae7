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


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("rehydrate ")]


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
    path = tmp_path / "runs.db"
    (tmp_path / "link").symlink_to(tmp_path)

    async def main() -> None:
        stores = [SqliteCheckpointStorage(place) for place in (path, str(path), tmp_path / "link" / "runs.db")]
        for store in stores:
            assert await store.head("run") is None
        assert len(threads()) == 1
        await stores[0].close()
        await stores[1].close()
        assert await stores[2].head("run") is None
        other = SqliteCheckpointStorage(tmp_path / "other.db")
        await other.head("run")
        assert len(threads()) == 2
        await other.close()
        await stores[2].close()

    asyncio.run(main())
    for thread in threads():
        thread.join(5)
    assert threads() == []
    assert not (tmp_path / "runs.db-wal").exists()


def test_a_store_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    """A store object that nobody closed frees file and thread when it is collected."""

    async def main() -> None:
        await SqliteCheckpointStorage(tmp_path / "runs.db", clock=CLOCK).commit(CommitMaker().claim())

    asyncio.run(main())
    gc.collect()
    for thread in threads():
        thread.join(5)
    assert threads() == []
    assert not (tmp_path / "runs.db-wal").exists()
    assert list((tmp_path / "runs.db.owners").glob("*.owner")) == []


def test_closing_and_opening_at_once_loses_nothing(tmp_path: Path) -> None:
    """Stores of one file that are opened while others close find everything, fifty times in a row."""
    path, maker = tmp_path / "runs.db", CommitMaker()

    async def main() -> None:
        store = SqliteCheckpointStorage(path, clock=CLOCK)
        await store.commit(maker.claim())
        for number in range(50):
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
    assert stored.records == {"k": b"49"}


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
