"""Locks between processes: who holds them is known, and who is gone holds nothing."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rehydrate.errors import StoreFullError, StoreUnavailableError
from rehydrate.stores import owner_locks
from rehydrate.stores.file_lock import FileLock
from rehydrate.stores.owner_locks import OwnerLocks

HOLD_OWNER = """
import sys
from pathlib import Path
from typing import Any
from rehydrate.stores.owner_locks import OwnerLocks
locks = OwnerLocks(Path(sys.argv[1]), "a store")
locks.hold("theirs")
print("held", flush=True)
sys.stdin.read()
"""


def test_an_owner_lives_while_its_lock_is_held(tmp_path: Path) -> None:
    """Others see an owner from its first lock until it is released; one that never was is gone."""
    mine, others = OwnerLocks(tmp_path, "a store"), OwnerLocks(tmp_path, "a store")
    assert not others.lives("mine")
    mine.hold("mine")
    mine.hold("mine")
    assert (mine.lives("mine"), others.lives("mine"), others.lives("nobody")) == (True, True, False)
    mine.release()
    assert (mine.lives("mine"), others.lives("mine")) == (False, False)
    assert list(tmp_path.iterdir()) == []


def test_an_owner_id_is_held_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that use one owner id are told so; looking at a lock does not take it."""
    monkeypatch.setattr(owner_locks, "_TRIES", 3)
    mine, others = OwnerLocks(tmp_path, "a store"), OwnerLocks(tmp_path, "a store")
    mine.hold("same")
    with pytest.raises(StoreUnavailableError, match="held by another living process"):
        others.hold("same")
    assert others.lives("same")
    mine.release()
    others.hold("same")
    assert mine.lives("same")
    others.release()


def test_a_sweep_removes_what_dead_processes_left(tmp_path: Path) -> None:
    """Files of killed processes are removed, those of living ones and all other files stay."""
    mine = OwnerLocks(tmp_path, "a store")
    mine.hold("mine")
    (tmp_path / "notes.txt").write_text("kept")
    command = [sys.executable, "-c", HOLD_OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        mine.sweep()
        assert mine.lives("theirs")
        process.kill()
    assert not mine.lives("theirs")
    assert len(list(tmp_path.glob("*.owner"))) == 2
    OwnerLocks(tmp_path, "a store").sweep()
    assert len(list(tmp_path.glob("*.owner"))) == 1
    assert mine.lives("mine")
    mine.release()
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_a_child_that_runs_another_program_inherits_no_lock(tmp_path: Path) -> None:
    """A program that was started by the owner does not keep the owner's lock when that is released."""
    mine, others = OwnerLocks(tmp_path, "a store"), OwnerLocks(tmp_path, "a store")
    mine.hold("mine")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        descriptors = list(vars(mine)["_held"].values())
        for descriptor in descriptors:
            os.close(descriptor)
        assert not others.lives("mine")


def test_the_write_lock_is_held_by_one(tmp_path: Path) -> None:
    """Of two holders with files of their own, each waits for the other; nothing they do overlaps."""
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        lock = FileLock(tmp_path / "locks", "a store")
        for _ in range(200):
            with lock.hold():
                inside += 1
                most = max(most, inside)
                inside -= 1
        lock.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside) == (1, 0)


def test_a_removed_lock_file_is_made_again(tmp_path: Path) -> None:
    """After somebody has removed the lock files, all holders meet on new ones."""
    first, second = FileLock(tmp_path / "locks", "a store"), FileLock(tmp_path / "locks", "a store")
    for lock in (first, second):
        with lock.hold():
            pass
    for entry in (tmp_path / "locks").iterdir():
        entry.unlink()
    (tmp_path / "locks").rmdir()
    with first.hold():
        assert {entry.name for entry in (tmp_path / "locks").iterdir()} == {"gate.lock", "write.lock"}
        made = (tmp_path / "locks" / "write.lock").stat().st_ino
    with second.hold():
        assert (tmp_path / "locks" / "write.lock").stat().st_ino == made
    first.close()
    second.close()


def test_a_folder_for_locks_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Where a file stands in the place of the folder, the store says so."""
    (tmp_path / "locks").write_text("in the way")
    lock = FileLock(tmp_path / "locks", "a store")
    with pytest.raises(StoreUnavailableError, match="locks cannot be used"), lock.hold():
        pass


@pytest.mark.parametrize("name", ["gate.lock", "write.lock", ".owner"])
def test_a_lock_file_without_room_on_the_disk_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The error says to free space, and afterwards the same object can be used."""
    opened = os.open

    def full(path: str | Path, *arguments: Any, **more: Any) -> int:
        if str(path).endswith(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *arguments, **more)

    lock, owners = FileLock(tmp_path, "a store"), OwnerLocks(tmp_path, "a store")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(StoreFullError, match="Free space on the disk"):
            with lock.hold():
                owners.hold("me")
    with lock.hold():
        owners.hold("me")
    owners.release()
    lock.close()
