"""Every store with encryption or compression around it passes the public contract."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from rehydrate.testing.store_contract import CHECKS, LocalStoreContract, MakeStore, StoreContract
from tests.encryption.kit import compressed, encrypted, encrypted_in_memory


class TestEncryptedInMemory(StoreContract):
    """The contract over the memory store with encryption around it."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        return encrypted_in_memory


@pytest.mark.proof
class TestEncryptedSqlite(LocalStoreContract):
    """The contract over the SQLite store with encryption alone around it."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(encrypted, tmp_path / "runs.db")


@pytest.mark.proof
class TestCompressedSqlite(LocalStoreContract):
    """The contract over the SQLite store with both around it, with other processes on the same file."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(compressed, tmp_path / "runs.db")


@pytest.mark.parametrize("check", CHECKS[::3], ids=lambda check: check.__name__)
def test_some_of_the_contract_holds_in_a_file(tmp_path: Path, check) -> None:
    """Every third check, over the SQLite store with both around it."""
    asyncio.run(check(partial(compressed, tmp_path / "runs.db")))
