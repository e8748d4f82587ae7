"""What stands at the path of a SQLite store: told as what it is before anything is made beside it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rehydrate.errors import StoreUnavailableError, WrongCallError
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import CLOCK, ask, change, fill, use


def tree(folder: Path) -> dict[str, bytes]:
    """Return all that is in a folder."""
    return {entry.name: entry.read_bytes() if entry.is_file() else b"" for entry in folder.iterdir()}


def said(path: Path | str) -> str:
    """Return what a store at this path says when it is used."""
    with pytest.raises(StoreUnavailableError) as no:
        use(path, lambda store: store.commit(CommitMaker().claim()))
    return str(no.value)


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", "a\ud800"])
def test_a_path_must_name_a_file(path: str) -> None:
    """Names by which SQLite means no file, or none at all, are refused at the call."""
    with pytest.raises(WrongCallError, match="is not the path of a file"):
        SqliteCheckpointStorage(path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (3, "the path of a store is an int. Pass the path of a file"),
        (None, "the path of a store is None. Pass the path of a file"),
        (b"runs.db", "the path of a store is a bytes. Pass the path of a file"),
        (Path, "the path of a store is the class Path. Pass the path of a file"),
        ("data/", "'data/' is the path of a folder. Name a file in it, such as 'data/runs.db'"),
    ],
)
def test_what_is_no_path_is_refused(path, text: str) -> None:
    """Anything but the text or the `Path` of a file is a wrong call that says what it was."""
    with pytest.raises(WrongCallError) as no:
        SqliteCheckpointStorage(path)
    assert text in str(no.value)


@pytest.mark.parametrize("path", [".", "..", "use.db", Path()])
def test_a_folder_is_called_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path | str) -> None:
    """A store at a folder says that it is one and names a file in it; nothing is made in or beside it."""
    (tmp_path / "outer" / "inner" / "use.db").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "outer" / "inner")
    text = said(path)
    assert f"store {str(Path(path).resolve())!r} cannot be used: it is a folder." in text
    assert f"Name a file in it, such as {str(Path(path).resolve() / 'runs.db')!r}." in text
    assert [str(entry.relative_to(tmp_path)) for entry in sorted(tmp_path.rglob("*"))] == [
        "outer",
        "outer/inner",
        "outer/inner/use.db",
    ]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A store in a folder that does not exist, or in a file, cannot be used, and says so; nothing is made."""
    (tmp_path / "file").write_text("x")
    assert f"the folder {str(tmp_path / 'nowhere')!r} does not exist. Make" in said(tmp_path / "nowhere" / "runs.db")
    assert "its path leads nowhere (Not a directory). Check" in said(tmp_path / "file" / "runs.db")
    assert tree(tmp_path) == {"file": b"x"}


@pytest.mark.parametrize("text", [b"certainly no database" * 500, b"short", b"x"], ids=["long", "short", "one"])
def test_a_file_that_is_no_database_is_called_that(tmp_path: Path, text: bytes) -> None:
    """A file with anything else in it is told apart from a damaged store; it stays as it is, alone."""
    (tmp_path / "notes.txt").write_bytes(text)
    assert "the file is no SQLite database. Check the path." in said(tmp_path / "notes.txt")
    assert tree(tmp_path) == {"notes.txt": text}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("owners", [False, True], ids=["alone", "with a folder of locks"])
def test_a_database_of_another_program_is_refused(tmp_path: Path, mode: str, *, owners: bool) -> None:
    """A database with tables of others and none of ours is named as such and stays byte for byte as it was."""
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for name in ("notes", "tags", "people", "words"):
            connection.execute(f"CREATE TABLE {name} (no INTEGER PRIMARY KEY AUTOINCREMENT)")
    if owners:
        (tmp_path / "notes.db.owners").mkdir()
    before = path.read_bytes()
    text = said(path)
    assert "it is the database of another program (it has the tables notes, people, tags, ...)" in text
    assert "give the store a file of its own" in text
    assert path.read_bytes() == before
    assert {name for name in tree(tmp_path) if name != "notes.db.owners"} == {"notes.db"}
    assert (tmp_path / "notes.db.owners").exists() == owners


def test_an_empty_file_and_an_empty_database_become_stores(tmp_path: Path) -> None:
    """A file without a byte and a database without a table belong to nobody."""
    (tmp_path / "empty").touch()
    change(tmp_path / "tables", "PRAGMA user_version = 7")
    for name in ("empty", "tables"):
        use(tmp_path / name, lambda store: store.commit(CommitMaker().claim()))
        assert ask(tmp_path / name, "SELECT run_id FROM rehydrate_run") == [("run",)]


