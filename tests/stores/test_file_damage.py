"""What is damaged in a file store is reported with its name, never skipped."""

import json
import shutil
from pathlib import Path

import pytest

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, RehydrateError
from rehydrate.model.checkpoint import Latest
from rehydrate.stores import file_format
from tests.stores.raw_files import everything, files, fill, quick_folder, use


def sealed(line: dict[str, object]) -> bytes:
    """Return a line with a checksum that fits."""
    body = json.dumps(line, separators=(",", ":")).encode()[:-1]
    return body + b',"check":"' + file_format.checksum(body).encode() + b'"}\n'


@pytest.mark.parametrize(
    "every", [41, pytest.param(5, marks=pytest.mark.proof), pytest.param(1, marks=pytest.mark.exhaustive)]
)
def test_every_flipped_bit_is_reported(every: int) -> None:
    """With any bit of any file flipped, each answer is the right one or an error, and one at least is an error."""
    with quick_folder() as folder:
        path = folder / "runs"
        fill(path)
        right = use(path, everything)
        for file in files(path):
            data = file.read_bytes()
            for place in range(0, len(data), every):
                for bit in range(8) if every == 1 else [place % 8]:
                    flipped = bytearray(data)
                    flipped[place] ^= 1 << bit
                    file.write_bytes(flipped)
                    found = use(path, everything)
                    assert wrong(found, right) == [], (file, place, bit)
                    assert any(isinstance(answer, RehydrateError) for answer in found), (file, place, bit)
            file.write_bytes(data)


@pytest.mark.parametrize("every", [37, pytest.param(1, marks=pytest.mark.proof)])
def test_every_truncation_is_reported(every: int) -> None:
    """With any file cut at any place, each answer is the right one or an error, and one at least is an error."""
    with quick_folder() as folder:
        path = folder / "runs"
        fill(path)
        right = use(path, everything)
        for file in files(path):
            data = file.read_bytes()
            for length in [*range(0, len(data), every), len(data) - 1]:
                file.write_bytes(data[:length])
                found = use(path, everything)
                assert wrong(found, right) == [], (file, length)
                assert any(isinstance(answer, RehydrateError) for answer in found), (file, length)
            file.write_bytes(data + b"\n")
            assert any(isinstance(answer, RehydrateError) for answer in use(path, everything)), file
            file.write_bytes(data)


def wrong(found: list[object], right: list[object]) -> list[object]:
    return [
        answer
        for answer, expected in zip(found, right, strict=True)
        if not isinstance(answer, RehydrateError) and answer != expected
    ]


def test_a_lost_file_is_reported_or_what_it_pointed_to_is_not_found(tmp_path: Path) -> None:
    """Without any one of its files a store says what is damaged, or what was in that one is not found."""
    path = tmp_path / "runs"
    fill(path)
    right = use(path, everything)
    for file in files(path):
        data = file.read_bytes()
        file.unlink()
        found = use(path, everything)
        missed = [answer for answer in wrong(found, right) if answer is not None]
        if file.name == "tags.json" or file.parent.name == "inbox":
            assert missed in ([], [{}], [[]]), file
        elif file.parts[-3] in {"checkpoints", "requests", "turns"}:
            assert missed in ([], [[]]), file
            assert None in found, file
        else:
            assert missed == [], file
            assert any(isinstance(answer, CheckpointCorruptError) for answer in found), file
        file.write_bytes(data)


@pytest.mark.parametrize("seq", [0, 1, 2])
def test_latest_raises_where_a_commit_that_it_needs_is_lost(tmp_path: Path, seq: int) -> None:
    """The head does not load without a commit that its records are in, and never as an earlier checkpoint."""
    path = tmp_path / "runs"
    fill(path)
    (path / f"runs/run/commits-1/00000000/{seq:010d}.commit").unlink()
    with pytest.raises(CheckpointCorruptError, match=f"checkpoint number {seq} of run 'run'"):
        use(path, lambda store: store.load(Latest("run")))
    with pytest.raises(CheckpointCorruptError, match=f"checkpoint number {seq} of run 'run'"):
        use(path, lambda store: store.history("run"))


