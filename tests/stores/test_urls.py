"""Stores by URL: which one a URL names, with what options, and what is refused without telling a secret."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from rehydrate import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    PostgresCheckpointStorage,
    SqliteCheckpointStorage,
    checkpoint_storage_from_url,
)
from rehydrate.errors import WrongCallError
from rehydrate.stores.urls import shown_url
from rehydrate.testing.store_contract import CommitMaker


def made(url: str) -> str:
    """Make the store of a URL, write to it, and return what it is."""

    async def main() -> str:
        store = checkpoint_storage_from_url(url)
        await store.commit(CommitMaker().claim())
        await store.close()
        return type(store).__name__

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "kind", "place"),
    [
        ("sqlite:///runs.db", SqliteCheckpointStorage, "runs.db"),
        ("sqlite:////{here}/a.db", SqliteCheckpointStorage, "a.db"),
        ("SQLite:///runs.db?driver=sqlite3&keep_events=false", SqliteCheckpointStorage, "runs.db"),
        ("sqlite:///what%3F%20%23.db", SqliteCheckpointStorage, "what? #.db"),
        ("sqlite:///100%25.db", SqliteCheckpointStorage, "100%.db"),
        ("file:///{here}/runs", FileCheckpointStorage, "runs"),
        ("file:///{here}/%C3%BC", FileCheckpointStorage, "ü"),
        ("file:runs", FileCheckpointStorage, "runs"),
        ("memory://", InMemoryCheckpointStorage, None),
    ],
)
def test_a_url_names_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, kind: type, place: str | None
) -> None:
    """Each form of URL makes its kind of store at the place that it names, relative or absolute."""
    monkeypatch.chdir(tmp_path)
    assert made(url.format(here=str(tmp_path).lstrip("/"))) == kind.__name__
    assert {path.name.removesuffix(".owners") for path in tmp_path.iterdir()} == ({place} if place else set())


@pytest.mark.parametrize("url", ["memory://", "sqlite:///runs.db", "file:runs"])
def test_events_are_kept_where_the_url_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """`keep_events` is an option of every store, off if not given."""
    monkeypatch.chdir(tmp_path)
    assert checkpoint_storage_from_url(url).keeps_events is False
    assert checkpoint_storage_from_url(f"{url}?keep_events=false").keeps_events is False
    assert checkpoint_storage_from_url(f"{url}?keep_events=true").keeps_events is True


ALL = "sqlite:///runs.db (sqlite:////var/lib/runs.db for an absolute path), file:///var/lib/runs"


@pytest.mark.parametrize(
    ("url", "problem", "fix"),
    [
        ("mysql://host/database", "'mysql://host/database' is no URL of a store", ALL),
        ("runs.db", "'runs.db' is no URL of a store", ALL),
        ("", "'' is no URL of a store", ALL),
        ("sqlite://runs.db", "names a host", "Use sqlite:///runs.db"),
        ("sqlite://", "names no store", "Use sqlite:///runs.db"),
        ("sqlite:///", "names no store", "Use sqlite:///runs.db"),
        ("file://runs", "names a host", "Use file:///var/lib/runs (file:runs for a relative path)"),
        ("file:", "names no store", "Use file:///var/lib/runs"),
        ("memory://x", "names a host", "Use memory://"),
        ("memory:///x", "names no store", "Use memory://"),
        ("sqlite:///runs.db#1", "has a '#'", "write %23"),
        ("sqlite:///runs.db?mode=ro", "has the option 'mode'", "keep_events=true or driver=sqlite3"),
        ("sqlite:///runs.db?keep_events=yes", "does not say what 'keep_events' is", "keep_events=true"),
        ("memory://?keep_events=true&keep_events=false", "does not say what 'keep_events' is", "once"),
        ("postgresql://me:secret@[host", "this is no URL of a store", ALL),
    ],
)
def test_a_wrong_url_says_what_there_is(url: str, problem: str, fix: str) -> None:
    """What names no store, and what no store takes, is refused with the forms that there are."""
    with pytest.raises(WrongCallError) as no:
        checkpoint_storage_from_url(url)
    assert problem in no.value.problem
    assert fix in no.value.fix


def test_a_database_is_named_by_its_url_without_showing_the_password() -> None:
    """A PostgreSQL URL makes a store without connecting; its own option is taken and its password is never shown."""
    store = checkpoint_storage_from_url("postgresql://me:secret@nowhere.invalid/runs?keep_events=true&sslmode=disable")
    assert isinstance(store, PostgresCheckpointStorage)
    assert store.keeps_events is True
    assert "secret" not in repr(store)


@pytest.mark.parametrize("url", [None, 3, b"memory://", Path("runs.db")])
def test_a_url_is_text(url: object) -> None:
    """Anything else than text is refused by its type."""
    with pytest.raises(WrongCallError, match="the URL of a store is a "):
        checkpoint_storage_from_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://me:secret@host:1/db", "mysql://***@host:1/db"),
        ("mysql://secret@host/db", "mysql://***@host/db"),
        ("mysql://me:se/cr@et@host/db", "mysql://***@host/db"),
        ("mysql://host/db?password=secret&secret=x", "mysql://host/db?..."),
        ("mysql://host/db?user=secret&x=secret", "mysql://host/db?user=...&x=..."),
        ("mysql://me:se?cr@et@host/db?user=secret", "mysql://***?..."),
        ("mysql:me:secret@host/db", "mysql:***"),
        ("host=h password=secret", "***"),
        ("my@home/runs?.db", "my@home/runs?.db"),
        ("mysql:host?secret", "mysql:***"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    """An error shows neither user and password nor the values of options."""
    assert shown_url(url) == shown
    assert "secret" not in shown


STORES = {
    "memory": InMemoryCheckpointStorage,
    "sqlite": partial(SqliteCheckpointStorage, "runs.db"),
    "file": partial(FileCheckpointStorage, "runs"),
    "postgres": partial(PostgresCheckpointStorage, "postgresql://localhost/runs"),
}


@pytest.mark.parametrize("given", ["no", 1, None])
@pytest.mark.parametrize("kind", STORES)
def test_a_word_does_not_say_whether_events_are_kept(kind: str, given: object) -> None:
    """Made without a URL, each store takes `True` and `False` alone: "no" would count as yes."""
    with pytest.raises(WrongCallError, match=r"^keep_events is .*\. Pass True or False\.$"):
        STORES[kind](keep_events=given)
