"""Watches: readers of a run in a SQLite file are woken by its commits, of this process and of others."""

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from rehydrate import CompressedCheckpointStorage, EncryptedCheckpointStorage, KeyRing, SqliteCheckpointStorage
from rehydrate.errors import StoreUnavailableError
from rehydrate.ports import CheckpointStorage, Watched, watched
from rehydrate.stores import sqlite, watches
from rehydrate.stores.sqlite_database import Database
from rehydrate.stores.watches import Watches
from rehydrate.stores.worker import Call
from rehydrate.testing.contract_events import telling
from rehydrate.testing.store_contract import CommitMaker
from tests.processes.followed import follow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not woken waits for longer than any test."""
    monkeypatch.setattr(sqlite, "_LONGEST", 1000.0)


async def settled(store: CheckpointStorage, run_id: str, after: int) -> None:
    """Wait until the run has an event behind a number; being woken for nothing is allowed."""
    assert isinstance(store, Watched)
    while not await store.events(run_id, after=after):
        await store.changed(run_id, after)


def test_a_reader_follows_a_run_of_another_process_to_the_end_of_its_turn(tmp_path: Path) -> None:
    """Each event is there before the other process may go on, and the reader ends with the turn."""
    path = tmp_path / "runs.db"
    assert follow(SqliteCheckpointStorage(path), str(path)) == ["a first", "b second", "c third"]


def test_only_those_are_woken_whose_run_has_changed(tmp_path: Path) -> None:
    """Of two that wait for different runs, a commit wakes its own; one that is behind already does not wait."""

    async def main() -> None:
        path = tmp_path / "runs.db"
        async with SqliteCheckpointStorage(path) as store, SqliteCheckpointStorage(path, keep_events=True) as other:
            makers = [CommitMaker("a"), CommitMaker("b")]
            for maker in makers:
                await other.commit(telling(maker.claim(), b"one", last=1))
                await store.changed(maker.run_id, 0)
            a, b = (asyncio.ensure_future(store.changed(maker.run_id, 1)) for maker in makers)
            await store.head("a")
            await other.commit(telling(makers[1].step(), b"two", last=2))
            await b
            await store.head("a")
            assert not a.done()
            await other.commit(telling(makers[0].end(), last=1))
            await a
            await store.changed("a", 1)
            await store.changed("nobody", 0)

    asyncio.run(main())


def test_closing_a_store_wakes_who_waits_in_it(tmp_path: Path) -> None:
    """Also where another object of the same file stays open; who waits in that one waits on."""

    async def main() -> None:
        path = tmp_path / "runs.db"
        async with SqliteCheckpointStorage(path, keep_events=True) as other:
            maker = CommitMaker()
            await other.commit(telling(maker.claim(), b"one", last=1))
            store = SqliteCheckpointStorage(path)
            waits, waits_on = (
                asyncio.ensure_future(store.changed("run", 1)),
                asyncio.ensure_future(settled(other, "run", 1)),
            )
            await store.head("run")
            await store.close()
            await waits
            assert not waits_on.done()
            await other.commit(telling(maker.step(), b"two", last=2))
            await waits_on

    asyncio.run(main())


def test_who_waits_is_told_that_the_file_is_gone(tmp_path: Path) -> None:
    """A file that was moved away is found out by looking, without a call."""

    async def main() -> None:
        path = tmp_path / "runs.db"
        async with SqliteCheckpointStorage(path) as store:
            await store.commit(telling(CommitMaker().claim(), last=0))
            waits = asyncio.ensure_future(store.changed("run", 0))
            await store.head("run")
            path.rename(tmp_path / "elsewhere.db")
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                await waits

    asyncio.run(main())


def test_a_store_around_the_store_wakes_its_readers(tmp_path: Path) -> None:
    """Under the name that it hides a run by."""
    keys = KeyRing({"first": b"k" * 32})

    async def main() -> None:
        path = tmp_path / "runs.db"
        async with SqliteCheckpointStorage(path) as inner, SqliteCheckpointStorage(path, keep_events=True) as other:
            store, writes = (
                CompressedCheckpointStorage(EncryptedCheckpointStorage(one, keys)) for one in (inner, other)
            )
            assert watched(store) is store
            maker = CommitMaker()
            await writes.commit(telling(maker.claim(), b"one", last=1))
            waits = asyncio.ensure_future(settled(store, "run", 1))
            await store.head("run")
            await writes.commit(telling(maker.step(), b"two", last=2))
            await waits

    asyncio.run(main())


def test_nothing_is_looked_at_while_nobody_waits() -> None:
    """The thread waits as long as it likes before there is a watch and when the last has been given up."""
    asked: list[bool] = []

    def version() -> None:
        asked.append(True)

    async def main() -> None:
        kept: Watches[Call[Database]] = Watches(version)
        assert kept.due(wrote=True) == []
        assert (kept.seconds(), asked) == (None, [])
        looking: Call[Database] = Call(lambda place: False, writes=False, size=0, watches=True)
        looking.result = False
        kept.settle([looking])
        assert kept.seconds() == 0.0
        assert (kept.due(wrote=False), asked) == ([], [True])
        assert 0.0 < (kept.seconds() or 0.0) <= 0.05
        looking.future.cancel()
        assert kept.due(wrote=True) == []
        assert kept.seconds() is None

    asyncio.run(main())


class Compared(Call[Database]):
    """A call that must not be compared with others."""

    __slots__ = ()
    __hash__ = Call.__hash__

    def __eq__(self, other: object) -> bool:
        raise AssertionError("thousands of watches would be compared with one another")


def test_each_watch_is_settled_by_itself() -> None:
    """Those that found something are answered, those that found nothing are kept, and none is looked for in a list."""

    async def main() -> None:
        kept: Watches[Call[Database]] = Watches(lambda: None)
        calls = [Compared(lambda place: False, writes=False, size=0, watches=True) for _ in range(6)]
        for number, call in enumerate(calls):
            call.result = number % 2 == 0
        kept.settle(calls)
        assert [await call.future for call in calls[::2]] == [True, True, True]
        assert [id(call) for call in kept.due(wrote=True)] == [id(call) for call in calls[1::2]]

    asyncio.run(main())


def test_a_process_that_writes_all_the_time_asks_its_watches_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first write asks at once; what is written within the next 50 ms is asked for together, at their end."""
    now, asked = 1000.0, list[float]()
    monkeypatch.setattr(watches, "time", SimpleNamespace(monotonic=lambda: now))

    async def main() -> None:
        nonlocal now
        kept: Watches[Call[Database]] = Watches(lambda: None)
        looking: Call[Database] = Call(lambda place: False, writes=False, size=0, watches=True)
        looking.result = False
        kept.settle([looking])
        for wrote in (False, *[True] * 12, False, False, False, True):
            if due := kept.due(wrote=wrote):
                asked.append(round((now - 1000) * 1000))
                kept.settle(due)
            assert 0.0 <= (kept.seconds() or 0.0) <= watches.EVERY
            now += 0.01
        assert asked == [10, 60, 110, 160]

    asyncio.run(main())


def test_who_waits_is_told_why_its_file_cannot_be_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the system while it is asked for changes ends no thread: the next call finds the store as it was."""

    async def main() -> None:
        path = tmp_path / "runs.db"
        async with SqliteCheckpointStorage(path) as store:
            await store.commit(telling(CommitMaker().claim(), last=0))
            with monkeypatch.context() as patched:
                waits = asyncio.ensure_future(store.changed("run", 0))
                await store.head("run")
                patched.setattr(Database, "_current", _no_descriptor_left)
                with pytest.raises((StoreUnavailableError, OSError), match="Too many open files"):
                    await waits
            assert await store.head("run") is not None

    asyncio.run(main())


def _no_descriptor_left(database: Database) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
