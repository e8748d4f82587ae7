"""Whole runs of a nested workflow through encryption: what is written holds nothing of the user's, and it works."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rehydrate import (
    CompressedCheckpointStorage,
    EncryptedCheckpointStorage,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    Status,
    WorkflowCheckpoint,
)
from rehydrate.errors import AlreadyAnsweredError, RunExistsError, RunFailedError, WrongCallError
from rehydrate.model.checkpoint import Cause, Header, Latest
from rehydrate.ports import CheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.encryption.kit import WatchedStorage, compressed, encrypted, encrypted_in_memory, ring
from tests.encryption.secret_desk import ARGUMENTS, LONG, RUN, C, CanaryNote, desk, start

ROOT = Path(__file__).resolve().parents[2]


def whole_story(store: CheckpointStorage) -> list[str]:
    """Start, answer, fail, go on, take a second message, fork: everything that a store is asked to keep."""
    one, two = start(store)
    with pytest.raises(RunFailedError, match="went wrong"):
        desk(store).run_sync(responses={one: f"{C} fail"})
    with pytest.raises(RunFailedError):
        desk(store).run_sync(checkpoint="latest", run_id=RUN)
    done = desk(store).run_sync(
        CanaryNote(f"{C} again"),
        checkpoint="latest",
        run_id=RUN,
        responses={two: f"{C} well"},
        on_unfinished="discard",
        run_args=ARGUMENTS,
    )
    desk(store).run_sync(checkpoint=done, fork=True, run_id=f"fork-{C}")
    return list(done.outputs)


def texts_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every name below a folder, and all that is in its files."""
    for path in sorted(folder.rglob("*")):
        yield path.name, path.name.encode() + (path.read_bytes() if path.is_file() else b"")


def with_canary(folder: Path) -> list[str]:
    return [name for name, data in texts_in(folder) if C.encode() in data.lower()]


def test_nothing_of_the_users_stands_in_clear(tmp_path: Path) -> None:
    """Of ids, names, values, errors, answers and events, none is in the file, its log, its index or any file's name."""
    plain = tmp_path / "plain"
    plain.mkdir()
    # Kept until its files were looked at: a store that is collected closes them, and its log goes.
    store = SqliteCheckpointStorage(plain / "runs.db", keep_events=True)
    whole_story(store)
    assert "runs.db-wal" in with_canary(plain)
    for name, make in {"encrypted": encrypted, "compressed": compressed}.items():
        folder = tmp_path / name
        folder.mkdir()
        store = make(folder / "runs.db")
        assert whole_story(store)
        sizes = {name: len(data) for name, data in texts_in(folder)}
        assert sizes["runs.db-wal"] > 100_000
        assert "runs.db-shm" in sizes
        assert with_canary(folder) == []
        asyncio.run(store.close())
        assert with_canary(folder) == []


def test_a_store_is_given_nothing_of_the_users() -> None:
    """No commit that any store inside is given holds it, and each of them is needed to go on."""
    inner = WatchedStorage()
    store = EncryptedCheckpointStorage(inner, ring())
    assert whole_story(store)
    given = [msgspec.msgpack.encode(commit).lower() for commit in inner.given]
    assert len(given) > 10
    assert [number for number, data in enumerate(given) if C.encode() in data] == []
    assert sum(len(commit.events) for commit in inner.given) > 10
    assert [commit.header.run_id for commit in inner.given if commit.turn] != []


def test_a_field_of_a_header_is_hidden_unless_it_is_known_to_be_clear() -> None:
    """Of a header that says something in every field, the store inside sees ids, numbers, times, status and cause."""
    inner, maker = WatchedStorage(), CommitMaker(f"run-{C}", workflow=f"flow-{C}", tag="0")
    commit = maker.claim()
    full = msgspec.structs.replace(
        commit.header, created=5.0, pending=3, cause=Cause.EDIT, size=9, changed=2, scopes=(f"{C}#1",), reason=C
    )
    store = EncryptedCheckpointStorage(inner, ring())
    full = msgspec.structs.replace(full, checkpoint_id="c-1")
    asyncio.run(store.commit(msgspec.structs.replace(commit, header=full)))
    seen = inner.given[0].header
    clear = {"format", "checkpoint_id", "seq", "previous_checkpoint_id", "status", "turn", "superstep", "created"}
    clear |= {"pending", "events", "cause", "size", "changed", "due"}
    made = {"run_id", "workflow", "digest", "records", "sealed"}
    hidden = {field.name for field in msgspec.structs.fields(Header)} - clear - made
    assert hidden == {"keyed", "scopes", "reason"}
    assert all(getattr(seen, name) == getattr(full, name) for name in clear)
    assert not any(getattr(seen, name) for name in hidden)
    assert asyncio.run(store.head(f"run-{C}")).header == full


