"""How the file store deals with its folder: what lies where, what a save costs, kills, and what cannot be used."""

import asyncio
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rehydrate.errors import (
    CheckpointCorruptError,
    RunBusyError,
    StoreBrokenError,
    StoreUnavailableError,
    WrongCallError,
)
from rehydrate.model.checkpoint import At, Latest, RequestRow, Status
from rehydrate.stores import file_disk, file_lock
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.stores.file_names import escaped, unescaped
from rehydrate.testing.contract_names import HOSTILE
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw_files import CLOCK, files, fill, quick_folder, use


def names(path: Path) -> list[str]:
    """Return the files of a store but its locks, relative to its folder, with hashes left out."""
    found = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    pointers = ("checkpoints", "requests", "turns")
    return sorted(
        f"{file.parts[0]}/..." if file.parts[0] in pointers else str(file) for file in found if file.parts[0] != "locks"
    )


def test_a_person_finds_a_run_by_its_name(tmp_path: Path) -> None:
    """A run is a folder of its name, its commits are files by number, and who waits is a list of names."""
    path = tmp_path / "runs"
    fill(path, "inbox-7")
    assert names(path) == [
        *["checkpoints/..."] * 3,
        "inboxes/waiting/inbox-7",
        "open/inbox-7/q-inbox-7",
        "rehydrate-store.json",
        "requests/...",
        "runs/inbox-7/commits-1/00000000/0000000000.commit",
        "runs/inbox-7/commits-1/00000000/0000000001.commit",
        "runs/inbox-7/commits-1/00000000/0000000002.commit",
        "runs/inbox-7/head.json",
        f"runs/inbox-7/inbox/0000000001-{hashlib.sha256(b'letter').hexdigest()[:16]}.json",
        "runs/inbox-7/tags.json",
        "statuses/idle/inbox-7",
        "timers/waiting/inbox-7",
        "turns/...",
        "workflows/flow/inbox-7",
    ]


def test_the_first_two_lines_of_a_commit_are_json(tmp_path: Path) -> None:
    """The first line has the header and the second what was written; the bytes of the records follow in that order."""
    path = tmp_path / "runs"
    fill(path)
    first, second, rest = (path / "runs/run/commits-1/00000000/0000000002.commit").read_bytes().split(b"\n", 2)
    header = json.loads(first)["header"]
    assert (header["run_id"], header["seq"], header["status"]) == ("run", 2, "IDLE")
    assert [put[:2] for put in json.loads(second)["puts"]] == [["b", 8]]
    assert rest == b"second bfirstsecond"
    assert json.loads((path / "runs/run/head.json").read_text())["checkpoint_id"] == "run:2"


@pytest.mark.parametrize("text", [*HOSTILE, "", ".", "..", ".hidden", "a.b", "A", "a", "%", "ü" * 100, "a" * 201, "/"])
def test_names_are_safe_and_lead_back(text: str) -> None:
    """Any id becomes one name without slash, dot in front, capital or control character, of 200 bytes at most."""
    name = escaped(text)
    assert 1 <= len(name.encode()) <= 200
    assert name == name.lower()
    assert not name.startswith(".")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-%")
    assert unescaped(name) == (None if len(text.encode()) > 60 else text)


def test_different_ids_have_different_names() -> None:
    """Also long ones that begin alike, and those that differ in case only."""
    texts = [*HOSTILE, "", "%", "%%", "a", "A", "%61", "x" * 301, "x" * 300 + "y", "ü" * 100, "ü" * 99 + "a"]
    assert len({escaped(text) for text in texts}) == len(texts)


def test_deleting_a_run_leaves_no_file(tmp_path: Path) -> None:
    """What is left after the end of a run are the files that were there before it."""
    path = tmp_path / "runs"
    fill(path, "other")
    before = names(path)
    fill(path, "run")
    assert use(path, lambda store: store.delete("run")) is True
    assert names(path) == before


