"""Records of the history that lie in a larger one: every checkpoint loads, whatever is packed, forgotten or moved."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rehydrate import SqliteCheckpointStorage
from rehydrate.codecs.checkpoints import digest_sum, record_digest
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import At, Commit, Header, Latest, Lease, Put, Status
from tests.stores.raw import ask, change

_PARTS = 40
_CHECKPOINTS = _PARTS + 3


def _small(number: int) -> bytes:
    """A record whose middle is found in the large one, with other bytes around it."""
    return b"head %04d" % number + _middle(number) + b"t"


def _middle(number: int) -> bytes:
    return hashlib.shake_256(b"%d" % number).digest(700)


def _states() -> list[dict[str, bytes]]:
    """All records at each checkpoint: parts come one by one, become one, and that one goes."""
    states: list[dict[str, bytes]] = [{"first": b"1"}]
    for number in range(_PARTS):
        states.append({**states[-1], f"part {number}": _small(number), "other": b"%d" % number})
    large = b"large" + b"".join(map(_middle, range(_PARTS))) + b"end"
    states.append({"first": b"1", "other": b"merged", "part 0": large})
    states.append({"first": b"1", "other": b"gone", "part 7": b"new"})
    return states


async def _fill(store: SqliteCheckpointStorage) -> None:
    before: dict[str, bytes] = {}
    previous: str | None = None
    for seq, state in enumerate(_states()):
        digest = digest_sum(record_digest(key, data) for key, data in state.items())
        header = Header(
            run_id="run", workflow="flow", checkpoint_id=f"{seq:032x}", seq=seq, previous_checkpoint_id=previous,
            status=Status.RUNNING, turn=1, superstep=seq, created=1.0, pending=0, events=0, records=len(state),
            digest=digest,
        )  # fmt: skip
        puts = tuple(Put(key, data) for key, data in state.items() if before.get(key) != data)
        removes = tuple(key for key in before if key not in state)
        lease = Lease("owner", 1, 0.0, claim=seq == 0)
        await store.commit(Commit(header=header, expected=previous, lease=lease, puts=puts, removes=removes))
        before, previous = state, header.checkpoint_id


def _use(path: Path, work: Callable[[SqliteCheckpointStorage], object]) -> object:
    async def use() -> object:
        async with SqliteCheckpointStorage(path) as store:
            return await work(store)

    return asyncio.run(use())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one run, whose parts are packed."""
    place = tmp_path / "runs.db"
    _use(place, _fill)
    return place


async def _loaded(store: SqliteCheckpointStorage) -> list[dict[str, bytes]]:
    found: list[dict[str, bytes]] = []
    for header in reversed(await store.history("run", limit=100)):
        stored = await store.load(At("run", header.seq))
        assert stored is not None
        found.append(stored.records)
    return found


def test_small_records_that_became_one_have_no_rows(path: Path) -> None:
    """Their bytes stand in the file once, and so does what said that they were removed."""
    assert ask(path, "SELECT count(*) FROM rehydrate_packed") == [(1,)]
    rows = ask(path, "SELECT key, length(data) FROM rehydrate_record WHERE key LIKE 'part%' ORDER BY id")
    assert rows == [("part 0", _PARTS * 700 + 8), ("part 0", None), ("part 7", 3)]


def test_every_checkpoint_loads(path: Path) -> None:
    """Those before the parts were packed, too, and the head."""
    assert _use(path, _loaded) == _states()
    stored = _use(path, lambda store: store.load(Latest("run")))
    assert stored.records == _states()[-1]


def test_what_is_forgotten_takes_nothing_along(path: Path) -> None:
    """Checkpoints that stay load after those around them, the large record's among them, are forgotten."""
    staying = [3, 17, _CHECKPOINTS - 1]
    gone = [seq for seq in range(_CHECKPOINTS) if seq not in staying]
    assert _use(path, lambda store: store.forget("run", gone)) == gone
    assert _use(path, _loaded) == [_states()[seq] for seq in staying]
    assert ask(path, "SELECT count(*) FROM rehydrate_packed") == [(0,)]
    previous = [header.previous_checkpoint_id for header in _use(path, lambda store: store.history("run"))]
    assert previous == [f"{17:032x}", f"{3:032x}", None]
    assert _use(path, lambda store: store.forget("run", [3])) == [3]
    assert _use(path, _loaded) == [_states()[17], _states()[-1]]


