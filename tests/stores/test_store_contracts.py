"""Every store of the package passes the public contract."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from rehydrate.ports import CheckpointStorage
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.contract_events import EVENT_CHECKS
from rehydrate.testing.contract_processes import of_two_processes_one_wins
from rehydrate.testing.contract_races import of_two_tasks_one_wins, of_two_threads_one_wins
from rehydrate.testing.store_contract import LocalStoreContract, MakeStore, StoreContract


class TestMemoryStore(StoreContract):
    """The contract over the memory store."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        return InMemoryCheckpointStorage


class TestSqliteStore(LocalStoreContract):
    """The contract over the SQLite store, with other processes on the same file."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SqliteCheckpointStorage, tmp_path / "runs.db")


class TestSqliteStoreOnApsw(LocalStoreContract):
    """The contract over the SQLite store with the driver that brings a SQLite of its own."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SqliteCheckpointStorage, tmp_path / "runs.db", driver="apsw")


@pytest.mark.parametrize("check", EVENT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_that_is_told_to_keeps_events(tmp_path: Path, kind: str, check) -> None:
    """The contract's part on events, over both stores with `keep_events=True`."""
    kept = {"keep_events": True}
    make = InMemoryCheckpointStorage if kind == "memory" else partial(SqliteCheckpointStorage, tmp_path / "runs.db")
    assert make(**kept).keeps_events
    asyncio.run(check(partial(make, **kept)))


@pytest.mark.proof
@pytest.mark.parametrize("check", [of_two_tasks_one_wins, of_two_threads_one_wins, of_two_processes_one_wins])
def test_one_of_two_wins_two_thousand_times(tmp_path: Path, check) -> None:
    """The long form of the races: exactly one commit is taken each time."""
    asyncio.run(check(partial(SqliteCheckpointStorage, tmp_path / "runs.db"), rounds=2000))


def test_the_stores_fit_the_protocol(tmp_path: Path) -> None:
    """Both stores have every call of the protocol."""
    assert isinstance(InMemoryCheckpointStorage(), CheckpointStorage)
    assert isinstance(SqliteCheckpointStorage(tmp_path / "runs.db"), CheckpointStorage)