def test_a_save_costs_what_changed() -> None:
    """With ten megabytes of state in a thousand records a commit writes some hundred bytes."""
    maker = CommitMaker()
    big = {f"k{number:04d}": b"x" * 10_000 for number in range(1000)}

    async def main(path: Path) -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim(big))
            for number in range(60):
                await store.commit(maker.step({"counter": b"%d" % number}))
            assert (await store.load(Latest("run"))).records == maker.records

    with quick_folder() as folder:
        path = folder / "runs"
        asyncio.run(main(path))
        sizes = [(path / f"runs/run/commits-1/00000000/{seq:010d}.commit").stat().st_size for seq in range(61)]
    assert sizes[0] > 10_000_000
    assert max(sizes[1:]) < 1_000


def test_a_long_history_costs_its_length() -> None:
    """After a thousand commits of a few records the files have grown evenly, and the head loads from a few of them."""
    maker = CommitMaker()
    opens: list[object] = []
    opened = os.open

    def counted(path: object, *more: int) -> int:
        opens.append(path)
        return opened(path, *more)

    async def main(path: Path) -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim({f"k{number}": b"0" for number in range(5)}))
            for number in range(1000):
                await store.commit(maker.step({f"k{number % 5}": b"%d" % number}))
            patch.setattr(os, "open", counted)
            assert (await store.load(Latest("run"))).records == maker.records
            assert [header.seq for header in await store.history("run", before=500, limit=3)] == [499, 498, 497]

    with quick_folder() as folder:
        with pytest.MonkeyPatch.context() as patch:
            asyncio.run(main(folder / "runs"))
        sizes = {int(file.stem): file.stat().st_size for file in (folder / "runs/runs/run").rglob("*.commit")}
    assert len(opens) < 100
    halves = [sum(size for seq, size in sizes.items() if seq in half) for half in (range(1, 501), range(501, 1001))]
    assert halves[1] < 1.05 * halves[0]


def test_events_of_a_long_run_are_found_from_any_number() -> None:
    """Pages of events begin in the right commit, also across folders of commits and commits without any."""
    maker = CommitMaker()

    async def main(path: Path) -> None:
        async with FileCheckpointStorage(path, clock=CLOCK, keep_events=True) as store:
            number = 0
            for step in range(600):
                commit = maker.step() if step else maker.claim()
                events = () if step % 3 else (b"%d" % (number + 1), b"%d" % (number + 2))
                number += len(events)
                header = msgspec.structs.replace(commit.header, events=number)
                await store.commit(msgspec.structs.replace(commit, header=header, events=events))
            for after in (0, 1, 170, 171, 255, 256, 398, 399, 400):
                page = await store.events("run", after=after, limit=4)
                expected = range(after + 1, min(after + 5, 401))
                assert [(event.number, event.data) for event in page] == [(n, b"%d" % n) for n in expected]

    with quick_folder() as folder:
        asyncio.run(main(folder / "runs"))


KILLED = """
import asyncio, os, sys
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

async def main():
    store = FileCheckpointStorage(sys.argv[1], clock=ManualClock())
    maker = CommitMaker(sys.argv[2], owner=str(os.getpid()))
    head = await store.head(maker.run_id)
    if head is not None:
        maker.head, maker.seq, maker.epoch = head.header.checkpoint_id, head.header.seq, head.epoch
        maker.know("k", b"%d" % maker.seq)
    await store.commit(maker.claim({"k": b"%d" % (maker.seq + 1)}))
    while True:
        os.write(1, b"%d\\n" % maker.seq)
        await store.commit(maker.step({"k": b"%d" % (maker.seq + 1)}))

asyncio.run(main())
"""


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.proof)])
def test_acknowledged_commits_of_two_processes_survive_kills(rounds: int) -> None:
    """After SIGKILL of two processes on one folder, each head is the last acknowledged commit or one that followed."""
    with quick_folder() as folder:
        path = folder / "runs"
        for number in range(rounds):
            run_ids = ("one", "two")
            processes = [
                subprocess.Popen([sys.executable, "-c", KILLED, str(path), run_id], stdout=subprocess.PIPE)
                for run_id in run_ids
            ]
            lines = [[process.stdout.readline() for _ in range(3 + number % 20)] for process in processes]
            for process in processes:
                process.kill()
            for run_id, process, told in zip(run_ids, processes, lines, strict=True):
                with process:
                    acknowledged = int([*told, *process.stdout.readlines()][-1])
                stored = use(path, lambda store, run_id=run_id: store.load(Latest(run_id)))
                assert stored.header.seq in (acknowledged, acknowledged + 1)
                assert stored.records == {"k": b"%d" % stored.header.seq}
                assert not stored.head.alive


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A folder that holds anything else is no place for a store; nothing is made in it."""
    (tmp_path / "thesis.tex").write_text("\\documentclass")
    with pytest.raises(StoreUnavailableError, match=r"other files in it \(thesis\.tex\)\. Check the path") as no:
        use(tmp_path, lambda store: store.head("run"))
    assert no.value.store == repr(str(tmp_path))
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_a_path_that_leads_to_no_folder_is_refused(tmp_path: Path) -> None:
    """A file, and a folder in a folder that is not there, each say what is wrong."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="it is no folder"):
        use(tmp_path / "file", lambda store: store.head("run"))
    with pytest.raises(StoreUnavailableError, match="does not exist"):
        use(tmp_path / "deep" / "runs", lambda store: store.head("run"))
    for path in ("", "a\0b", "\ud800", 3, b"runs", None):
        with pytest.raises(WrongCallError):
            FileCheckpointStorage(path)


