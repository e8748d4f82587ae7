"""Every store of the package passes the public contract."""

from functools import partial
from pathlib import Path

import pytest

from rehydrate.ports import CheckpointStorage
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.stores.sqlite import SqliteCheckpointStorage
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


def test_the_stores_fit_the_protocol(tmp_path: Path) -> None:
    """Both stores have every call of the protocol."""
    assert isinstance(InMemoryCheckpointStorage(), CheckpointStorage)
    assert isinstance(SqliteCheckpointStorage(tmp_path / "runs.db"), CheckpointStorage)
