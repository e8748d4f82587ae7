"""Errors under a SQLite store: a store that could not read or write stops, and space that was freed is given back."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate.errors import StoreReadOnlyError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import CLOCK, ask, change, fill, use

#: No byte can be written to any file while the limit stands: a write error of the file system, not a full disk.
BROKEN = """
import asyncio, resource, signal, sys
from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def told(call):
    try:
        return await call
    except RehydrateError as error:
        return type(error).__name__

async def main():
    maker, driver = CommitMaker(), sys.argv[2]
    store = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock(), driver=driver)
    beside = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock(), driver=driver)
    await store.commit(maker.claim({"k": b"kept"}))
    await beside.head("run")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    print(await told(store.commit(maker.copy(owner="owner", tag="lost").step({"k": b"lost"}))))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(await told(store.commit(maker.copy(owner="owner", tag="late").step({"k": b"late"}))))
    print(await told(store.load(Latest("run"))), await told(beside.head("run")))
    again = SqliteCheckpointStorage(sys.argv[1], clock=ManualClock(), driver=driver)
    print((await again.load(Latest("run"))).records)
    await again.commit(maker.step({"l": b"after"}))
    print(await told(store.head("run")))
    for one in (store, beside, again):
        await one.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_a_store_that_could_not_write_is_broken_until_it_is_opened_again(tmp_path: Path, driver: str) -> None:
    """After a write error every call on the file fails, also once writing would work; a new store object goes on."""
    path = tmp_path / "runs.db"
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(path), driver], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "StoreBrokenError",
        "StoreBrokenError",
        "StoreBrokenError StoreBrokenError",
        "{'k': b'kept'}",
        "StoreBrokenError",
    ]
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert stored.records == {"k": b"kept", "l": b"after"}
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A database that is set to be only read is an error of its own, and can still be read."""
    path = tmp_path / "runs.db"
    maker = fill(path)

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            assert await store.head("run") is not None
            worker = store._joined()
            await worker.call(lambda database: database.execute("PRAGMA query_only = ON"), alone=True)
            with pytest.raises(StoreReadOnlyError, match="Make the file and its folder writable"):
                await store.commit(maker.claim())
            assert await store.head("run") is not None

    asyncio.run(main())


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_vacuum_gives_space_back(tmp_path: Path, driver: str) -> None:
    """After deleting and forgetting, the file is as small as what is left, and the runs in it are as they were."""
    path = tmp_path / "runs.db"

    async def main() -> int:
        async with SqliteCheckpointStorage(path, clock=CLOCK, driver=driver) as store:
            maker, other = CommitMaker(), CommitMaker("other")
            await store.commit(maker.claim({"k": b"v" * 3_000_000}))
            await store.commit(other.claim({"k": b"first" * 600_000}))
            await store.commit(other.step({"k": b"kept"}))
            await store.commit(maker.end())
            assert await store.delete("run") is True
            assert await store.forget("other", [0]) == [0]
            await store.vacuum()
            size = path.stat().st_size
            loaded = await store.load(Latest("other"))
            assert loaded is not None
            assert loaded.records == {"k": b"kept"}
            await store.commit(other.step({"l": b"after"}))
            return size

    assert asyncio.run(main()) < 200_000
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


def test_vacuum_runs_beside_commits_of_others(tmp_path: Path) -> None:
    """Commits and reads that wait together with a vacuum are done as ever."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            makers = [CommitMaker(f"r{number}") for number in range(20)]
            await asyncio.gather(*(store.commit(maker.claim({"k": b"1"})) for maker in makers))
            calls = [store.commit(maker.step({"k": b"2"})) for maker in makers]
            results = await asyncio.gather(*calls[:10], store.vacuum(), *calls[10:], store.head("r3"))
            assert results[-1].header.seq == 1
            assert [header.seq for header in await store.runs()] == [1] * 20

    asyncio.run(main())
    assert change(path, "UPDATE rehydrate_run SET seq = seq WHERE run_id = 'r3'") == 1