def test_a_run_moves_to_another_store_with_all_its_checkpoints(path: Path, tmp_path: Path) -> None:
    """An archive has the packed records, and what it makes in another store loads the same."""
    archive = _use(path, lambda store: store.archive("run"))
    other = tmp_path / "other.db"
    _use(other, lambda store: store.adopt(archive))
    assert _use(other, _loaded) == _states()


def test_a_deleted_run_leaves_no_packed_records(path: Path) -> None:
    """They go with it."""
    assert _use(path, lambda store: store.delete("run")) is True
    assert ask(path, "SELECT count(*) FROM rehydrate_packed") == [(0,)]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("DELETE FROM rehydrate_packed", id="a lost list"),
        pytest.param("UPDATE rehydrate_packed SET body = substr(body, 2)", id="a list cut off"),
        pytest.param("UPDATE rehydrate_packed SET body = x'00'", id="other bytes"),
        pytest.param("UPDATE rehydrate_packed SET run = run + 1", id="another run's"),
        pytest.param("UPDATE rehydrate_record SET data = x'00' WHERE length(data) > 20000", id="another large record"),
        pytest.param("DELETE FROM rehydrate_record WHERE length(data) > 20000", id="a lost large record"),
    ],
)
def test_damage_to_packed_records_is_reported(path: Path, damage: str) -> None:
    """A checkpoint that needs them is damaged; the head, which does not, loads."""
    assert change(path, damage) == 1
    with pytest.raises(CheckpointCorruptError):
        _use(path, lambda store: store.load(At("run", 20)))
    stored = _use(path, lambda store: store.load(Latest("run")))
    assert stored.records == _states()[-1]


@pytest.mark.parametrize(
    ("first", "last", "place"),
    [
        pytest.param(2**63, 2**63, [1, 0, "k", 0, 1, b"", b""], id="rows beyond all"),
        pytest.param(9, 9, [-4, 0, "k", 0, 1, b"", b""], id="a number below 1"),
        pytest.param(9, 9, [9, 0, "k", 0, 1, b"", b""], id="a record in itself"),
        pytest.param(9, 9, [1, 2**63, "k", 0, 1, b"", b""], id="a removal beyond all"),
        pytest.param(9, 9, [1, 0, "k", 0, 1, b"", b"", 1], id="a field too many"),
        pytest.param(9, 9, None, id="more than is allowed"),
    ],
)
def test_a_forged_list_is_refused(path: Path, first: int, last: int, place: list[object] | None) -> None:
    """A list with a right checksum that nothing here has written is damage, for every call that reads it."""
    listed = msgspec.msgpack.encode([place]) if place is not None else bytes(5 * 1024 * 1024)
    body = msgspec.msgpack.encode([1, first, last, zlib.compress(listed)])
    change(path, f"UPDATE rehydrate_packed SET body = x'{(hashlib.sha256(body).digest()[:8] + body).hex()}'")
    for call in (lambda s: s.load(At("run", 20)), lambda s: s.archive("run"), lambda s: s.forget("run", [1])):
        with pytest.raises(CheckpointCorruptError):
            _use(path, call)


def test_every_flipped_bit_of_a_list_is_reported(path: Path) -> None:
    """No bit of it can change what is loaded."""
    ((body,),) = ask(path, "SELECT body FROM rehydrate_packed")
    for index in range(0, len(body), 7):
        flipped = bytearray(body)
        flipped[index] ^= 1 << index % 8
        change(path, f"UPDATE rehydrate_packed SET body = x'{flipped.hex()}'")
        with pytest.raises(CheckpointCorruptError):
            _use(path, lambda store: store.load(At("run", 20)))