def test_a_store_without_its_marker_is_damage(tmp_path: Path) -> None:
    """Where the marker is lost, a folder with runs is not taken for an empty one."""
    fill(tmp_path / "runs")
    (tmp_path / "runs" / "rehydrate-store.json").unlink()
    with pytest.raises(CheckpointCorruptError, match=r"it has runs and no rehydrate-store\.json"):
        use(tmp_path / "runs", lambda store: store.head("run"))


@pytest.mark.parametrize(
    "link", ["runs", "runs/run", "runs/run/head.json", "runs/run/commits-1/00000000/0000000002.commit"]
)
def test_a_symbolic_link_is_not_followed(tmp_path: Path, link: str) -> None:
    """A link in the place of a folder or file is refused, wherever it leads."""
    path, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    fill(path)
    (path / link).rename(elsewhere)
    (path / link).symlink_to(elsewhere)
    with pytest.raises(StoreUnavailableError, match="symbolic link"):
        use(path, lambda store: store.load(Latest("run")))
    with pytest.raises(StoreUnavailableError, match="symbolic link"):
        use(path, lambda store: store.delete("run"))
    assert elsewhere.exists()


def test_a_folder_that_cannot_be_written_is_refused() -> None:
    """A process without the right to write says so, and how to go on."""
    program = """
import asyncio, os, sys
from rehydrate.errors import StoreUnavailableError
from rehydrate.stores.file import FileCheckpointStorage
if os.geteuid() == 0:
    os.setuid(65534)
for call in ("head", "delete"):
    try:
        asyncio.run(getattr(FileCheckpointStorage(sys.argv[1]), call)("run"))
    except StoreUnavailableError as error:
        print(error)
"""
    with quick_folder() as folder:
        folder.chmod(0o755)
        readable = folder / "runs"
        fill(readable)
        for entry in [*readable.rglob("*"), readable]:
            entry.chmod(0o555 if entry.is_dir() else 0o444)
        command = [sys.executable, "-c", program, str(readable)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2
    for line in done.stdout.splitlines():
        assert "Permission denied" in line
        assert line.endswith("can write there.")


def test_a_folder_that_is_moved_away_refuses_every_call(tmp_path: Path) -> None:
    """Nothing is written where nobody finds it; moved back, the store goes on."""
    path, maker = tmp_path / "runs", CommitMaker()

    async def main() -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim())
            path.rename(tmp_path / "away")
            lost = maker.copy(owner="owner", tag="lost")
            for call in (store.head("run"), store.commit(lost.step()), store.runs(), store.delete("run")):
                with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                    await call
            (tmp_path / "away").rename(path)
            await store.commit(maker.step())

    asyncio.run(main())


FULL_DISK = """
import asyncio, resource, sys
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

async def main():
    async with FileCheckpointStorage(sys.argv[1], clock=ManualClock()) as store:
        maker = CommitMaker()
        await store.commit(maker.claim({"k": b"kept"}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        big = maker.copy(owner="owner", tag="big")
        results = await asyncio.gather(store.commit(big.step({"big": b"x" * 4_000_000})), return_exceptions=True)
        print(results[0])
        await store.commit(maker.step({"l": b"after"}))
        print(sorted((await store.load(Latest("run"))).records.items()))

asyncio.run(main())
"""


