"""P9: damage is reported, never skipped. Every bit and every end of what small runs left is damaged in turn; an answer
is then the right one or an error of ours, and never that of another checkpoint."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

import msgspec
import pytest

from rehydrate import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    WorkflowCheckpoint,
    export_run,
    import_run,
)
from rehydrate.codecs import checkpoints as checkpoints_codec
from rehydrate.codecs import envelope
from rehydrate.codecs.events import decode_event
from rehydrate.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    EncryptedCheckpointError,
    InconsistentRunError,
    RehydrateError,
)
from rehydrate.model.checkpoint import Archive, Latest, Stored
from rehydrate.runtime import checkpoint as runtime_checkpoint
from rehydrate.testing.store_contract import ManualClock
from tests.proof.ledger import Tried
from tests.proof.small_runs import archive, checkpoints, workflows
from tests.stores.pieces import StoredFields, StoredFiles
from tests.stores.raw_files import quick_folder

#: What says that bytes are damaged; a flipped bit can also make a magic or a version that there is.
DAMAGE = (CheckpointCorruptError, CheckpointFormatError, EncryptedCheckpointError)
RUNS = ("nested", "asking", "function", "mapped", "mixed")
Store: TypeAlias = "SqliteCheckpointStorage | FileCheckpointStorage"
CLOCK = ManualClock()
#: The run that is in the stores. Making it takes an event loop, and so do those who ask for it.
KEPT: list[Archive] = []


def damaged(data: bytes, every: int) -> Iterator[bytes]:
    """Give bytes with each bit flipped, one place in so many, and cut at each of these; and with something behind."""
    for place in range(0, len(data), every):
        for bit in range(8) if every == 1 else (place % 8,):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            yield bytes(flipped)
        yield data[:place]
    yield data + b"\0"


def exported(name: str) -> bytes:
    """Return the last checkpoint of a run as an object outside of stores."""
    stored = checkpoints(name)[-1]
    return checkpoints_codec.encode_checkpoint(stored.header, stored.records)


def unreported_objects(name: str, every: int) -> tuple[int, int]:
    """Damage an exported checkpoint; return how often, and how often that was not reported."""
    times = missed = 0
    for bad in damaged(exported(name), every):
        times += 1
        try:
            WorkflowCheckpoint.from_bytes(bad)
        except DAMAGE:
            continue
        missed += 1
    return times, missed


@pytest.mark.promise("P9", "flips and cuts of exported checkpoints")
@pytest.mark.parametrize(
    ("name", "every"),
    [("nested", 40), ("function", 40), *[pytest.param(name, 1, marks=pytest.mark.proof) for name in RUNS]],
)
def test_a_damaged_checkpoint_object_is_reported(name: str, every: int, tried: Tried) -> None:
    """No bit of one is unread: nested scopes, values in pieces, packs of requests and calls of functions included."""
    times, missed = unreported_objects(name, every)
    tried(times)
    assert missed == 0


@pytest.mark.promise("P9", "flips and cuts of exported runs")
@pytest.mark.parametrize("every", [400, pytest.param(1, marks=pytest.mark.proof)])
def test_a_damaged_export_is_not_imported(every: int, tried: Tried) -> None:
    """An import of any of them says what is damaged, and the store has no part of the run."""
    kept = archive("small")

    async def main() -> int:
        source, times = InMemoryCheckpointStorage(keep_events=True), 0
        await source.adopt(kept)
        whole = io.BytesIO()
        await export_run(source, "small", whole)
        target = InMemoryCheckpointStorage(keep_events=True)
        for bad in damaged(whole.getvalue(), every):
            times += 1
            with pytest.raises(DAMAGE):
                await import_run(target, io.BytesIO(bad))
        assert await target.runs() == []
        return times

    tried(asyncio.run(main()))


async def answers(store: Store) -> list[object]:
    """Return what everything that reads says of the run `small`, or the error that it raises."""
    ids = [commit.header.checkpoint_id for commit in KEPT[0].commits]
    calls: list[Awaitable[object]] = [_records(store, ref) for ref in (Latest("small"), *ids)]
    calls += [store.inspect(ref) for ref in (Latest("small"), *ids[-2:])]
    calls += [_gone_on(store), store.history("small"), store.runs(), store.requests(), _whole(store)]
    calls += [store.find_request(row.request_id) for row in KEPT[0].requests]
    calls += [store.find_turn("small", "key small"), _events(store), store.tags("small"), store.offers("small")]
    found: list[object] = []
    for call in calls:
        try:
            found.append(await call)
        except RehydrateError as error:
            found.append(error)
    await store.close()
    return found


async def _records(store: Store, ref: str | Latest) -> object:
    stored = await store.load(ref)
    return None if stored is None else (stored.header, stored.records)


async def _events(store: Store) -> object:
    return [decode_event("small", event) for event in await store.events("small")]


async def _gone_on(store: Store) -> object:
    """Take the run up where it rests, and with nothing to do."""
    made = workflows()["small"]
    result = await made.run(checkpoint="latest", run_id="small", checkpoint_storage=store)
    return result.checkpoint_id, result.status, result.outputs, [r.request_id for r in result.pending_requests]


async def _whole(store: Store) -> object:
    """Return an export as its reader takes it; events in it have checksums of their own."""
    whole = await store.archive("small")
    if whole is None:
        return None
    events = [decode_event("small", event) for event in whole.events]
    return events, msgspec.structs.replace(whole, events=())


def damage_store(
    kind: str, every: int, wrapped: Callable[[Store], Store] = lambda store: store
) -> tuple[int, list[str]]:
    """Damage each piece of a store; return how often, and where an answer was wrong or nothing was reported."""
    KEPT[:] = [archive("small")]
    with quick_folder() as folder:
        path = folder / "runs"

        def make() -> Store:
            plain = SqliteCheckpointStorage if kind == "sqlite" else FileCheckpointStorage
            return wrapped(plain(path, clock=CLOCK, keep_events=True))

        async def fill() -> None:
            async with make() as store:
                await store.adopt(KEPT[0])

        asyncio.run(fill())
        pieces = StoredFields(path) if kind == "sqlite" else StoredFiles(path)
        right = asyncio.run(answers(make()))
        assert not [answer for answer in right if isinstance(answer, RehydrateError)]
        times, wrong = 0, list[str]()
        for name in pieces.names():
            data = pieces.read(name)
            for bad in damaged(data, every):
                times += 1
                pieces.write(name, bad)
                found = asyncio.run(answers(make()))
                errors = [one for one in found if isinstance(one, RehydrateError)]
                others = [one for one, good in zip(found, right, strict=True) if one not in errors and one != good]
                if others or not errors:
                    wrong.append(f"{name}: {others or 'nothing was reported'!r:.200}")
            pieces.write(name, data)
        wrong += _lost(pieces, right, lambda: asyncio.run(answers(make())))
        return times, wrong


def _lost(pieces: StoredFields | StoredFiles, right: list[object], ask: Callable[[], list[object]]) -> list[str]:
    """Lose each piece: a checkpoint is then damaged or not found, and never another one.

    Lists of requests, names, offers and events are as long as they are: that a row of these was there, nothing says.
    """
    wrong: list[str] = []
    of_checkpoints = len(KEPT[0].commits) + 5
    for name in pieces.names():
        data = pieces.read(name)
        pieces.write(name, None)
        for one, good in list(zip(ask(), right, strict=True))[:of_checkpoints]:
            if one != good and not isinstance(one, RehydrateError) and one is not None:
                wrong.append(f"{name} is lost: {one!r:.200}")
        pieces.write(name, data)
    return wrong


@pytest.mark.promise("P9", "flips and cuts of what stores hold of a real run")
@pytest.mark.parametrize("kind", ["sqlite", "file"])
@pytest.mark.parametrize("every", [2000, pytest.param(5, marks=pytest.mark.proof)])
def test_what_a_store_holds_of_a_run_is_reported_when_it_is_damaged(kind: str, every: int, tried: Tried) -> None:
    """`load`, `inspect`, `history`, `archive`, look-ups and `run` at the head give what was there, or an error."""
    times, wrong = damage_store(kind, every)
    tried(times)
    assert wrong == []


class Falling(SqliteCheckpointStorage):
    """A store that falls back to an older checkpoint."""

    async def load(self, ref: object) -> Stored | None:
        try:
            return await super().load(ref)
        except CheckpointCorruptError:
            for stored in reversed(KEPT[0].commits[:-1]):
                with suppress(RehydrateError):
                    return await super().load(stored.header.checkpoint_id)
            raise


class Skipping(SqliteCheckpointStorage):
    """A store that leaves damaged things out of its lists."""

    async def history(self, *arguments: object, **options: object) -> object:
        try:
            return await super().history(*arguments, **options)
        except CheckpointCorruptError:
            return []


@pytest.mark.proof
@pytest.mark.notices("P9")
@pytest.mark.parametrize("broken", [Falling, Skipping])
def test_a_store_that_hides_damage_is_noticed(broken: type[SqliteCheckpointStorage]) -> None:
    """One that falls back to an older checkpoint, or skips what is damaged, gives answers that are none."""

    def wrapped(store: Store) -> Store:
        store.__class__ = broken
        return store

    assert damage_store("sqlite", 60, wrapped)[1]


def mixed(name: str) -> Iterator[dict[str, bytes]]:
    """Give the records of a run's last checkpoint with one lost, stale, doubled, moved or swapped with another."""
    last = checkpoints(name)[-1].records
    keys = [*last]
    for number, key in enumerate(keys):
        others = {stored.records[key] for stored in checkpoints(name) if key in stored.records} - {last[key]}
        other = keys[number - 1]
        yield {k: data for k, data in last.items() if k != key}
        yield {**last, key: last[other], other: last[key]}
        yield {**last, f"{key}0": last[key]}
        yield {**{k: data for k, data in last.items() if k != key}, f"{key}0": last[key]}
        yield from ({**last, key: data} for data in others)


