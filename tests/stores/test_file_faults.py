"""What the file store says where the system refuses something: what it says of a write is what is there."""

import asyncio
import errno
import itertools
import os
from pathlib import Path

import msgspec
import pytest

from rehydrate.errors import StoreBrokenError, StoreUnavailableError
from rehydrate.model.checkpoint import Latest, Offer, RequestRow
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw_files import CLOCK, quick_folder


class Refusing:
    """Lets one `os.open` fail, the one with this number."""

    def __init__(self, number: int, error: int) -> None:
        self.left = number
        self.error = error
        self.open = os.open

    def __call__(self, *arguments: object, **more: object) -> int:
        self.left -= 1
        if self.left == -1:
            raise OSError(self.error, os.strerror(self.error))
        return self.open(*arguments, **more)


async def commit_refused(path: Path, refusing: Refusing, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, int]:
    """Make a commit that answers a request and takes an offer; tell whether it failed, and what the head is."""
    maker = CommitMaker()
    async with FileCheckpointStorage(path, clock=CLOCK) as store:
        asked = (RequestRow("q", "run", "", "open"),)
        await store.commit(msgspec.structs.replace(maker.claim({"k": b"0"}), requests=asked))
        await store.offer(Offer("run", "letter", b"come"))
        commit = maker.step({"k": b"1"}, requests=[RequestRow("q", "run", "", "answered")])
        monkeypatch.setattr(os, "open", refusing)
        try:
            await store.commit(msgspec.structs.replace(commit, taken=(1,)))
            failed = False
        except StoreUnavailableError:
            failed = True
        monkeypatch.setattr(os, "open", refusing.open)
        async with FileCheckpointStorage(path, clock=CLOCK) as again:
            stored = await again.load(Latest("run"))
            offers = await again.offers("run")
        assert stored is not None
        assert len(offers) == 1 - stored.header.seq
        return failed, stored.header.seq


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_a_commit_that_fails_for_want_of_a_file_is_not_there(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever file cannot be opened: a commit that was refused is not there, and one that is there was not refused."""
    found: list[tuple[bool, int]] = []
    for number in itertools.count():
        refusing = Refusing(number, error)
        with quick_folder() as folder:
            found.append(asyncio.run(commit_refused(folder / "runs", refusing, monkeypatch)))
        if refusing.left >= 0:
            break
    assert set(found) == {(True, 0), (False, 1)}
    assert len(found) > 10


def test_a_store_that_could_not_be_made_for_a_failing_disk_answers_nothing_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the disk holds for later calls too, as it says; a new store object is made."""

    def fails(path: object, *arguments: object, **more: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    async def main() -> None:
        store = FileCheckpointStorage(tmp_path / "runs", clock=CLOCK)
        with monkeypatch.context() as patch:
            patch.setattr(os, "mkdir", fails)
            with pytest.raises(StoreBrokenError, match="Then make a new store object"):
                await store.head("run")
        with pytest.raises(StoreBrokenError, match="make a new store object"):
            await store.head("run")
        await store.close()
        async with FileCheckpointStorage(tmp_path / "runs", clock=CLOCK) as again:
            assert await again.head("run") is None

    asyncio.run(main())
