"""Tools of the file store's tests: a folder with a run in it, and everything that a store says of it."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import At, Commit, Latest, Offer, RequestRow
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

T = TypeVar("T")
CLOCK = ManualClock()


@contextmanager
def quick_folder() -> Generator[Path]:
    """Give a folder in memory where there is such a place: thousands of stores need no real disk."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="rehydrate-test-", dir=memory if memory.is_dir() else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def use(path: Path, call: Callable[[FileCheckpointStorage], Awaitable[T]]) -> T:
    """Open the store, make one call and close it."""

    async def main() -> T:
        async with FileCheckpointStorage(path, clock=CLOCK, keep_events=True) as store:
            return await call(store)

    return asyncio.run(main())


def told(commit: Commit, *events: bytes) -> Commit:
    """Return a commit that reports these events, numbered from 1."""
    header = msgspec.structs.replace(commit.header, events=len(events))
    return msgspec.structs.replace(commit, header=header, events=events)


def fill(path: Path, run_id: str = "run") -> CommitMaker:
    """Store a run at rest: three checkpoints; records `a` and `b`; and one of all else."""
    maker = CommitMaker(run_id)

    async def main(store: FileCheckpointStorage) -> None:
        await store.commit(maker.claim({"a": b"first a", "b": b"first b"}))
        request = RequestRow(f"q-{run_id}", run_id, "child#1", "open")
        await store.commit(maker.step({"a": b"second a"}, requests=[request], turn=maker.turn(f"key-{run_id}")))
        await store.commit(told(maker.end({"b": b"second b"}), b"first", b"second"))
        await store.tag(run_id, "begun", f"{run_id}:0")
        await store.offer(Offer(run_id, "letter", b"come"))

    use(path, main)
    return maker


async def everything(store: FileCheckpointStorage) -> list[object]:
    """Return each answer of a store about the run of `fill`, or the error that it raises."""
    calls = [store.load(ref) for ref in (Latest("run"), "run:0", "run:1", "run:2")]
    calls += [store.find_request("q-run"), store.find_turn("flow", "key-run"), store.read("run", ["a", "b"])]
    calls += [store.history("run"), store.events("run"), store.runs(), store.runs(workflow="flow"), store.head("run")]
    calls += [store.load(At("run", "begun")), store.tags("run"), store.offers("run"), store.requests()]
    found: list[object] = []
    for call in calls:
        try:
            found.append(await call)
        except RehydrateError as error:
            found.append(error)
    return found


def files(path: Path) -> list[Path]:
    """Return the files of a store that have something in them."""
    return sorted(file for file in path.rglob("*") if file.is_file() and file.stat().st_size)
