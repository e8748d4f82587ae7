"""What stores say of themselves: a file, a folder; and that saying it changes nothing."""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from rehydrate import (
    CheckpointStorage,
    CompressedCheckpointStorage,
    EncryptedCheckpointStorage,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    KeyRing,
    SqliteCheckpointStorage,
)
from rehydrate.ports import Examination, Finding, examine_store
from rehydrate.stores import findings as found_by_stores
from rehydrate.stores.migrations import known_migrations, migrate
from tests.stores import raw, raw_files
from tests.stores.raw import change


def examined(store: CheckpointStorage, *, full: bool = False) -> Examination:
    async def main() -> Examination:
        try:
            return await examine_store(store, full=full)
        finally:
            await store.close()

    return asyncio.run(main())


def about(found: Examination, what: str) -> Finding:
    (one,) = [finding for finding in found.findings if finding.about == what]
    return one


def levels(found: Examination, *, without: Iterable[str] = ("SQLite", "disk")) -> dict[str, str]:
    return {finding.about: finding.level for finding in found.findings if finding.about not in without}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "runs.db"
    raw.fill(found)
    return found


def test_a_file_that_is_well_says_so_of_each_part(path: Path) -> None:
    """The file, journal mode as returned, migrations, writing, space, lock files; pages if all is asked for."""
    found = examined(SqliteCheckpointStorage(path), full=True)
    assert found.usable
    assert levels(found) == {
        "file": "ok", "journal mode": "ok", "migrations": "ok", "writing": "ok", "space": "ok", "lock files": "ok",
        "pages": "ok",
    }  # fmt: skip
    assert about(found, "journal mode").text == "SQLite returns 'wal'."
    assert about(found, "migrations").text == f"all {len(known_migrations())} are applied."


def test_a_sqlite_with_the_bug_of_wal_files_is_noted(path: Path) -> None:
    """Before 3.51.3, with what the store does against it; the driver apsw brings a newer one."""
    told = about(examined(SqliteCheckpointStorage(path)), "SQLite")
    old = sqlite3.sqlite_version_info < (3, 51, 3)
    assert told.text.startswith(f"version {sqlite3.sqlite_version}, by sqlite3")
    assert (told.level, "driver=apsw" in told.action) == (("note", True) if old else ("ok", False))
    assert about(examined(SqliteCheckpointStorage(path, driver="apsw")), "SQLite").level == "ok"


def test_looking_makes_no_store(tmp_path: Path) -> None:
    """Nothing stands at the path before or after, and that is a problem."""
    for store in (SqliteCheckpointStorage(tmp_path / "none.db"), FileCheckpointStorage(tmp_path / "none")):
        found = examined(store)
        assert not found.usable
        (told,) = found.findings
        assert (told.level, told.action) == ("problem", told.action)
        assert "there is no store" in told.text
    assert list(tmp_path.iterdir()) == []


def test_looking_applies_no_migration(tmp_path: Path) -> None:
    """A file of an older version is noted with what is missing, and stays as it is."""
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        migrate(connection, "s", known_migrations()[:2])
    before = raw.ask(old, "SELECT name FROM sqlite_master ORDER BY name")
    found = examined(SqliteCheckpointStorage(old))
    assert not found.usable
    assert about(found, "migrations").level == "note"
    assert "0003_inbox_and_tags.sql, 0004_packed.sql" in about(found, "migrations").text
    assert raw.ask(old, "SELECT name FROM sqlite_master ORDER BY name") == before


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE rehydrate_migration SET checksum = 'x' WHERE number = 1", "0001_runs.sql is not the one applied"),
        ("INSERT INTO rehydrate_migration VALUES (99, '0099_later.sql', 'x')", "format 99"),
    ],
)
def test_migrations_that_are_not_ours_are_a_problem(path: Path, statement: str, text: str) -> None:
    """One that has changed since, and one of newer code; the store cannot be opened then."""
    change(path, statement)
    found = examined(SqliteCheckpointStorage(path))
    assert (about(found, "migrations").level, found.usable) == ("problem", False)
    assert text in about(found, "migrations").text


def test_another_journal_mode_is_told_as_it_was_returned(path: Path) -> None:
    """It is read and not set, so the file is left in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    told = about(examined(SqliteCheckpointStorage(path)), "journal mode")
    assert (told.level, "'delete'" in told.text) == ("note", True)
    assert raw.ask(path, "PRAGMA journal_mode") == [("delete",)]


def test_a_damaged_page_is_found_when_all_is_asked_for(path: Path) -> None:
    """SQLite's own check names it."""
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    data[-page:] = secrets.token_bytes(page)
    path.write_bytes(data)
    told = about(examined(SqliteCheckpointStorage(path), full=True), "pages")
    assert (told.level, told.action) == ("problem", "Restore the file from a backup.")


