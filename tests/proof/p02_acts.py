"""Single writes of a store, one transaction each: what is there afterwards is what was there before, or all of it.

Nothing here may know how a store keeps what it is given, but for the rows of a SQLite file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rehydrate import CheckpointStorage
from rehydrate.model.checkpoint import Latest, Offer, RequestRow, Status
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.stores.migrations import known_migrations, migrate
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

#: A time at which the leases of what was prepared have ended.
LATER: Final = 2_000_000.0


def act_store(kind: str, place: Path, now: float = LATER) -> FileCheckpointStorage | SqliteCheckpointStorage:
    """Return a store of a kind in the folder `place`."""
    if kind == "file":
        return FileCheckpointStorage(place / "runs", clock=ManualClock(now), keep_events=True)
    return SqliteCheckpointStorage(place / "runs.db", clock=ManualClock(now), keep_events=True, driver=kind)


@dataclass(frozen=True)
class Act:
    """A write, and what there is before it: a `filled` place, or the `older` file of a first version."""

    do: Callable[[CheckpointStorage], Awaitable[object]]
    before: str = "filled"


def stand(maker: CommitMaker) -> CommitMaker:
    """Bring a maker to where `fill` leaves the run."""
    maker.claim({"a": b"1", "b": b"1"})
    maker.step({"a": b"2", "big": b"x" * 5000})
    maker.step({"big": b"x" * 5001}, requests=[RequestRow("q", "run", "", "open")], turn=maker.turn("key"), seconds=0)
    return maker


async def fill(store: CheckpointStorage) -> None:
    """Make a run with all that there can be."""
    maker = CommitMaker()
    await store.commit(maker.claim({"a": b"1", "b": b"1"}))
    await store.commit(maker.step({"a": b"2", "big": b"x" * 5000}))
    rows = [RequestRow("q", "run", "", "open")]
    await store.commit(maker.step({"big": b"x" * 5001}, requests=rows, turn=maker.turn("key"), seconds=0))
    await store.offer(Offer("run", "letter", b"come"))
    await store.offer(Offer("run", "parcel", b"bring"))
    await store.tag("run", "begun", "run:0")


async def _go_on(store: CheckpointStorage) -> None:
    maker = stand(CommitMaker())
    requests = [RequestRow("q", "run", "", "answered"), RequestRow("new", "run", "", "open")]
    turn = maker.turn("key", status=Status.IDLE)
    commit = maker.step({"a": b"2"}, ["b"], status=Status.IDLE, requests=requests, turn=turn, seconds=0)
    header = msgspec.structs.replace(commit.header, events=4)
    await store.commit(msgspec.structs.replace(commit, header=header, taken=(1,), events=(b"e3", b"e4")))


async def _claim(store: CheckpointStorage) -> None:
    await store.commit(stand(CommitMaker()).claim({"input": b"i" * 300}))


async def _start(store: CheckpointStorage) -> None:
    maker = CommitMaker("second")
    row = RequestRow("q2", "second", "", "open")
    await store.commit(
        msgspec.structs.replace(maker.claim({"k": b"v"}, seconds=0), requests=(row,), turn=maker.turn("key2"))
    )


async def _adopt(store: CheckpointStorage) -> None:
    """Take in a copy of the run under another name and with other ids."""
    archive = await store.archive("run")
    assert archive is not None
    header = msgspec.structs.replace(archive.commits[0].header, run_id="second", checkpoint_id="second:0")
    commit = msgspec.structs.replace(archive.commits[0], header=header)
    tags, offers = {"begun": "second:0"}, (msgspec.structs.replace(archive.offers[0], run_id="second"),)
    requests = (RequestRow("q2", "second", "", "open"),)
    await store.adopt(
        msgspec.structs.replace(archive, commits=(commit,), requests=requests, turns=(), tags=tags, offers=offers)
    )


async def _offer(store: CheckpointStorage) -> None:
    await store.offer(Offer("run", "third", b"go"))


async def _tag(store: CheckpointStorage) -> None:
    await store.tag("run", "here", "run:2")


async def _forget(store: CheckpointStorage) -> None:
    await store.forget("run", [1])


async def _delete(store: CheckpointStorage) -> None:
    await store.delete("run")


ACTS: Final = {
    "an older file": Act(_start, "older"),
    "a new run": Act(_start),
    "a claim": Act(_claim),
    "a commit": Act(_go_on),
    "an offer": Act(_offer),
    "a tag": Act(_tag),
    "forgetting": Act(_forget),
    "deleting": Act(_delete),
    "adopting": Act(_adopt),
}


def make_older(place: Path) -> None:
    """Make a SQLite file as the first version did."""
    with closing(sqlite3.connect(place / "runs.db", isolation_level=None)) as connection:
        migrate(connection, "s", known_migrations()[:1])
        connection.execute("PRAGMA journal_mode = WAL")


async def what_is_there(store: CheckpointStorage) -> dict[str, Any]:
    """Return all that a store says, each answer by itself."""
    told: dict[str, Any] = {"runs": [header.run_id for header in await store.runs()]}
    for run_id in ("run", "second"):
        head = await store.load(Latest(run_id))
        told[run_id] = (head.header.seq, sorted(head.records.items()), head.head.epoch) if head else None
        told[f"numbers of {run_id}"] = [header.seq for header in await store.history(run_id)]
        told[f"beside {run_id}"] = (await store.tags(run_id), [offer.key for offer in await store.offers(run_id)])
        told[f"events of {run_id}"] = [event.number for event in await store.events(run_id)]
        ids = [f"{run_id}:{seq}" for seq in range(4)]
        told[f"found of {run_id}"] = [ref for ref in ids if await store.load(ref) is not None]
    for request_id in ("q", "new", "q2"):
        row = await store.find_request(request_id)
        told[request_id] = row.state if row else None
    told["open"] = [row.request_id for row in await store.requests()]
    for key in ("key", "key2"):
        row = await store.find_turn("flow", key)
        told[key] = row.status.value if row else None
    for status in Status:
        told[status.value] = [header.run_id for header in await store.runs(status=status)]
    return told


async def nothing(store: CheckpointStorage) -> None:
    """Write once, so that what a dead process left is taken back."""
    maker = CommitMaker("other")
    await store.commit(maker.claim(seconds=0))
    await store.delete("other")