def test_a_store_with_a_table_of_others_stays_one(tmp_path: Path) -> None:
    """Who adds a table to a store goes on using it, also where the folder of locks was removed."""
    path = tmp_path / "runs.db"
    fill(path)
    change(path, "CREATE TABLE notes (text)")
    assert use(path, lambda store: store.head("run")) is not None


@pytest.mark.parametrize("name", ["a?mode=memory", "a#b", "a%20b", "ü ☃", "a:b&c"])
def test_any_file_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    """Characters that mean something in a URI are a part of the name."""
    use(tmp_path / name, lambda store: store.commit(CommitMaker().claim()))
    assert sorted(tree(tmp_path)) == [name, f"{name}.owners"]


def test_a_removed_file_is_not_made_again(tmp_path: Path) -> None:
    """After its file is gone a store object refuses every call and makes none; a new object starts anew."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        store = SqliteCheckpointStorage(path, clock=CLOCK)
        maker = CommitMaker()
        await store.commit(maker.claim())
        for name in ("runs.db", "runs.db-wal", "runs.db-shm"):
            (tmp_path / name).unlink()
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match=r"moved, removed or replaced.*make a new store object"):
                await store.commit(maker.copy(owner="owner", tag="lost").step())
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                await store.head("run")
            assert not path.exists()
        async with SqliteCheckpointStorage(path, clock=CLOCK) as new:
            await new.commit(CommitMaker("new").claim())
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                await store.runs()
            assert [header.run_id for header in await new.runs()] == ["new"]
        await store.close()

    asyncio.run(main())
    assert sorted(tree(tmp_path)) == ["runs.db", "runs.db.owners"]


def test_a_file_that_is_moved_back_is_used_again(tmp_path: Path) -> None:
    """While its file is away a store refuses and makes none; with the file back it goes on where it was."""
    path, away, maker = tmp_path / "runs.db", tmp_path / "away", CommitMaker()
    away.mkdir()
    names = ("runs.db", "runs.db-wal", "runs.db-shm")

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim({"k": b"1"}))
            for moved in (names, names[:1]):
                for name in moved:
                    (tmp_path / name).rename(away / name)
                for _ in range(2):
                    with pytest.raises(StoreUnavailableError, match="Move that same file back"):
                        await store.commit(maker.copy(owner="owner", tag="lost").step())
                assert not path.exists()
                for name in moved:
                    (away / name).rename(tmp_path / name)
                assert await store.read("run", ["k"]) == {"k": b"%d" % (maker.seq + 1)}
                await store.commit(maker.step({"k": b"%d" % (maker.seq + 2)}))
                head = await store.head("run")
                assert head is not None
                assert head.alive

    asyncio.run(main())
    assert use(path, lambda store: store.read("run", ["k"])) == {"k": b"3"}


def test_a_copy_in_place_of_the_file_is_for_a_new_object(tmp_path: Path) -> None:
    """A backup put in place of the file is another file: the old object refuses it, a new one at once uses it."""
    path, maker = tmp_path / "runs.db", CommitMaker()
    fill(path, "backup")

    async def main() -> None:
        backup = path.read_bytes()
        store = SqliteCheckpointStorage(path, clock=CLOCK)
        await store.commit(maker.claim())
        for name in ("runs.db", "runs.db-wal", "runs.db-shm"):
            (tmp_path / name).unlink()
        path.write_bytes(backup)
        async with SqliteCheckpointStorage(path, clock=CLOCK) as new:
            # The same owner id, which the old object's thread has locked until then.
            await new.commit(CommitMaker("after").claim())
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                await store.commit(maker.copy(owner="owner", tag="lost").step())
            await store.close()
            assert [header.run_id for header in await new.runs()] == ["after", "backup"]

    asyncio.run(main())


def test_a_closed_connection_does_not_make_the_file_again(tmp_path: Path) -> None:
    """Where the connection was given up in between, as before a fork, a missing file stays missing."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(CommitMaker().claim())
            store._joined().before_fork()
            store._joined().after_fork_in_parent()
            path.unlink()
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                await store.head("run")
            assert not path.exists()

    asyncio.run(main())


def test_a_new_file_with_the_number_of_a_removed_one_is_not_taken_for_it(tmp_path: Path) -> None:
    """File systems give a free number to the next file; a store keeps its own from being free, and says no."""
    path = tmp_path / "runs.db"
    fill(path, "backup")
    backup = path.read_bytes()

    async def main() -> None:
        async with SqliteCheckpointStorage(path, clock=CLOCK) as store:
            assert await store.head("backup") is not None
            path.unlink()
            for _ in range(20):
                with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                    await store.head("backup")
                path.unlink(missing_ok=True)
                path.write_bytes(backup)

    asyncio.run(main())
