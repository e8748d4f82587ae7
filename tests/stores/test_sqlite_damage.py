"""What is damaged in a SQLite store is reported with its name, never skipped."""

import hashlib
import random
import shutil
from pathlib import Path

import msgspec
import pytest

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, CommitConflictError, RehydrateError
from rehydrate.model.checkpoint import At, Latest, Offer, Stored, TurnRow
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from rehydrate.stores.sqlite_writing import PART_BYTES
from rehydrate.testing.store_contract import CommitMaker
from tests.stores.raw import ask, change, fill, use

HEAD_OF_A = "(SELECT record FROM rehydrate_live WHERE key = 'a')"
HEAD_OF_B = "(SELECT record FROM rehydrate_live WHERE key = 'b')"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(f"DELETE FROM rehydrate_record WHERE id = {HEAD_OF_A}", id="a lost record"),
        pytest.param("DELETE FROM rehydrate_live WHERE key = 'a'", id="a lost entry of the head"),
        pytest.param("UPDATE rehydrate_live SET record = record - 4 WHERE key = 'a'", id="a stale record"),
        pytest.param("UPDATE rehydrate_live SET parts = parts - 1 WHERE key = 'big'", id="a part less"),
        pytest.param("UPDATE rehydrate_live SET parts = parts + 1 WHERE key = 'big'", id="a part more"),
        pytest.param("DELETE FROM rehydrate_record WHERE key IS NULL AND id % 2", id="a lost part"),
        pytest.param("UPDATE rehydrate_record SET data = x'00' WHERE key = 'a'", id="other data"),
        pytest.param("UPDATE rehydrate_record SET data = 'second a' WHERE key = 'a'", id="text instead of bytes"),
        pytest.param("UPDATE rehydrate_record SET data = NULL WHERE key = 'a'", id="nothing instead of bytes"),
        pytest.param("UPDATE rehydrate_live SET key = 'c' WHERE key = 'a'", id="another key"),
        pytest.param(
            "INSERT INTO rehydrate_live SELECT run, 'z', record, 1 FROM rehydrate_live LIMIT 1", id="one more"
        ),
    ],
)
def test_the_head_reports_changed_records(tmp_path: Path, damage: str) -> None:
    """A lost, stale, cut, swapped or added record of the head is an error that names run and checkpoint."""
    path = tmp_path / "runs.db"
    fill(path)
    assert change(path, damage) >= 1
    with pytest.raises(CheckpointCorruptError, match="checkpoint 'run:2' of run 'run'"):
        use(path, lambda store: store.load(Latest("run")))


@pytest.mark.parametrize("parts", [1, 2, 7, 8, 9, 16, 17])
def test_a_record_of_any_number_of_parts_is_whole_or_damage(tmp_path: Path, parts: int) -> None:
    """A record comes back as it was, however many rows it takes; without the last byte of the last row it is damage."""
    path = tmp_path / "runs.db"
    maker = CommitMaker()
    records = {"a": b"a", "long": random.Random(parts).randbytes(parts * PART_BYTES), "z": b"z" * PART_BYTES}
    use(path, lambda store: store.commit(maker.claim(records)))
    assert ask(path, "SELECT parts FROM rehydrate_live WHERE key = 'long'") == [(parts,)]
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert list(stored.records.items()) == list(records.items())
    last = f"(SELECT record + {parts - 1} FROM rehydrate_live WHERE key = 'long')"
    assert change(path, f"UPDATE rehydrate_record SET data = substr(data, 1, {PART_BYTES - 1}) WHERE id = {last}") == 1
    with pytest.raises(CheckpointCorruptError, match="checkpoint 'run:0' of run 'run'"):
        use(path, lambda store: store.load(Latest("run")))


def test_swapped_records_are_reported(tmp_path: Path) -> None:
    """Two records that changed places are an error, also when only one of them is read."""
    path = tmp_path / "runs.db"
    fill(path)
    swap = f"UPDATE rehydrate_live SET record = {HEAD_OF_A} + {HEAD_OF_B} - record WHERE key IN ('a', 'b')"
    assert change(path, swap) == 2
    with pytest.raises(CheckpointCorruptError, match="stale"):
        use(path, lambda store: store.load(Latest("run")))
    with pytest.raises(CheckpointCorruptError, match="belongs to another key"):
        use(path, lambda store: store.read("run", ["a"]))


