"""Watchers: readers of a run that another process drives are woken by its commits."""

import asyncio
import threading
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage, CompressedCheckpointStorage, EncryptedCheckpointStorage, KeyRing
from rehydrate.errors import StoreClosedError, StoreUnavailableError, WrongCallError
from rehydrate.ports import Watched, watched
from rehydrate.stores.postgres import listening
from rehydrate.testing.contract_events import telling
from rehydrate.testing.store_contract import CommitMaker
from tests.postgres.relays import Proxy
from tests.postgres.server import Place
from tests.processes.followed import follow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not woken waits for longer than any test."""
    monkeypatch.setattr(listening, "_LONGEST", 1000.0)


def test_a_reader_follows_a_run_of_another_process_to_the_end_of_its_turn(postgres: Place) -> None:
    """Each event is there before the other process may go on, and the reader ends with the turn."""
    store = postgres.store(listen_url=postgres.url)
    assert follow(store, postgres.url, postgres.schema) == ["a first", "b second", "c third"]


def test_only_those_are_woken_whose_run_has_changed(postgres: Place) -> None:
    """Of two that wait for different runs, a commit wakes its own; one that is behind already does not wait."""

    async def main() -> None:
        async with (
            postgres.store(listen_url=postgres.url) as store,
            postgres.store(keep_events=True) as other,
        ):
            assert isinstance(store, Watched)
            makers = [CommitMaker("a"), CommitMaker("b")]
            for maker in makers:
                await other.commit(telling(maker.claim(), b"one", last=1))
                await store.changed(maker.run_id, 0)
            a, b = (asyncio.ensure_future(settled(store, maker.run_id, 1)) for maker in makers)
            await other.commit(telling(makers[1].step(), b"two", last=2))
            await b
            assert not a.done()
            await other.commit(telling(makers[0].step(), b"two", last=2))
            await a
            await other.commit(telling(makers[0].end(), last=2))
            await store.changed("a", 2)
            await store.changed("nobody", 0)

    asyncio.run(main())


async def settled(store: Watched, run_id: str, after: int) -> None:
    """Wait until the run has an event behind a number; being woken for nothing is allowed."""
    while not await store.events(run_id, after=after):
        await store.changed(run_id, after)


def test_a_lost_connection_of_the_listener_wakes_all_when_it_is_back(postgres: Place, far: Place, proxy: Proxy) -> None:
    """What was told while nobody heard is found by looking again."""

    async def main() -> None:
        async with (
            postgres.store(listen_url=far.url, retry_waits=(0.0,)) as store,
            postgres.store(keep_events=True) as other,
        ):
            maker = CommitMaker("a")
            await other.commit(telling(maker.claim(), b"one", last=1))
            # The first is woken when the connection is there.
            await store.changed("a", 1)
            waits = asyncio.ensure_future(store.changed("a", 1))
            await asyncio.sleep(0)
            # Behind the look at the head that it begins with.
            await store.head("a")
            proxy.refuse()
            proxy.cut()
            await other.commit(telling(maker.step(), b"two", last=2))
            assert not waits.done()
            proxy.accept()
            await waits
            await settled(store, "a", 1)

    asyncio.run(main())


def test_a_listener_that_cannot_log_in_says_so(postgres: Place) -> None:
    """A listen_url that leads nowhere is an error of the first that wants to be woken, and nothing else suffers."""

    async def main() -> None:
        async with (
            postgres.store(listen_url=f"{postgres.url}&dbname=nowhere", retry_waits=(0.0,)) as store,
            postgres.store(keep_events=True) as other,
        ):
            await other.commit(telling(CommitMaker().claim(), b"one", last=1))
            for _ in range(2):
                with pytest.raises(StoreUnavailableError, match="does not exist"):
                    await store.changed("run", 1)
            assert await store.head("run") is not None

    asyncio.run(main())


def test_a_store_without_a_listener_wakes_nobody(postgres: Place) -> None:
    """It says so, and a reader ends with what is stored."""

    async def main() -> None:
        async with postgres.store() as store:
            assert store.wakes is False
            with pytest.raises(WrongCallError, match="listen_url"):
                await store.changed("run", 0)

    asyncio.run(main())


def test_the_thread_of_a_listener_ends_with_its_store(postgres: Place) -> None:
    """Closing ends it, and wakes who still waits."""

    def listeners() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("rehydrate listens")]

    async def main() -> None:
        store = postgres.store(listen_url=postgres.url, keep_events=True)
        await store.commit(telling(CommitMaker().claim(), b"one", last=1))
        await store.changed("run", 1)
        waits = asyncio.ensure_future(store.changed("run", 1))
        await asyncio.sleep(0)
        (thread,) = listeners()
        await store.close()
        await waits
        await asyncio.to_thread(thread.join, 10)
        assert listeners() == []

    asyncio.run(main())


def test_a_closed_store_begins_to_listen_to_nothing(postgres: Place) -> None:
    """To wait for changes of a store that is closed is refused, and no thread is started for it."""

    async def main() -> None:
        store = postgres.store(listen_url=postgres.url)
        await store.close()
        with pytest.raises(StoreClosedError):
            await store.changed("run", 0)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("rehydrate listens")]

    asyncio.run(main())


@pytest.mark.parametrize("around", ["encrypted", "compressed", "both"])
def test_a_store_around_the_store_wakes_its_readers(postgres: Place, around: str) -> None:
    """Under the name that it hides a run by, or as it is."""
    keys = KeyRing({"first": b"k" * 32})

    def outside(store: CheckpointStorage) -> CheckpointStorage:
        if around != "compressed":
            store = EncryptedCheckpointStorage(store, keys)
        return store if around == "encrypted" else CompressedCheckpointStorage(store)

    async def main() -> None:
        async with postgres.store(listen_url=postgres.url) as inner, postgres.store(keep_events=True) as other:
            assert watched(outside(other)) is None
            store, writes = outside(inner), outside(other)
            assert watched(store) is store
            maker = CommitMaker()
            await writes.commit(telling(maker.claim(), b"one", last=1))
            await store.changed("run", 1)
            waits = asyncio.ensure_future(settled(store, "run", 1))
            await asyncio.sleep(0)
            await writes.commit(telling(maker.step(), b"two", last=2))
            await waits

    asyncio.run(main())
