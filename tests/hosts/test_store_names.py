"""Stores as they are named on a command line."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import FileCheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.errors import WrongCallError
from rehydrate.stores.named import url_of_named
from rehydrate.wiring import named_checkpoint_storage


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("runs.db", "sqlite:///runs.db"),
        ("a b/100%.sqlite3", "sqlite:///a%20b/100%25.sqlite3"),
        ("/var/lib/runs.sqlite", "sqlite:////var/lib/runs.sqlite"),
        ("runs/", "file:runs"),
        ("folder", "file:folder"),
        ("file.bin", "sqlite:///file.bin"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("file:runs", "file:runs"),
        ("memory:", "memory:"),
    ],
)
def test_the_kind_of_a_store_is_found_from_its_name(name, url):
    """By what is there, and else by its ending; a URL is taken as it is."""
    Path("folder").mkdir()
    Path("file.bin").touch()
    assert url_of_named(name, create=True) == url


def test_what_says_no_kind_is_refused_and_what_is_not_there_is_not_made():
    """A mistyped name makes no empty store."""
    with pytest.raises(WrongCallError, match=r"Write 'runs\.db' for a SQLite file, 'runs/' for a folder"):
        url_of_named("runs", create=True)
    with pytest.raises(WrongCallError, match="the name of the store is empty"):
        url_of_named("", create=True)
    with pytest.raises(WrongCallError, match=r"there is no store 'runs\.db'"):
        url_of_named("runs.db", create=False)


@pytest.mark.parametrize("name", ["sqlite:///typo.db", "file:typo", "file:///nowhere/typo"])
def test_a_url_of_nothing_makes_no_store_either(name):
    """A command that only looks refuses it, as it does a path."""
    with pytest.raises(WrongCallError, match="there is no store"):
        named_checkpoint_storage(name, create=False)
    assert list(Path().iterdir()) == []


def test_the_stores_that_names_open():
    """Wiring gives each its class, and paths with strange letters lead to the same place."""

    async def scenario() -> None:
        for name, cls in (
            ("100% a b?#.db", SqliteCheckpointStorage),
            ("runs/", FileCheckpointStorage),
            ("memory:", InMemoryCheckpointStorage),
        ):
            store = named_checkpoint_storage(name, create=True)
            assert type(store) is cls
            assert await store.runs() == []
            await store.close()

    asyncio.run(scenario())
    assert Path("100% a b?#.db").is_file()


APP = """
from rehydrate import EncryptedCheckpointStorage, FileCheckpointStorage, KeyRing, SqliteCheckpointStorage
from rehydrate import WorkflowBuilder, executor

@executor(id="greet")
async def greet(name: str) -> str:
    return f"Hello {name}"

greeting = WorkflowBuilder("greeting", greet, checkpoint_storage=STORE).build()
"""
#: What reads, or goes on with a run: each by words that it takes.
EXISTING = (
    ("inbox",), ("runs",), ("show", "r"), ("resume", "--run", "r"), ("answer", "q=1"), ("offer", "r", "-m", '"Ada"'),
    ("cancel", "r"), ("prune", "--keep-last", "1"), ("history", "r"), ("diff", "r", "0"), ("export", "r", "r.run"),
    ("fork", "c"), ("doctor",),
)  # fmt: skip


@pytest.mark.parametrize(
    "store",
    [
        "SqliteCheckpointStorage('typo.db')",
        "FileCheckpointStorage('typo')",
        "EncryptedCheckpointStorage(FileCheckpointStorage('typo'), KeyRing({'k': bytes(32)}))",
    ],
)
def test_the_store_of_the_app_is_not_made_by_what_needs_a_run(command, monkeypatch, tmp_path, store):
    """As with `--store`: in another folder, or with a mistyped path, it says so, and does not answer that nothing is
    asked; `run` makes it."""
    monkeypatch.delenv("REHYDRATE_STORE")
    (tmp_path / "greets.py").write_text(APP.replace("STORE", store))
    for words in EXISTING:
        done = command(*words, "--app", "greets.py")
        assert (done.code, "error [wrong-call]: there is no store" in done.err) == (2, True), words
    assert list(tmp_path.glob("typo*")) == []
    assert command("run", "-m", '"Ada"', "--run", "r", "--app", "greets.py").code == 0
    assert list(tmp_path.glob("typo*")) != []
