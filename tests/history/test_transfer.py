"""A run as one file: it goes from store to store unchanged, and a damaged file is refused."""

import asyncio
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from rehydrate import (
    CheckpointStorage,
    EncryptedCheckpointStorage,
    InMemoryCheckpointStorage,
    KeyRing,
    RunHistory,
    SqliteCheckpointStorage,
    Status,
    WorkflowCheckpoint,
    export_run,
    import_run,
)
from rehydrate.codecs.archives import decode_body, decode_lead, encode_archive
from rehydrate.codecs.offers import encode_offer
from rehydrate.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    ExportFileError,
    ImportConflictError,
    RehydrateError,
    RunExistsError,
    RunNotFoundError,
    WrongCallError,
)
from rehydrate.model.checkpoint import Archive, Commit, Header, Lease, Offer, Put
from rehydrate.model.offers import OfferBody
from rehydrate.model.sealed import Sealed
from tests.differential.drawing import draw
from tests.differential.harness import Replay, calls_of, reference_run, stored_checkpoints
from tests.history.flows import BIG, SMALL, desk

run = asyncio.run
ROOT = Path(__file__).resolve().parents[2]
#: Something offered that its run cannot take: an answer to nobody's question.
LETTER = encode_offer("r", OfferBody(answers=(("nobody's", Sealed("bool", b"\xc3")),)))


@pytest.fixture(params=["memory", "sqlite"])
def other(request, tmp_path):
    """The store that a file is taken into."""
    made = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "other.db")
    yield made
    run(made.close())


async def asking(store: CheckpointStorage) -> str:
    """Leave a run with something of everything: an open question, a name, an offer, a key; return the question's id."""
    session = desk(store).session("r")
    await session.run(SMALL, idempotency_key="first")
    result = await session.run(BIG, idempotency_key="second")
    await session.edit({"rate": 50}, reason="a new tariff")
    await RunHistory(store, "r").tag("good", 2)
    await store.offer(Offer("r", "letter", LETTER))
    await store.forget("r", [1])
    return result.pending_requests[0].request_id


async def exported(store: CheckpointStorage, run_id: str = "r") -> bytes:
    """A run as bytes."""
    file = io.BytesIO()
    await export_run(store, run_id, file)
    return file.getvalue()


def signed(body: bytes, version: int = 1) -> bytes:
    """A body as a file with a digest that is right."""
    lead = b"RHEXPORT" + version.to_bytes(2, "big") + len(body).to_bytes(8, "big")
    return lead + hashlib.sha256(lead + body).digest() + body