def test_what_is_no_database_is_a_problem_and_no_error(tmp_path: Path) -> None:
    """Some other file, a folder, the database of another program."""
    other, program = tmp_path / "other.txt", tmp_path / "program.db"
    other.write_bytes(b"hello" * 300)
    with closing(sqlite3.connect(program)) as connection, connection:
        connection.execute("CREATE TABLE customers (name)")
    for path, text in [(other, "no SQLite database"), (tmp_path, "folder"), (program, "customers")]:
        found = examined(SqliteCheckpointStorage(path))
        assert [finding.level for finding in found.findings] == ["problem"]
        assert text in found.findings[0].text
    assert not Path(f"{other}.owners").exists()


def test_lock_files_of_dead_processes_are_counted(path: Path) -> None:
    """They are no harm, and looking leaves them."""
    owners = Path(f"{path}.owners")
    owners.mkdir(exist_ok=True)
    (owners / f"{'0' * 40}.owner").touch()
    told = about(examined(SqliteCheckpointStorage(path)), "lock files")
    assert (told.level, told.text) == ("note", "0 of processes that live, 1 of others that are gone.")
    assert (owners / f"{'0' * 40}.owner").exists()


def test_a_store_that_is_in_use_can_be_looked_at(path: Path) -> None:
    """By an object on the same file, whose runs go on."""

    async def main() -> Examination:
        async with SqliteCheckpointStorage(path, clock=raw.CLOCK) as store:
            await store.head("run")
            found = await store.examine()
            assert await store.head("run") is not None
            return found

    assert asyncio.run(main()).usable


def test_a_folder_that_is_well_says_so_of_each_part(tmp_path: Path) -> None:
    """The folder and its size, the right to write, what is left over, lock files."""
    raw_files.fill(tmp_path / "runs")
    found = examined(FileCheckpointStorage(tmp_path / "runs"))
    assert found.usable
    assert levels(found) == {"folder": "ok", "writing": "ok", "left over": "ok", "lock files": "ok"}


def test_what_is_left_over_in_a_folder_is_noted(tmp_path: Path) -> None:
    """Once it is older than any write takes; a write that is on its way is none."""
    root = tmp_path / "runs"
    raw_files.fill(root)
    (root / "tmp" / "fresh.commit").touch()
    assert about(examined(FileCheckpointStorage(root)), "left over").level == "ok"
    os.utime(root / "tmp" / "fresh.commit", (1, 1))
    told = about(examined(FileCheckpointStorage(root)), "left over")
    assert (told.level, told.text) == ("note", "1 file in tmp/: left by a process that is gone.")


def test_a_folder_that_is_no_store_is_a_problem(tmp_path: Path) -> None:
    """Without its marker, with a damaged one, or without one of its folders."""
    root = tmp_path / "runs"
    raw_files.fill(root)
    (root / "inboxes").rename(root / "elsewhere")
    assert "inboxes" in about(examined(FileCheckpointStorage(root)), "folder").text
    (root / "elsewhere").rename(root / "inboxes")
    (root / "rehydrate-store.json").write_bytes(b"{}\n")
    assert about(examined(FileCheckpointStorage(root)), "folder").level == "problem"
    (root / "rehydrate-store.json").unlink()
    assert "has no rehydrate-store.json" in about(examined(FileCheckpointStorage(root)), "folder").text


def test_a_full_disk_is_a_problem(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how much room is left."""
    monkeypatch.setattr(found_by_stores, "_LITTLE", 10**18)
    told = about(examined(SqliteCheckpointStorage(path)), "disk")
    assert (told.level, "rehydrate prune" in told.action) == ("problem", True)


def test_a_store_around_a_store_says_what_the_one_inside_says(path: Path) -> None:
    """Encrypted and compressed ones too."""
    keys = KeyRing({"k": secrets.token_bytes(32)})
    inside = examined(SqliteCheckpointStorage(path))
    for store in (
        EncryptedCheckpointStorage(SqliteCheckpointStorage(path), keys),
        CompressedCheckpointStorage(SqliteCheckpointStorage(path)),
    ):
        assert levels(examined(store)) == levels(inside)


def test_a_store_that_says_nothing_of_itself_is_noted() -> None:
    """As one in memory, or of another make; its runs can be looked at all the same."""
    found = examined(InMemoryCheckpointStorage())
    assert ([finding.level for finding in found.findings], found.usable) == (["note"], True)
