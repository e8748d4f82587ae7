"""Every store of the package passes the public contract."""

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest

from rehydrate.ports import CheckpointStorage
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.contract_damage import (
    flipped_bits_are_reported,
    swapped_pieces_make_no_other_run,
    truncations_are_reported,
)
from rehydrate.testing.contract_events import EVENT_CHECKS
from rehydrate.testing.contract_processes import of_two_processes_one_goes_on, of_two_processes_one_wins
from rehydrate.testing.contract_races import (
    of_two_tasks_one_wins,
    of_two_threads_one_goes_on,
    of_two_threads_one_wins,
)
from rehydrate.testing.store_contract import (
    CHECKS,
    DamageContract,
    LocalStoreContract,
    MakeStore,
    SharedStoreContract,
    StoreContract,
    StoredBytes,
)
from tests.postgres.server import Place
from tests.postgres.stored import StoredColumns
from tests.stores.pieces import StoredFields, StoredFiles
from tests.stores.raw_files import quick_folder

#: What makes a store of each kind in a folder.
KINDS: dict[str, Callable[[Path], MakeStore]] = {
    "memory": lambda folder: InMemoryCheckpointStorage,
    "sqlite": lambda folder: partial(SqliteCheckpointStorage, folder / "runs.db"),
    "file": lambda folder: partial(FileCheckpointStorage, folder / "runs"),
}
OF_PROCESSES = [of_two_processes_one_wins, of_two_processes_one_goes_on]
RACES = [of_two_tasks_one_wins, of_two_threads_one_wins, of_two_threads_one_goes_on, *OF_PROCESSES]


class TestMemoryStore(StoreContract):
    """The contract over the memory store."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        return InMemoryCheckpointStorage


class TestPostgresStore(SharedStoreContract):
    """The contract over the PostgreSQL store, with other processes on the same schema."""

    @pytest.fixture
    def make_store(self, postgres: Place) -> MakeStore:
        return postgres.store


class TestDamageOfPostgres(DamageContract):
    """The contract's part on damage, over the sealed columns of the PostgreSQL store's tables."""

    @pytest.fixture
    def make_store(self, postgres: Place) -> MakeStore:
        return partial(postgres.store, keep_events=True)

    @pytest.fixture
    def stored(self, postgres: Place) -> Generator[StoredBytes]:
        with StoredColumns(postgres) as stored:
            yield stored

    @pytest.mark.proof
    def test_swapped_pieces_make_no_other_run(self, make_store: MakeStore, stored: StoredBytes) -> None:
        """There are a thousand pairs of columns, and each costs connections."""
        asyncio.run(swapped_pieces_make_no_other_run(make_store, stored))

    @pytest.mark.proof
    def test_truncations_are_reported(self, make_store: MakeStore, stored: StoredBytes) -> None:
        """The same holds for cut columns; `tests/postgres/test_damage.py` has some of each kind."""
        asyncio.run(truncations_are_reported(make_store, stored))

    @pytest.mark.proof
    def test_flipped_bits_are_reported(self, make_store: MakeStore, stored: StoredBytes) -> None:
        """And for flipped bits."""
        asyncio.run(flipped_bits_are_reported(make_store, stored))


class TestSqliteStore(LocalStoreContract):
    """The contract over the SQLite store, with other processes on the same file."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SqliteCheckpointStorage, tmp_path / "runs.db")


class TestFileStore(LocalStoreContract):
    """The contract over the file store, with other processes on the same folder."""

    @pytest.fixture
    def make_store(self) -> Generator[MakeStore]:
        with quick_folder() as folder:
            yield partial(FileCheckpointStorage, folder / "runs")


@pytest.mark.proof
class TestSqliteStoreOnApsw(LocalStoreContract):
    """The contract over the SQLite store with the driver that brings a SQLite of its own; some of it is below."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SqliteCheckpointStorage, tmp_path / "runs.db", driver="apsw")


class TestDamageOfSqlite(DamageContract):
    """The contract's part on damage, over the fields of the SQLite store's tables."""

    @pytest.fixture
    def path(self) -> Generator[Path]:
        with quick_folder() as folder:
            yield folder / "runs.db"

    @pytest.fixture
    def make_store(self, path: Path) -> MakeStore:
        return partial(SqliteCheckpointStorage, path, keep_events=True)

    @pytest.fixture
    def stored(self, path: Path) -> StoredBytes:
        return StoredFields(path)


class TestDamageOfFiles(DamageContract):
    """The contract's part on damage, over the files of the file store."""

    @pytest.fixture
    def folder(self) -> Generator[Path]:
        with quick_folder() as folder:
            yield folder / "runs"

    @pytest.fixture
    def make_store(self, folder: Path) -> MakeStore:
        return partial(FileCheckpointStorage, folder, keep_events=True)

    @pytest.fixture
    def stored(self, folder: Path) -> StoredBytes:
        return StoredFiles(folder)


@pytest.mark.parametrize("check", CHECKS[::4], ids=lambda check: check.__name__)
def test_apsw_passes_some_of_the_contract(tmp_path: Path, check) -> None:
    """Every fourth check, with the driver that brings a SQLite of its own."""
    asyncio.run(check(partial(SqliteCheckpointStorage, tmp_path / "runs.db", driver="apsw")))


@pytest.mark.parametrize("check", EVENT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_told_to_keeps_events(tmp_path: Path, kind: str, check) -> None:
    """The contract's part on events, over all stores with `keep_events=True`."""
    make = KINDS[kind](tmp_path)
    assert make(keep_events=True).keeps_events
    asyncio.run(check(partial(make, keep_events=True)))


@pytest.mark.proof
@pytest.mark.parametrize("check", RACES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_of_two_wins_a_thousand_times(tmp_path: Path, kind: str, check) -> None:
    """The long form of the races: exactly one commit is taken each time."""
    if kind == "memory" and check in OF_PROCESSES:
        pytest.skip("no other process sees a store in memory")
    asyncio.run(check(KINDS[kind](tmp_path), rounds=1000))


@pytest.mark.proof
@pytest.mark.parametrize("check", [flipped_bits_are_reported, truncations_are_reported])
def test_all_damage_of_sqlite_is_reported(check) -> None:
    """The long form of the damage checks: every bit, and every length; for files it is in `test_file_damage`."""
    with quick_folder() as folder:
        path = folder / "runs.db"
        asyncio.run(check(partial(SqliteCheckpointStorage, path, keep_events=True), StoredFields(path), every=1))


def test_the_stores_fit_the_protocol(tmp_path: Path) -> None:
    """All stores have every call of the protocol."""
    for make in KINDS.values():
        assert isinstance(make(tmp_path)(), CheckpointStorage)