def test_a_full_disk_fails_the_commit_and_leaves_the_store_usable(tmp_path: Path) -> None:
    """A commit that the disk has no room for fails and leaves nothing; what fits goes on."""
    path = tmp_path / "runs"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    refused, records = done.stdout.splitlines()
    assert "File too large" in refused
    assert "Raise the limit of file sizes" in refused
    assert records == "[('k', b'kept'), ('l', b'after')]"
    assert list((path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", range(6))
def test_a_failed_sync_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """After a sync that failed every call is refused, and a new store object finds the commit whole or not at all."""
    path, maker = tmp_path / "runs", CommitMaker()
    synced = os.fsync
    left = [number]

    def fails(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        synced(descriptor)

    async def main() -> None:
        store = FileCheckpointStorage(path, clock=CLOCK)
        await store.commit(maker.claim({"k": b"0"}))
        late = maker.copy(owner="owner", tag="late")
        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(StoreBrokenError, match="could not be made to last") as no:
            await store.commit(late.step({"k": b"1"}))
        assert str(no.value).endswith("Then make a new store object and load the head.")
        monkeypatch.setattr(os, "fsync", synced)
        for call in (store.head("run"), store.commit(maker.copy(owner="owner", tag="again").step())):
            with pytest.raises(StoreBrokenError, match="the disk failed before"):
                await call
        async with FileCheckpointStorage(path, clock=CLOCK) as again:
            stored = await again.load(Latest("run"))
            assert (stored.header.checkpoint_id, stored.records) in [("run:0", {"k": b"0"}), ("run:1late", {"k": b"1"})]
            follower = late if stored.header.seq else maker
            await again.commit(follower.step({"k": b"2"}))
        await store.close()

    asyncio.run(main())


def test_a_process_that_stays_in_a_write_is_waited_for_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the write lock does not come free in time, a commit says so and names the lock file; reads go on."""
    monkeypatch.setattr(file_lock, "PATIENCE", 0.05)
    path, maker = tmp_path / "runs", CommitMaker()

    async def main() -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim())
            holder = file_lock.FileLock(path / "locks", "a store")
            with holder.hold():
                lost = maker.copy(owner="owner", tag="lost")
                with pytest.raises(StoreUnavailableError, match=r"write\.lock"):
                    await store.commit(lost.step())
                assert await store.head("run") is not None
            await store.commit(maker.step())
            holder.close()

    asyncio.run(main())


def test_what_the_system_says_has_a_next_action() -> None:
    """Errors of disk, rights and network each say what to do."""
    for number, fix in [
        (errno.ENOSPC, "Free space"),
        (errno.EROFS, "Make the file system of the store writable"),
        (errno.EIO, "Check the disk"),
        (errno.ESTALE, "Check the network"),
        (errno.ENOLCK, "flock"),
        (errno.EXDEV, "Check the disk and the rights"),
    ]:
        error = file_disk.translated(OSError(number, os.strerror(number), "/store/file"), "'/store'")
        assert isinstance(error, StoreUnavailableError)
        assert os.strerror(number) in error.problem
        assert fix in error.fix


@pytest.mark.parametrize("created", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_json_cannot_hold_comes_back(tmp_path: Path, created: float) -> None:
    """NaN and the infinities as a time, and a lease without end, are kept."""
    path, maker = tmp_path / "runs", CommitMaker()
    maker.created = created
    use(path, lambda store: store.commit(maker.claim(seconds=float("inf"))))
    header = use(path, lambda store: store.history("run"))[0]
    assert repr(header.created) == repr(created)
    assert use(path, lambda store: store.head("run")).owner == "owner"


def test_a_mark_that_was_left_misleads_nobody(tmp_path: Path) -> None:
    """A mark that a dead process left is looked through when runs or requests are listed, and goes with the run."""
    path = tmp_path / "runs"
    fill(path)
    (path / "statuses" / "failed").mkdir()
    (path / "statuses" / "failed" / "run").touch()
    (path / "open" / "run" / "never-asked").touch()
    assert use(path, lambda store: store.runs(status=Status.FAILED)) == []
    assert [row.request_id for row in use(path, lambda store: store.requests())] == ["q-run"]
    assert use(path, lambda store: store.delete("run")) is True
    assert list((path / "statuses" / "failed").iterdir()) == []
    assert list((path / "open").iterdir()) == []


def test_a_run_removed_by_hand_is_not_there(tmp_path: Path) -> None:
    """Where a person has removed a run's folder, the run is gone and its ids can be used again."""
    path = tmp_path / "runs"
    fill(path)
    for file in files(path / "runs" / "run"):
        file.unlink()
    for folder in ("inbox", "commits-1/00000000", "commits-1", ""):
        (path / "runs/run" / folder).rmdir()

    async def look(store: FileCheckpointStorage) -> list[object]:
        calls = (
            store.head("run"),
            store.load("run:1"),
            store.find_request("q-run"),
            store.find_turn("flow", "key-run"),
        )
        return [await call for call in calls]

    assert use(path, look) == [None] * 4
    assert use(path, lambda store: store.runs(status=Status.IDLE)) == []
    maker = CommitMaker()
    request = RequestRow("q-run", "run", "", "open")
    use(path, lambda store: store.commit(msgspec.structs.replace(maker.claim(), requests=(request,))))
    assert use(path, lambda store: store.find_request("q-run")) == request


def test_a_run_owned_by_a_living_process_is_not_deleted(tmp_path: Path) -> None:
    """Deleting is refused while the owner lives, and works once its process is gone."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "runs"), "run"], stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        with pytest.raises(RunBusyError):
            use(tmp_path / "runs", lambda store: store.delete("run"))
        other.kill()
    assert use(tmp_path / "runs", lambda store: store.delete("run")) is True


def test_long_request_ids_are_listed_in_their_order(tmp_path: Path) -> None:
    """Open requests whose ids are too long for a name are found and ordered like all others."""
    path, maker = tmp_path / "runs", CommitMaker()
    ids = ["b" * 300 + "2", "b" * 300 + "1", "a", "c", "b" * 299]
    rows = [RequestRow(request_id, "run", "", "open") for request_id in ids]

    async def main() -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(msgspec.structs.replace(maker.claim(), requests=tuple(rows)))
            assert [row.request_id for row in await store.requests()] == sorted(ids)
            assert [row.request_id for row in await store.requests(after="b" * 299, limit=2)] == sorted(ids)[2:4]
            closed = [msgspec.structs.replace(row, state="answered") for row in rows]
            await store.commit(maker.step(requests=closed))
            assert await store.requests() == []

    asyncio.run(main())
    assert list((path / "open").iterdir()) == []


def test_forgotten_checkpoints_leave_no_file_and_no_data(tmp_path: Path) -> None:
    """What a run has forgotten is not on the disk any more, and what it still needs is there once."""
    path, maker = tmp_path / "runs", CommitMaker()

    async def main() -> None:
        async with FileCheckpointStorage(path, clock=CLOCK) as store:
            await store.commit(maker.claim({"k": b"secret of old" * 100, "big": b"x" * 100_000}))
            await store.commit(maker.step({"k": b"secret of new" * 100}))
            await store.commit(maker.step({"k": b"third"}))
            assert await store.forget("run", [0, 1]) == [0, 1]
            assert (await store.load(Latest("run"))).records == {"k": b"third", "big": b"x" * 100_000}

    asyncio.run(main())
    assert names(path) == [
        "checkpoints/...",
        "rehydrate-store.json",
        "runs/run/commits-2/00000000/0000000002.commit",
        "runs/run/head.json",
        "statuses/running/run",
        "timers/waiting/run",
        "workflows/flow/run",
    ]
    data = (path / "runs/run/commits-2/00000000/0000000002.commit").read_bytes()
    assert b"secret" not in data
    assert len(data) < 102_000


def test_checkpoints_are_forgotten_in_a_long_run() -> None:
    """Of three hundred checkpoints with requests, turns and events, those that stay are whole, and so are all rows."""
    maker = CommitMaker()

    async def main(path: Path) -> None:
        async with FileCheckpointStorage(path, clock=CLOCK, keep_events=True) as store:
            kept: dict[int, dict[str, bytes]] = {}
            for step in range(300):
                puts = {f"k{step % 7}": b"%d" % step}
                row = RequestRow(f"q{step}", "run", "", "open" if step % 2 else "answered")
                commit = maker.step(puts, [f"k{(step + 3) % 7}"], requests=[row]) if step else maker.claim(puts)
                header = msgspec.structs.replace(commit.header, events=step + 1)
                turn = maker.turn(f"key{step}", step)
                await store.commit(msgspec.structs.replace(commit, header=header, events=(b"%d" % step,), turn=turn))
                kept[step] = dict(maker.records)
            asked = [seq for seq in range(300) if seq % 10]
            assert await store.forget("run", asked) == [seq for seq in asked if seq != 299]
            for seq in (*range(0, 300, 10), 299):
                assert (await store.load(f"run:{seq}")).records == kept[seq]
            assert [event.number for event in await store.events("run", limit=1000)] == list(range(1, 301))
            assert len(await store.requests(limit=1000)) == 150
            assert (await store.find_request("q13")).state == "open"
            assert (await store.find_turn("flow", "key13")).number == 13
            assert await store.load("run:13") is None
            again = await store.archive("run")
            await store.commit(maker.end())
            await store.delete("run")
            await store.adopt(again)
            assert await store.archive("run") == again

    with quick_folder() as folder:
        asyncio.run(main(folder / "runs"))


def test_what_leads_to_a_commit_that_never_came_is_not_followed(tmp_path: Path) -> None:
    """Pointers that a lost commit left behind lead nowhere, also where another commit has its number since."""
    path, lost = tmp_path / "runs", tmp_path / "lost"
    maker = fill(path)
    shutil.copytree(path, lost)
    row = RequestRow("never", "run", "", "open")
    late = maker.copy(owner="owner", tag="late")
    use(lost, lambda store: store.commit(late.step({"a": b"late"}, requests=[row], seconds=0)))
    for kind in ("checkpoints", "requests", "open"):
        shutil.copytree(lost / kind, path / kind, dirs_exist_ok=True)

    async def look(store: FileCheckpointStorage) -> list[object]:
        open_now = [request.request_id for request in await store.requests()]
        return [await store.load("run:3late"), await store.find_request("never"), open_now]

    assert use(path, look) == [None, None, ["q-run"]]
    use(path, lambda store: store.commit(maker.claim({"a": b"third a"}, seconds=0)))
    assert use(path, look) == [None, None, ["q-run"]]
    again = maker.copy(owner="owner", tag="")
    use(path, lambda store: store.commit(again.step(requests=[row], seconds=0)))
    assert use(path, lambda store: store.find_request("never")) == row


def test_commit_files_that_the_chain_passes_by_are_no_checkpoints(tmp_path: Path) -> None:
    """A commit file that a power failure left at a number that was not used is neither listed nor loaded."""
    path, lost = tmp_path / "runs", tmp_path / "lost"
    maker = fill(path)
    shutil.copytree(path, lost)
    late = maker.copy(owner="owner", tag="late")
    use(lost, lambda store: store.commit(late.step({"a": b"late"}, seconds=0)))
    name = "runs/run/commits-1/00000000/0000000003.commit"
    shutil.copy(lost / name, path / name)
    maker.seq = 3
    use(path, lambda store: store.commit(maker.claim({"a": b"fourth a"}, seconds=0)))

    async def look(store: FileCheckpointStorage) -> list[object]:
        pages = [await store.history("run"), await store.history("run", before=4), await store.history("run", before=3)]
        archive = await store.archive("run")
        numbers = [commit.header.seq for commit in archive.commits]
        found = [await store.load(ref) for ref in (At("run", 3), "run:3late")]
        return [[header.seq for header in page] for page in pages] + [numbers, found]

    assert use(path, look) == [[4, 2, 1, 0], [2, 1, 0], [2, 1, 0], [0, 1, 2, 4], [None, None]]
    assert use(path, lambda store: store.forget("run", [1, 3])) == [1]
    assert use(path, look)[0] == [4, 2, 0]
