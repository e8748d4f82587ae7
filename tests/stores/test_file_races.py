"""Several processes at one folder of files: who opens it first, what another forgets, and what one left behind."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw_files import fill, quick_folder, use

#: Children that are let go at one moment open the store, which is not there yet, and use it.
FIRST = """
import asyncio, os, sys
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker

async def use(number):
    async with FileCheckpointStorage(sys.argv[1]) as store:
        await store.commit(CommitMaker(f"r{number}").claim({"k": b"v"}))

gate, go = os.pipe()
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(gate, 1)
        asyncio.run(use(number))
        os._exit(0)
    children.append(child)
os.close(go)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""

#: A run comes, goes on, has checkpoints forgotten, and is deleted, again and again, until the other end says enough.
COMES_AND_GOES = """
import asyncio, select, sys
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker

async def main():
    async with FileCheckpointStorage(sys.argv[1]) as store:
        while not select.select([sys.stdin], [], [], 0)[0]:
            maker = CommitMaker()
            await store.commit(maker.claim({f"k{key}": b"0" for key in range(5)}))
            for number in range(1, 4):
                await store.commit(maker.step({f"k{key}": b"%d" % number for key in range(5)}))
            await store.forget("run", [0, 1, 2])
            await store.commit(maker.end())
            print("round", flush=True)
            await store.delete("run")

asyncio.run(main())
"""


def test_processes_that_open_a_store_first_make_one(tmp_path: Path) -> None:
    """None of them takes what another is just making for damage, and what each wrote is there."""
    path = tmp_path / "runs"
    subprocess.run([sys.executable, "-c", FIRST, str(path)], check=True, timeout=60)
    assert [header.run_id for header in use(path, lambda store: store.runs())] == [f"r{n}" for n in range(8)]


def test_what_another_process_forgets_or_deletes_is_read_whole_or_not_at_all() -> None:
    """A reader finds a run as it was at one moment, or none; never half of it, and no damage."""

    async def read(store: FileCheckpointStorage) -> int:
        stored = await store.load(Latest("run"))
        if stored is not None:
            assert len(set(stored.records.values())) == 1
        for header in await store.history("run"):
            assert header.run_id == "run"
        await store.events("run")
        archive = await store.archive("run")
        assert archive is None or archive.commits[-1].header.run_id == "run"
        return len(await store.runs())

    async def main(path: Path, other: subprocess.Popen[str]) -> None:
        async with FileCheckpointStorage(path) as store:
            assert other.stdout is not None
            for _ in range(12):
                assert await asyncio.to_thread(other.stdout.readline) == "round\n"
                for _ in range(4):
                    assert await read(store) <= 1

    with quick_folder() as folder:
        command = [sys.executable, "-c", COMES_AND_GOES, str(folder / "runs")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            try:
                asyncio.run(main(folder / "runs", other))
            finally:
                other.communicate("enough\n", timeout=30)
        assert other.returncode == 0


def test_a_damaged_run_holds_up_no_other(tmp_path: Path) -> None:
    """A process that died leaves a run whose last commit is cut off: others are written, and that one is reported."""
    path = tmp_path / "runs"
    fill(path)
    folder, maker = path / "runs" / "run", CommitMaker()
    before = (folder / "head.json").read_bytes()
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    maker.records, maker.seq, maker.head = dict(stored.records), stored.header.seq, stored.header.checkpoint_id
    maker.epoch = stored.head.epoch
    use(path, lambda store: store.commit(maker.claim({"k": b"never"})))
    # The state in which the process had written the commit, and its head was not in its place.
    shutil.move(folder / "head.json", path / "tmp" / f"{os.urandom(16).hex()}.head")
    (folder / "head.json").write_bytes(before)
    commit = folder / "commits-1" / "00000000" / f"{maker.seq:010}.commit"
    commit.write_bytes(commit.read_bytes()[:-1])
    other = CommitMaker("other")
    use(path, lambda store: store.commit(other.claim({"k": b"v"})))
    use(path, lambda store: store.commit(other.end()))
    assert use(path, lambda store: store.read("other", ["k"])) == {"k": b"v"}
    commit.with_name(f"{maker.seq - 1:010}.commit").unlink()
    with pytest.raises(CheckpointCorruptError, match="run 'run'"):
        use(path, lambda store: store.load(Latest("run")))