def test_a_run_is_the_same_in_the_other_store(store, other, tmp_path):
    """Every checkpoint, event, name, key and offer is there; exported again it is the same file, byte for byte."""

    async def story():
        question = await asking(store)
        told = await export_run(store, "r", tmp_path / "r.run")
        taken = await import_run(other, str(tmp_path / "r.run"))
        assert await other.archive("r") == await store.archive("r")
        again = await export_run(other, "r", tmp_path / "again.run")
        workflow = desk(other)
        recorded = await workflow.session("r").run(SMALL, idempotency_key="first")
        done = await workflow.run(responses={question: True})
        history = [(entry.number, entry.tags) async for entry in RunHistory(other, "r")]
        return told, taken, again, recorded, done, history

    told, taken, again, recorded, done, history = run(story())
    assert told == taken == again
    first, second = (tmp_path / "r.run").read_bytes(), (tmp_path / "again.run").read_bytes()
    assert first == second
    assert (told.run_id, told.workflow, told.status, told.checkpoints, told.size) == (
        "r",
        "desk",
        Status.IDLE_WITH_PENDING_REQUESTS,
        7,
        len(first),
    )
    assert str(told) == (f"run 'r' of workflow 'desk', IDLE_WITH_PENDING_REQUESTS: 7 checkpoints, {len(first):,} bytes")
    assert (recorded.replayed, recorded.outputs) == (True, ["c-1 within 1000: paid at 100%"])
    assert done.outputs == ["c-2 within 1000: paid at 50%"]
    assert history[-6:] == [(6, ()), (5, ()), (4, ()), (3, ()), (2, ("good",)), (0, ())]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_a_fresh_process_takes_the_run_up(store, tmp_path):
    """A process that has nothing but the file finds the question and goes on from it."""
    question = run(asking(store))
    run(export_run(store, "r", tmp_path / "r.run"))
    command = [sys.executable, "-m", "tests.history.fresh", tmp_path / "r.run", tmp_path / "fresh.db", "false"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {
        "run_id": "r",
        "request": question,
        "outputs": ["c-2 within 1000: refused at 50%"],
    }


@pytest.mark.parametrize("seed", [4])
def test_every_checkpoint_of_a_run_that_was_taken_in_goes_on_as_before(store, other, seed):
    """Random nested graphs: what comes after any checkpoint is what came in the run itself."""

    async def story():
        calls = calls_of(draw(seed), store, chance=1)
        facts = await reference_run(calls, "r")
        await import_run(other, io.BytesIO(await exported(store)))
        wrong, checkpoints = [], await stored_checkpoints(other, "r")
        for checkpoint in checkpoints[:: 1 + len(checkpoints) // 12]:
            again = calls_of(draw(seed), other, chance=2)
            copy = WorkflowCheckpoint.from_bytes(checkpoint.to_bytes())
            wrong += await Replay(again, facts, copy, fork=f"from {checkpoint.header.seq}").compare()
        return wrong

    assert run(story()) == []


def test_a_run_that_is_there_is_not_taken_in(store):
    """The id is in use: an error that says so, and the run is as it was."""

    async def story():
        await asking(store)
        data = await exported(store)
        before = await store.archive("r")
        with pytest.raises(RunExistsError, match=r"exists already.*Delete the run first") as error:
            await import_run(store, io.BytesIO(data))
        assert await store.archive("r") == before
        return error.value.head, before.commits[-1].header.checkpoint_id

    head, expected = run(story())
    assert head == expected


def test_what_another_run_has_by_now_is_in_the_way(store):
    """An idempotency key of the file was used by another run since: nothing is taken in."""

    async def story():
        await asking(store)
        data = await exported(store)
        await store.delete("r")
        await desk(store).run(SMALL, run_id="other", idempotency_key="first")
        with pytest.raises(ImportConflictError, match="cannot be taken into this store"):
            await import_run(store, io.BytesIO(data))
        return await store.head("r"), await store.find_turn("desk", "second")

    assert run(story()) == (None, None)


def test_an_encrypted_run_moves_open_or_closed(tmp_path):
    """From the encrypted store a file is open and the same as from a plain one; from the store inside it stays closed,
    and opens where the same keys are."""
    ring = KeyRing({"2026": bytes(range(32))})

    async def story():
        inside = SqliteCheckpointStorage(tmp_path / "inside.db")
        store, plain = EncryptedCheckpointStorage(inside, ring), InMemoryCheckpointStorage()
        question = await asking(store)
        opened = await exported(store)
        await import_run(plain, io.BytesIO(opened))
        (closed_header,) = await inside.runs()
        closed = await exported(inside, closed_header.run_id)
        elsewhere = InMemoryCheckpointStorage()
        await import_run(elsewhere, io.BytesIO(closed))
        moved = EncryptedCheckpointStorage(elsewhere, ring)
        done = await desk(moved).run(responses={question: True})
        again = await exported(plain)
        await store.close()
        return opened, again, closed, done.outputs

    opened, again, closed, outputs = run(story())
    assert opened == again
    assert outputs == ["c-2 within 1000: paid at 50%"]
    secrets = [b"a new tariff", b"desk", b"letter", b"good", b"Claim", b"c-2"]
    assert [secret for secret in secrets if secret not in opened] == []
    assert [secret for secret in secrets if secret in closed] == []


# damaged and hostile files ---------------------------------------------------------------------------------------


def small() -> bytes:
    """A small export, of one checkpoint."""

    async def story():
        elsewhere = InMemoryCheckpointStorage()
        await desk(elsewhere).run(SMALL, run_id="r")
        await elsewhere.forget("r", [0, 1, 2])
        return await exported(elsewhere)

    return run(story())


def refused(data: bytes) -> RehydrateError:
    """Take a file in and return the error; nothing of it is there afterwards."""
    store = InMemoryCheckpointStorage()
    with pytest.raises((CheckpointCorruptError, CheckpointFormatError)) as error:
        run(import_run(store, io.BytesIO(data)))
    assert run(store.runs()) == []
    return error.value


def decoded(data: bytes) -> Archive:
    """Decode a file without a store."""
    return decode_body(decode_lead(data[:50]), data[50:])


def test_every_bit_flip_and_truncation_of_a_file_is_refused():
    """Whatever bit is another one, and wherever the file ends too early: it is not taken for a run."""
    data = small()
    decoded(data)
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            with pytest.raises((CheckpointCorruptError, CheckpointFormatError)):
                decoded(bytes(flipped))
        with pytest.raises(CheckpointCorruptError):
            decoded(data[:position])
    for damaged in (
        data[:-1],
        data + b"\\0",
        data[:20],
        b"",
        b"PK",
        data[: len(data) // 2] + data[len(data) // 2 + 1 :],
    ):
        assert isinstance(refused(damaged), CheckpointCorruptError)


def test_a_newer_format_is_an_error_of_its_own():
    """A file that newer code wrote says so, and is not called damaged."""
    body = small()[50:]
    error = refused(signed(body, version=2))
    assert isinstance(error, CheckpointFormatError)
    assert (error.found, error.known) == (2, 1)
    archive = decoded(signed(body))
    last = archive.commits[-1]
    newer = msgspec.structs.replace(last, header=msgspec.structs.replace(last.header, format=99))
    error = refused(encode_archive(msgspec.structs.replace(archive, commits=(*archive.commits[:-1], newer))))
    assert isinstance(error, CheckpointFormatError)


BOMBS = {
    "nothing": b"",
    "nil": b"\xc0",
    "no archive": msgspec.msgpack.encode({"a": 1}),
    "an empty archive": msgspec.msgpack.encode(Archive(())),
    "deep lists": b"\x91" * 1_000_000 + b"\xc0",
    "deep maps": b"\x81\xa1a" * 300_000 + b"\xc0",
    "a list that says it is long": b"\x81\xa7commits\xdd\xff\xff\xff\xff",
    "bytes that say they are long": b"\x81\xa7commits\xc6\xff\xff\xff\xff",
    "many nils": b"\x81\xa7commits\xdd" + (1_000_000).to_bytes(4, "big") + b"\xc0" * 1_000_000,
    "another thing behind it": msgspec.msgpack.encode(Archive(())) + b"\xc0",
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_bodies_are_refused_quickly_and_in_bounded_memory(name):
    """With a digest that is right, a body that is no run costs little and is called damaged."""
    data = signed(BOMBS[name])
    tracemalloc.start()
    started = time.perf_counter()
    try:
        assert isinstance(refused(data), CheckpointCorruptError)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 5


def test_a_length_that_is_a_lie_reserves_nothing():
    """A header that promises gigabytes is believed as far as bytes come."""
    lead = b"RHEXPORT\x00\x01" + (7 << 30).to_bytes(8, "big") + bytes(32)
    tracemalloc.start()
    try:
        assert "it holds 3 bytes" in str(refused(lead + b"abc"))
        assert "are allowed" in str(refused(b"RHEXPORT\x00\x01" + b"\xff" * 8 + bytes(32)))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def commit(**changes: object) -> Commit:
    header = Header(
        run_id="x", workflow="w", checkpoint_id="x:0", seq=0, previous_checkpoint_id=None, status=Status.IDLE, turn=1,
        superstep=1, created=0.0, pending=0, events=0, records=0, digest=bytes(32),
    )  # fmt: skip
    return Commit(msgspec.structs.replace(header, **changes), None, Lease("", 1, 0.0, claim=True))


HOSTILE = {
    "records that are not there": commit(records=3),
    "another sum": commit(digest=bytes([1]) * 32),
    "a digest of another length": commit(digest=b""),
    "a number that no store keeps": commit(seq=2**63),
    "a negative number": commit(seq=-1),
    "a base that is not there": commit(previous_checkpoint_id="y"),
    "a run id that is none": commit(run_id="../x"),
    "a run id that is too long": commit(run_id="x" * 300),
    "a record that was not counted": msgspec.structs.replace(commit(), puts=(Put("k", b"v"),)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_made_by_hand_are_refused(store, name):
    """A run that no store wrote: damaged, whatever is wrong with it, in every store."""
    data = encode_archive(Archive((HOSTILE[name],)))
    with pytest.raises(CheckpointCorruptError):
        run(import_run(store, io.BytesIO(data)))
    assert run(store.runs()) == []


def test_random_changes_under_a_right_digest_raise_nothing_else(store):
    """Someone who can make the digest right still gets an error of ours, or a run that a store may keep."""
    chance = random.Random(7)
    body = small()[50:]
    outcomes = set()
    for _ in range(300):
        changed = bytearray(body)
        for _ in range(chance.choice((1, 1, 2, 5))):
            changed[chance.randrange(len(changed))] = chance.choice(
                (0, 0x7F, 0x80, 0xC0, 0xCF, 0xFF, chance.randrange(256))
            )
        try:
            taken = run(import_run(store, io.BytesIO(signed(bytes(changed)))))
            run(store.delete(taken.run_id))
            outcomes.add("taken")
        except RehydrateError as error:
            outcomes.add(type(error).__name__)
    assert "CheckpointCorruptError" in outcomes
    assert outcomes <= {"CheckpointCorruptError", "CheckpointFormatError", "taken"}


# the file --------------------------------------------------------------------------------------------------------


def test_a_failed_export_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    """The disk is full before the file is whole: what was there stays, and nothing half is left."""

    async def story():
        store = InMemoryCheckpointStorage()
        await asking(store)
        place = tmp_path / "r.run"
        await export_run(store, "r", place)
        before = place.read_bytes()
        await desk(store).run(SMALL, checkpoint="latest", run_id="r")

        def full(number: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ExportFileError, match="cannot be written: No space left on device"):
            await export_run(store, "r", place)
        monkeypatch.undo()
        assert place.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["r.run"]
        await export_run(store, "r", place)
        return before, place.read_bytes()

    before, after = run(story())
    assert before != after


def test_files_that_cannot_be_written_or_read_are_errors_of_their_own(tmp_path):
    """A folder that is not there, a folder instead of a file, a missing file; and a run that is not there."""

    async def story():
        store = InMemoryCheckpointStorage()
        await desk(store).run(SMALL, run_id="r")
        for place in (tmp_path / "no" / "r.run", tmp_path):
            with pytest.raises(ExportFileError, match="cannot be written"):
                await export_run(store, "r", place)
        for place in (tmp_path / "missing.run", tmp_path):
            with pytest.raises(ExportFileError, match="cannot be read"):
                await import_run(store, place)
        with pytest.raises(RunNotFoundError):
            await export_run(store, "x", tmp_path / "x.run")
        for place in (None, 3, "", "a\0b", b"r.run", io.StringIO()):
            with pytest.raises(WrongCallError):
                await import_run(store, place)
        for call in (export_run(None, "r", "r.run"), import_run("runs.db", "r.run")):
            with pytest.raises(WrongCallError):
                await call

    run(story())
    assert list(tmp_path.iterdir()) == []