@pytest.mark.parametrize("make", [encrypted_in_memory, lambda: CompressedCheckpointStorage(encrypted_in_memory())])
def test_everything_works_for_the_owner_of_the_key(make: Callable[[], CheckpointStorage]) -> None:
    """Headers, inspection, requests, replays, events and refusals are those of a plain store, with the user's names."""
    store = make()
    one, two = start(store)
    workflow = desk(store)
    again = workflow.run_sync(CanaryNote(f"{C} message"), run_id=RUN, idempotency_key=f"key-{C}", run_args=ARGUMENTS)
    assert again.replayed
    assert [request.request_id for request in again.pending_requests] == [one, two]
    (header,) = asyncio.run(store.runs(workflow=f"{C}-flow", status="IDLE_WITH_PENDING_REQUESTS"))
    assert (header.run_id, header.pending) == (RUN, 2)
    assert any(f"{C}-node#1" in path for entry in asyncio.run(store.history(RUN)) for path in entry.scopes)
    inspection = asyncio.run(store.inspect(Latest(RUN)))
    assert {request.executor_id for request in inspection.requests} == {f"{C}-ask"}
    assert inspection.requests[0].path == f"{C}-node#1/{C}-inner#1"
    with pytest.raises(RunExistsError, match=f"'{RUN}'"):
        workflow.run_sync(CanaryNote("another"), run_id=RUN)
    done = workflow.run_sync(responses={one: "yes", two: "no"})
    assert done.outputs[0].startswith(f"{C} asked first: yes")
    assert done.checkpoint.state == {f"{C}-closed": LONG}
    with pytest.raises(AlreadyAnsweredError):
        workflow.run_sync(responses={one: "yes"})

    async def told() -> list[str]:
        return [type(event).__name__ async for event in workflow.events(RUN)]

    assert "RequestOpened" in asyncio.run(told())
    assert WorkflowCheckpoint.from_bytes(done.checkpoint.to_bytes()).run_id == RUN
    assert asyncio.run(store.delete(RUN)) is True
    assert asyncio.run(store.runs()) == []


@pytest.mark.parametrize("make", ["encrypted", "compressed"])
def test_fresh_processes_go_on(tmp_path: Path, make: str) -> None:
    """Each answer is given by a process of its own, which finds the run by the id of the question."""
    path = tmp_path / "runs.db"
    store = {"encrypted": encrypted, "compressed": compressed}[make](path)
    questions = start(store)
    asyncio.run(store.close())
    told = [in_new_process(make, path, request_id, "yes") for request_id in questions]
    assert [lines[:2] for lines in told] == [[RUN, "IDLE_WITH_PENDING_REQUESTS"], [RUN, "IDLE"]]
    assert told[0][2].startswith(f"{C} asked first: yes; ")
    assert told[1][2].startswith(f"{C} asked second: yes; ")
    assert told[1][2].endswith(f"({C} argument)")
    assert with_canary(tmp_path) == []


def in_new_process(*arguments: object) -> list[str]:
    """Run the module of the desk and return the lines that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.encryption.secret_desk", *map(str, arguments)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_save_does_not_read_what_it_does_not_change() -> None:
    """A run that goes on in one process reads its records once, when it is restored, and writes what changed."""
    inner = WatchedStorage(clock=ManualClock())
    store = EncryptedCheckpointStorage(inner, ring())
    maker = CommitMaker()
    big = b"x" * 1_000_000

    async def main() -> None:
        await store.commit(maker.claim({"big": big, "small": b"0"}))
        for number in range(20):
            await store.commit(maker.step({"small": b"%d" % number}))

    asyncio.run(main())
    assert inner.loads == 0
    assert [len(commit.puts) for commit in inner.given] == [2] + [1] * 20
    assert max(sum(len(put.data) for put in commit.puts) for commit in inner.given[1:]) < 200
    other = EncryptedCheckpointStorage(inner, ring())

    async def go_on() -> None:
        stored = await other.load(Latest("run"))
        assert stored is not None
        assert stored.records == {"big": big, "small": b"19"}
        await other.commit(maker.copy(owner="next", tag="n").claim({"small": b"20"}))

    asyncio.run(go_on())
    assert inner.loads == 1
    assert Status.RUNNING is asyncio.run(other.head("run")).header.status


def test_big_records_are_compressed_and_read_without_the_store_around() -> None:
    """A store that asks for it is given big records compressed; any process with the extra goes on with such a run."""
    inner = WatchedStorage()
    one, two = start(CompressedCheckpointStorage(inner))
    big = CanaryNote(LONG)
    done = desk(CompressedCheckpointStorage(inner)).run_sync(responses={one: LONG, two: "no"}, run_args=ARGUMENTS)
    records = [put.data for commit in inner.given for put in commit.puts]
    assert {data[:2] for data in records} == {b"RH", b"RZ"}
    assert max(len(data) for data in records) < 5_000 < len(LONG)
    plain = WatchedStorage()
    one, two = start(plain)
    desk(plain).run_sync(responses={one: LONG, two: "no"}, run_args=ARGUMENTS)
    assert {put.data[:2] for commit in plain.given for put in commit.puts} == {b"RH"}
    again = desk(inner).run_sync(big, checkpoint=done)
    assert again.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert again.checkpoint.state == done.checkpoint.state == {f"{C}-closed": LONG}


AROUND = [CompressedCheckpointStorage, lambda store: EncryptedCheckpointStorage(store, ring())]


@pytest.mark.parametrize("around", AROUND)
def test_a_store_around_a_store_gives_back_what_deleted_runs_have_left(tmp_path, around) -> None:
    """`vacuum` is that of the store inside, and where that has none, the error says whose it is."""

    async def main() -> list[int]:
        async with around(SqliteCheckpointStorage(tmp_path / "runs.db")) as store:
            maker = CommitMaker()
            await store.commit(maker.claim({"k": random.Random(1).randbytes(1_000_000)}))
            await store.commit(maker.end())
            await store.delete("run")
            before = sum(file.stat().st_size for file in tmp_path.glob("runs.db*") if file.is_file())
            await store.vacuum()
            return [before, sum(file.stat().st_size for file in tmp_path.glob("runs.db*") if file.is_file())]

    before, after = asyncio.run(main())
    assert before > 1_000_000
    assert after < 200_000
    with pytest.raises(WrongCallError, match="InMemoryCheckpointStorage has no vacuum"):
        asyncio.run(around(InMemoryCheckpointStorage()).vacuum())