def test_an_earlier_checkpoint_reports_lost_records(tmp_path: Path) -> None:
    """A record that only an earlier checkpoint needs is missed there; the head is as it was."""
    path = tmp_path / "runs.db"
    maker = fill(path)
    assert change(path, "DELETE FROM rehydrate_record WHERE data = x'66697273742061'") == 1
    with pytest.raises(CheckpointCorruptError, match="checkpoint 'run:0' of run 'run'"):
        use(path, lambda store: store.load("run:0"))
    stored = use(path, lambda store: store.load(Latest("run")))
    assert stored is not None
    assert stored.records == maker.records


@pytest.mark.parametrize(
    ("table", "column", "call"),
    [
        ("rehydrate_checkpoint", "body", lambda store: store.load(Latest("run"))),
        ("rehydrate_checkpoint", "body", lambda store: store.history("run")),
        ("rehydrate_checkpoint", "body", lambda store: store.runs()),
        ("rehydrate_run", "standing", lambda store: store.head("run")),
        ("rehydrate_run", "standing", lambda store: store.delete("run")),
        ("rehydrate_request", "body", lambda store: store.find_request("q-run")),
        ("rehydrate_turn", "body", lambda store: store.find_turn("flow", "key-run")),
        ("rehydrate_request", "body", lambda store: store.requests()),
        ("rehydrate_tag", "body", lambda store: store.tags("run")),
        ("rehydrate_tag", "body", lambda store: store.load(At("run", "begun"))),
        ("rehydrate_tag", "body", lambda store: store.forget("run", [0])),
        ("rehydrate_offer", "body", lambda store: store.offers("run")),
        ("rehydrate_offer", "body", lambda store: store.offer(Offer("run", "letter", b"come"))),
        ("rehydrate_checkpoint", "body", lambda store: store.forget("run", [1])),
        ("rehydrate_checkpoint", "body", lambda store: store.archive("run")),
        ("rehydrate_record", "data", lambda store: store.archive("run")),
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param("zeroblob(200)", id="zeros"),
        pytest.param("x''", id="nothing"),
        pytest.param("substr({column}, 1, length({column}) - 1)", id="cut"),
        pytest.param("CAST({column} || 'x' AS TEXT)", id="text"),
    ],
)
def test_damaged_rows_are_reported(tmp_path: Path, table: str, column: str, call, value: str) -> None:
    """Rows beside the records have a checksum of their own."""
    path = tmp_path / "runs.db"
    fill(path)
    assert change(path, f"UPDATE {table} SET {column} = {value.format(column=column)}") >= 1
    with pytest.raises(CheckpointCorruptError):
        use(path, call)


@pytest.mark.parametrize(
    ("damage", "call"),
    [
        (
            "UPDATE rehydrate_request SET body = (SELECT body FROM rehydrate_request WHERE request_id = 'q-other')",
            lambda store: store.find_request("q-run"),
        ),
        (
            "UPDATE rehydrate_turn SET body = (SELECT body FROM rehydrate_turn WHERE key = 'key-other')",
            lambda store: store.find_turn("flow", "key-run"),
        ),
        (
            "UPDATE rehydrate_run SET standing = (SELECT standing FROM rehydrate_run WHERE run_id = 'other')",
            lambda store: store.head("run"),
        ),
        (
            "UPDATE rehydrate_checkpoint SET body = "
            "(SELECT body FROM rehydrate_checkpoint WHERE checkpoint_id = 'other:2')",
            lambda store: store.load("run:1"),
        ),
        ("DELETE FROM rehydrate_checkpoint WHERE checkpoint_id = 'run:2'", lambda store: store.head("run")),
        ("DELETE FROM rehydrate_checkpoint WHERE checkpoint_id = 'run:2'", lambda store: store.runs()),
        ("DELETE FROM rehydrate_run WHERE run_id = 'run'", lambda store: store.load("run:1")),
    ],
)
def test_rows_of_another_and_missing_rows_are_reported(tmp_path: Path, damage: str, call) -> None:
    """An intact row in the wrong place, or one that another row needs and that is gone, is damage."""
    path = tmp_path / "runs.db"
    fill(path)
    fill(path, "other")
    assert change(path, damage) >= 1
    with pytest.raises(CheckpointCorruptError):
        use(path, call)