@pytest.mark.proof
def test_swapped_files_are_reported(tmp_path: Path) -> None:
    """An intact file in the place of another one, of this run or of another, is damage."""
    path = tmp_path / "runs"
    fill(path)
    fill(path, "other")
    right = use(path, everything)
    kept = {file: file.read_bytes() for file in files(path)}
    for file, data in kept.items():
        for stranger, strange in kept.items():
            if stranger == file or stranger.name == "rehydrate-store.json":
                continue
            file.write_bytes(strange)
            found = use(path, everything)
            assert wrong(found, right) == [], (file, stranger)
            if "other" not in file.parts and file.parts[-3] not in {"checkpoints", "requests", "turns"}:
                assert any(isinstance(answer, RehydrateError) for answer in found), (file, stranger)
        file.write_bytes(data)


def test_an_older_head_file_is_an_older_run(tmp_path: Path) -> None:
    """A head file from a backup, put back alone, takes the run back as a whole; what came later is not found."""
    path = tmp_path / "runs"
    maker = fill(path)
    head = path / "runs/run/head.json"
    old = head.read_bytes()
    use(path, lambda store: store.commit(maker.claim({"a": b"third a"})))
    head.write_bytes(old)
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert stored.header.seq == 2
    assert use(path, lambda store: store.load("run:3")) is None


@pytest.mark.parametrize("name", ["rehydrate-store.json", "runs/run/head.json"])
def test_a_newer_format_says_so(tmp_path: Path, name: str) -> None:
    """Files of a newer version are an error of their own, even where their fields are others."""
    path = tmp_path / "runs"
    fill(path)
    (path / name).write_bytes(sealed({"rehydrate": 7, "format": 2}))
    with pytest.raises(CheckpointFormatError, match="has format 2; this version reads up to 1"):
        use(path, lambda store: store.head("run"))


def test_a_header_of_a_newer_format_says_so(tmp_path: Path) -> None:
    """A commit whose checkpoint is of a newer format is an error of its own."""
    path = tmp_path / "runs"
    fill(path)
    commit = path / "runs/run/commits-1/00000000/0000000002.commit"
    commit.write_bytes(sealed({"rehydrate": "commit", "format": 1, "header": {"format": 9}}))
    with pytest.raises(CheckpointFormatError, match="has format 9; this version reads up to 1"):
        use(path, lambda store: store.head("run"))


@pytest.mark.parametrize(
    "name",
    [
        "new.head",
        "new.forget",
        "new.commit",
        *(f"new.{end}/commits-1/00000000/0000000000.commit" for end in ("run", "gone")),
    ],
)
def test_what_a_newer_version_left_behind_holds_nobody_up(tmp_path: Path, name: str) -> None:
    """What it has not finished stays for it, as nobody else can read what is to be undone; all runs can be written."""
    path = tmp_path / "runs"
    maker = fill(path)
    left = path / "tmp" / name
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(sealed({"rehydrate": 7, "format": 2}))
    use(path, lambda store: store.commit(maker.claim({"a": b"third a"})))
    assert use(path, lambda store: store.read("run", ["a"])) == {"a": b"third a"}
    assert left.exists()


def test_a_damaged_run_is_not_deleted_by_halves(tmp_path: Path) -> None:
    """Deleting a run that has a damaged commit says so and removes nothing; put right, it is deleted."""
    path = tmp_path / "runs"
    fill(path)
    before = files(path)
    commit = path / "runs/run/commits-1/00000000/0000000001.commit"
    data = commit.read_bytes()
    commit.write_bytes(data[:-1])
    with pytest.raises(CheckpointCorruptError, match="checkpoint number 1 of run 'run'"):
        use(path, lambda store: store.delete("run"))
    assert files(path) == before
    commit.write_bytes(data)
    assert use(path, lambda store: store.delete("run")) is True
    shutil.rmtree(path / "locks")
    assert [file.name for file in files(path)] == ["rehydrate-store.json"]


def test_a_copy_of_a_run_beside_it_is_no_second_run(tmp_path: Path) -> None:
    """A folder that is not named by its run is reported, instead of listing the run twice and paging without end."""
    path = tmp_path / "runs"
    fill(path)
    shutil.copytree(path / "runs" / "run", path / "runs" / "run.bak")
    with pytest.raises(CheckpointCorruptError, match="it belongs to run 'run'"):
        use(path, lambda store: store.runs())
    assert use(path, lambda store: store.load(Latest("run"))) is not None
