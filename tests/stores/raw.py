"""Tools of the SQLite tests: a store with some runs in it, and changes to its file behind its back."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from rehydrate.model.checkpoint import Commit, Offer, RequestRow
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

T = TypeVar("T")
CLOCK = ManualClock()


def use(path: Path, call: Callable[[SqliteCheckpointStorage], Awaitable[T]]) -> T:
    """Open the store, make one call and close it."""

    async def main() -> T:
        async with SqliteCheckpointStorage(path, clock=CLOCK, keep_events=True) as store:
            return await call(store)

    return asyncio.run(main())


def told(commit: Commit, *events: bytes) -> Commit:
    """Return a commit that reports these events, numbered from 1."""
    header = msgspec.structs.replace(commit.header, events=len(events))
    return msgspec.structs.replace(commit, header=header, events=events)


def fill(path: Path, run_id: str = "run") -> CommitMaker:
    """Store a run at rest: three checkpoints; records `a`, `b`, a big one; a request, a turn with a key, two
    events, a name, an offer."""
    if path.exists():
        return commit_run(path, run_id)
    data, maker = filled(run_id)
    path.write_bytes(data)
    return maker.copy(owner="owner", tag="")


@cache
def filled(run_id: str) -> tuple[bytes, CommitMaker]:
    """Return the file of a store with one run, made once, and the maker of the run."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        maker = commit_run(path, run_id)
        return path.read_bytes(), maker


def commit_run(path: Path, run_id: str) -> CommitMaker:
    """Commit the run of `fill` through a store."""
    maker = CommitMaker(run_id)

    async def main(store: SqliteCheckpointStorage) -> None:
        await store.commit(maker.claim({"a": b"first a", "b": b"first b", "big": b"x" * 600_000}))
        request = RequestRow(f"q-{run_id}", run_id, "child#1", "open")
        await store.commit(maker.step({"a": b"second a"}, requests=[request], turn=maker.turn(f"key-{run_id}")))
        await store.commit(told(maker.end({"b": b"second b"}), b"first", b"second"))
        await store.tag(run_id, "begun", f"{run_id}:0")
        await store.offer(Offer(run_id, "letter", b"come"))

    use(path, main)
    return maker


def change(path: Path, *statements: str) -> int:
    """Change the file with SQLite itself and return how many rows were changed."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return sum(connection.execute(statement).rowcount for statement in statements)


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Read the file with SQLite itself."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