def test_a_header_of_a_newer_format_says_so(tmp_path: Path) -> None:
    """A header written by newer code is an error of its own, even where its fields are others."""
    path = tmp_path / "runs.db"
    fill(path)
    body = msgspec.msgpack.encode([2, 7, "no number"])
    sealed = hashlib.sha256(msgspec.msgpack.encode(["run", "flow", "run:2"]) + body).digest()[:8] + body
    change(path, f"UPDATE rehydrate_checkpoint SET body = x'{sealed.hex()}'")
    with pytest.raises(CheckpointFormatError, match="has format 2; this version reads up to 1"):
        use(path, lambda store: store.load(Latest("run")))


def test_a_missing_table_is_damage(tmp_path: Path) -> None:
    """A table that is gone is reported with the file's name."""
    path = tmp_path / "runs.db"
    fill(path)
    change(path, "DROP TABLE rehydrate_live")
    with pytest.raises(CheckpointCorruptError, match=r"runs\.db.*no such table"):
        use(path, lambda store: store.load(Latest("run")))


def test_a_checkpoint_that_a_lost_run_left_is_damage(tmp_path: Path) -> None:
    """Where the row of a run is lost, its checkpoints are found by the next new run, and named as what they are."""
    path = tmp_path / "runs.db"
    fill(path)
    assert change(path, "DELETE FROM rehydrate_run") == 1
    for run_id in ("run", "another"):
        with pytest.raises(CheckpointCorruptError, match=r"checkpoint run:0 in store .*: it is there") as no:
            use(path, lambda store, run_id=run_id: store.commit(CommitMaker(run_id).claim()))
        assert "process" not in str(no.value)
    assert ask(path, "SELECT count(*) FROM rehydrate_run") == [(0,)]


@pytest.mark.parametrize("table", ["rehydrate_turn", "rehydrate_request", "rehydrate_live"])
def test_a_checkpoint_id_in_use_says_by_what(tmp_path: Path, table: str) -> None:
    """Whatever else is lost, a commit with the id of a checkpoint that is there says which checkpoint has it."""
    path = tmp_path / "runs.db"
    maker = fill(path)
    assert change(path, f"DELETE FROM {table}") >= 1
    commit = maker.claim()
    taken = msgspec.structs.replace(commit, header=msgspec.structs.replace(commit.header, checkpoint_id="run:1"))
    with pytest.raises(CommitConflictError) as no:
        use(path, lambda store: store.commit(taken))
    assert (no.value.expected, no.value.found) == (
        "a new checkpoint id",
        "run:1 in use by checkpoint number 1 of run 'run'",
    )
    assert "process" not in str(no.value)


async def everything(store: SqliteCheckpointStorage) -> tuple[object, ...]:
    """Return all that the store says of the run that `fill` made, in bytes where that is easier to compare."""
    stored: list[Stored | None] = [await store.load(ref) for ref in (Latest("run"), "run:0", "run:1", "run:2")]
    turn: TurnRow | None = await store.find_turn("flow", "key-run")
    return (*stored, await store.find_request("q-run"), turn, await store.read("run", ["a", "b"]))


@pytest.mark.parametrize("rounds", [10, pytest.param(500, marks=pytest.mark.proof)])
@pytest.mark.parametrize("kind", ["flip", "cut"])
def test_random_damage_is_reported_or_harmless(tmp_path: Path, kind: str, rounds: int) -> None:
    """After a flipped bit or a cut anywhere in the file, an answer is the right one, `None`, or an error of ours."""
    path, copy = tmp_path / "runs.db", tmp_path / "copy.db"
    fill(path)
    right = use(path, everything)
    size, source = path.stat().st_size, random.Random(20261129)
    used = ask(path, "PRAGMA page_count")[0][0]
    assert used == size // 4096
    seen = set[str]()
    for _ in range(rounds):
        shutil.copyfile(path, copy)
        # Most of the file is one big record; the rest is where damage is interesting.
        place = source.choice([source.randrange(size), source.randrange(40 * 4096), size - source.randrange(8 * 4096)])
        if kind == "cut":
            with copy.open("r+b") as file:
                file.truncate(place)
        else:
            data = bytearray(path.read_bytes())
            data[min(place, size - 1)] ^= 1 << source.randrange(8)
            copy.write_bytes(data)
        try:
            found = use(copy, everything)
        except RehydrateError as error:
            seen.add(error.code)
            continue
        assert all(answer in (expected, None, {}) for answer, expected in zip(found, right, strict=True))
        seen.add("answered")
    assert "checkpoint-corrupt" in seen