def unreported_mixtures(name: str) -> tuple[int, int]:
    """Read a checkpoint of which a record is another; return how often, and how often that was not reported."""
    stored = checkpoints(name)[-1]
    times = missed = 0
    for records in mixed(name):
        if records == stored.records:
            continue
        times += 1
        try:
            WorkflowCheckpoint.from_bytes(checkpoints_codec.encode_checkpoint(stored.header, records))
        except (CheckpointCorruptError, InconsistentRunError):
            continue
        missed += 1
    return times, missed


@pytest.mark.promise("P9", "lost, stale, doubled, moved and swapped records")
@pytest.mark.parametrize("name", RUNS)
def test_records_of_another_moment_are_reported(name: str, tried: Tried) -> None:
    """Each record is as it was written, so its checksum is right; that it belongs elsewhere is seen."""
    times, missed = unreported_mixtures(name)
    tried(times)
    assert missed == 0


@pytest.mark.notices("P9")
def test_a_reader_without_record_sums_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the digests of its records a checkpoint takes stale ones."""
    monkeypatch.setattr(runtime_checkpoint, "check_digests", lambda header, digests: None)
    assert unreported_mixtures("nested")[1]


@pytest.mark.notices("P9")
def test_a_reader_without_checksums_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checksum of the envelope some flipped bits of an object make another one."""
    monkeypatch.setattr(checkpoints_codec, "unwrap", lambda data: memoryview(data)[envelope.OVERHEAD :])
    assert unreported_objects("small", 3)[1]
