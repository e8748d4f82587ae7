"""How the SQLite store deals with its file: where it lies, who else holds it, and what cannot be written."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from rehydrate.errors import StoreFullError, StoreUnavailableError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores import file_lock, sqlite_database, sqlite_driver
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import CLOCK, ask, fill, use


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store made with a relative path keeps its file when the process changes its folder."""
    monkeypatch.chdir(tmp_path)
    store = SqliteCheckpointStorage("runs.db", clock=CLOCK)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    async def main() -> None:
        await store.commit(CommitMaker().claim())
        await store.close()

    asyncio.run(main())
    assert (tmp_path / "runs.db").exists()


def test_commits_are_durable_and_in_wal_mode(tmp_path: Path) -> None:
    """The file is in WAL mode, and the store's own connection waits for the disk at every commit."""
    path = tmp_path / "runs.db"
    fill(path)
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    database = sqlite_database.Database(str(path))
    assert database.execute("PRAGMA synchronous").fetchone() == (2,)
    database.close()


def test_a_program_that_locks_the_file_is_waited_for_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign program that keeps the file locked makes a commit fail after a while; then it works again."""
    monkeypatch.setattr(sqlite_driver, "BUSY_SECONDS", 0.05)
    path, maker = tmp_path / "runs.db", CommitMaker()

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim())
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                lost = maker.copy(owner="owner", tag="lost")
                with pytest.raises(StoreUnavailableError, match="Close the other program"):
                    await store.commit(lost.step())
                assert await store.head("run") is not None
            await store.commit(maker.step())

    asyncio.run(main())


def test_a_process_that_stays_in_a_write_is_waited_for_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the write lock does not come free in time, a commit says so and names the lock file; reads go on."""
    monkeypatch.setattr(file_lock, "PATIENCE", 0.05)
    path, maker = tmp_path / "runs.db", CommitMaker()

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim())
            holder = file_lock.FileLock(Path(f"{path}.owners"), "a store")
            with holder.hold():
                lost = maker.copy(owner="owner", tag="lost")
                with pytest.raises(StoreUnavailableError, match=r"write\.lock"):
                    await store.commit(lost.step())
                assert await store.head("run") is not None
            await store.commit(maker.step())
            holder.close()

    asyncio.run(main())


def test_a_full_disk_fails_the_commit_and_leaves_the_store_usable(tmp_path: Path) -> None:
    """A commit that there is no room for fails with all that shared its transaction; what fits goes on."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            maker = CommitMaker()
            await store.commit(maker.claim({"k": b"kept"}))
            worker = store._joined()
            pages = (await worker.call(lambda db: db.execute("PRAGMA page_count").fetchone()))[0]
            await worker.call(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 10}").fetchone())
            big, other = maker.copy(owner="owner", tag="big"), CommitMaker("other")
            # The store's thread is kept until both are queued, so that they share a transaction.
            entered, queued = threading.Event(), threading.Event()
            kept = worker.call(lambda db: entered.set() or queued.wait(60))
            await asyncio.to_thread(entered.wait)
            both = [store.commit(big.step({"big": b"x" * 4_000_000})), store.commit(other.claim())]
            commits = [asyncio.create_task(commit) for commit in both]
            await asyncio.sleep(0)
            queued.set()
            await kept
            results = await asyncio.gather(*commits, return_exceptions=True)
            assert [type(result) for result in results] == [StoreFullError, StoreFullError]
            assert "Free space on the disk" in str(results[0])
            await store.commit(maker.step({"l": b"after"}))
            stored = await store.load(Latest("run"))
            assert stored is not None
            assert stored.records == {"k": b"kept", "l": b"after"}
            assert await store.head("other") is None

    asyncio.run(main())


def suffixes(folder: Path) -> list[str]:
    return sorted(entry.suffix for entry in folder.iterdir())


def test_ids_are_never_paths(tmp_path: Path) -> None:
    """Owner ids that look like paths make lock files with other names, all in the store's own folder."""
    path = tmp_path / "deep" / "runs.db"
    path.parent.mkdir()
    folder = Path(f"{path}.owners")

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            for number, owner in enumerate(("../escaped", "/tmp/escaped", "a/b")):
                await store.commit(CommitMaker(f"r{number}", owner=owner).claim())
            assert suffixes(folder) == [".lock", ".lock", ".owner", ".owner", ".owner"]

    asyncio.run(main())
    assert {str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*")} == {
        "deep",
        "deep/runs.db",
        "deep/runs.db.owners",
        "deep/runs.db.owners/gate.lock",
        "deep/runs.db.owners/write.lock",
    }


KILLED = """
import asyncio, os, sys
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

async def main():
    store, maker = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    while True:
        await store.commit(maker.step({"k": b"%d" % (maker.seq + 1)}))
        os.write(1, b"%d\\n" % maker.seq)

asyncio.run(main())
"""


def test_an_acknowledged_commit_survives_a_kill(tmp_path: Path) -> None:
    """After SIGKILL in the middle of commits, the head is the last acknowledged commit or one that followed it."""
    path = tmp_path / "runs.db"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(100)]
        process.kill()
        lines += process.stdout.readlines()
    acknowledged = int(lines[-1])
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert stored.header.seq in (acknowledged, acknowledged + 1)
    assert stored.records == {"k": b"%d" % stored.header.seq}
    assert not stored.head.alive


def test_a_path_in_bytes_or_as_an_object_is_the_same_file(tmp_path: Path) -> None:
    """Text, `Path` and a link lead to one file, and so to one thread."""
    path, link = tmp_path / "runs.db", tmp_path / "link.db"
    link.symlink_to(path)
    fill(path)
    assert use(link, lambda store: store.head("run")) == use(path, lambda store: store.head("run"))
    assert not Path(f"{link}.owners").exists()
    assert os.fspath(path) != os.fspath(link)
