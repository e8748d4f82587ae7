"""The drivers of SQLite: one store, whichever copy of SQLite is underneath."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from rehydrate.errors import CheckpointCorruptError, StoreUnavailableError, WrongCallError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.stores.sqlite_driver import connect
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import CLOCK, ask, change, fill

OTHER_PROCESS = """
import asyncio, sys
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

async def main():
    async with SqliteCheckpointStorage(sys.argv[1], clock=ManualClock(), driver=sys.argv[2]) as store:
        print(sorted(h.run_id for h in await store.runs()))
        for number in range(20):
            maker = CommitMaker(f"{sys.argv[2]} {number}")
            await store.commit(maker.claim({"k": b"v"}))

asyncio.run(main())
"""


def elsewhere(path: Path, driver: str) -> str:
    """Write twenty runs in another process and return what it found before."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, str(path), driver], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout


def test_apsw_brings_a_sqlite_without_the_fault_of_older_ones() -> None:
    """The lowest version of the extra has the first SQLite in which a checkpoint cannot corrupt a WAL file."""
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_processes_with_different_drivers_share_a_file(tmp_path: Path) -> None:
    """What one process writes with its driver, another one reads and goes on with by the other."""
    path = tmp_path / "runs.db"
    assert elsewhere(path, "apsw") == "[]\n"
    assert elsewhere(path, "sqlite3") == f"{sorted(f'apsw {number}' for number in range(20))}\n"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK, driver="apsw") as store:
            assert len(await store.runs()) == 40
            stored = await store.load(Latest("sqlite3 7"))
            assert stored is not None
            assert stored.records == {"k": b"v"}

    asyncio.run(main())
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


def test_one_process_has_one_driver_for_a_file(tmp_path: Path) -> None:
    """A second copy of SQLite in the process would take the locks of the first away, so it is refused."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK, driver="apsw") as store:
            await store.commit(CommitMaker().claim())
            second = SqliteCheckpointStorage(path, clock=CLOCK)
            with pytest.raises(WrongCallError, match="in use in this process with driver='apsw'"):
                await second.head("run")
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            assert await store.head("run") is not None

    asyncio.run(main())


def test_an_unknown_driver_is_refused(tmp_path: Path) -> None:
    """A name that is no driver is refused where it is given, with the names that there are."""
    with pytest.raises(WrongCallError, match="Use one of 'sqlite3', 'apsw'"):
        SqliteCheckpointStorage(tmp_path / "runs.db", driver="pysqlite")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "apsw", None)
    with pytest.raises(WrongCallError, match=r"pip install 'rehydrate\[apsw\]'"):
        SqliteCheckpointStorage(tmp_path / "runs.db", driver="apsw")


@pytest.mark.parametrize(
    ("statement", "kind", "code"),
    [
        ("INSERT INTO t VALUES (1)", sqlite3.IntegrityError, 1555),
        ("SELECT * FROM nowhere", sqlite3.OperationalError, 1),
        ("SELECT", sqlite3.OperationalError, 1),
    ],
)
def test_errors_of_apsw_are_those_of_sqlite3(tmp_path: Path, statement: str, kind: type[Exception], code: int) -> None:
    """Whatever the driver, an error has the same class, the same code, and a text that names what was wrong."""
    found = []
    for driver in ("sqlite3", "apsw"):
        with closing(connect(str(tmp_path / driver), "rwc", driver)) as connection:
            connection.execute(
                "CREATE TABLE t (x PRIMARY KEY, y INTEGER)" if code == 1 else "CREATE TABLE t (x INTEGER PRIMARY KEY)"
            )
            connection.execute("INSERT INTO t VALUES (1, 2)" if code == 1 else "INSERT INTO t VALUES (1)")
            with pytest.raises(kind) as caught:
                connection.execute(statement)
        found.append((type(caught.value), caught.value.sqlite_errorcode, str(caught.value)))
    assert found[0] == found[1]
    assert found[0][:2] == (kind, code)


def test_a_file_that_is_no_database_is_told_as_it_is(tmp_path: Path) -> None:
    """A file of something else, a damaged page and a lock of another program are the same errors as with `sqlite3`."""
    path = tmp_path / "text.db"
    path.write_text("no database " * 100)

    async def use(call) -> object:
        async with SqliteCheckpointStorage(path, clock=CLOCK, driver="apsw") as store:
            return await call(store)

    with pytest.raises(StoreUnavailableError, match="the file is no SQLite database"):
        asyncio.run(use(lambda store: store.head("run")))
    path = tmp_path / "runs.db"
    fill(path)
    change(path, "UPDATE rehydrate_record SET data = 'text' WHERE key = 'a'")
    with pytest.raises(CheckpointCorruptError, match="a record is not bytes"):
        asyncio.run(use(lambda store: store.load(Latest("run"))))
    make = partial(SqliteCheckpointStorage, path, clock=CLOCK, driver="apsw")
    assert make().keeps_events is False
