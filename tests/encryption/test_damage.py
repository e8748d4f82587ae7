"""Whoever can write to the store inside changes nothing unseen: bits, places, runs, versions, and what is in clear."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import pytest

from rehydrate import EncryptedCheckpointStorage, InMemoryCheckpointStorage, Status
from rehydrate.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    NotEncryptedError,
    RehydrateError,
    WrongKeyError,
)
from rehydrate.model.checkpoint import Cause, Commit, Latest, RequestRow, Stored, StoredEvent, TurnRow
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.encryption.kit import MeddledStorage, ring, with_header

DAMAGE = (CheckpointCorruptError, CheckpointFormatError, WrongKeyError)
HEAD = Latest("run")


def meddled() -> MeddledStorage:
    """Return a store that holds one run at rest: records `a`, which changed twice, and `b`."""
    inner = MeddledStorage(clock=ManualClock())
    asyncio.run(a_run(inner))
    return inner


async def a_run(inner: MeddledStorage, run_id: str = "run") -> CommitMaker:
    store, maker = EncryptedCheckpointStorage(inner, ring()), CommitMaker(run_id)
    await store.commit(maker.claim({"a": b"first", "b": b"only"}))
    await store.commit(maker.step({"a": b"second"}))
    await store.commit(maker.end({"a": b"third"}))
    return maker


def as_it_is(inner: MeddledStorage, ref: object = HEAD) -> Stored:
    """Return what the store inside has under the pseudonym of a run, or under a checkpoint's id."""
    hidden = EncryptedCheckpointStorage(inner, ring()).listing_key
    return asyncio.run(inner.honest(Latest(hidden(ref.run_id)) if isinstance(ref, Latest) else ref))


def refusal(inner: MeddledStorage, changed: Callable[[Stored], Stored], ref: object = HEAD) -> RehydrateError:
    """Load after a change, from a store that knows nothing of the run, and return the error."""
    inner.change = changed
    try:
        asyncio.run(EncryptedCheckpointStorage(inner, ring()).load(ref))
    except RehydrateError as error:
        return error
    finally:
        inner.change = None
    raise AssertionError("what was changed was loaded")


def with_records(stored: Stored, records: dict[str, bytes]) -> Stored:
    return msgspec.structs.replace(stored, records={**stored.records, **records})


def flips(data: bytes) -> Iterator[bytes]:
    """Yield the data with each of its bits turned over."""
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        yield bytes(damaged)


@pytest.mark.parametrize("ref", [HEAD, "run:0"])
def test_every_flipped_bit_and_truncation_of_a_record_is_reported(ref: object) -> None:
    """Each bit and the end of each record matter, though the record sum of the store inside is made right again."""
    inner = meddled()
    records = as_it_is(inner, ref).records
    assert len(records) == 2
    for place, data in records.items():
        for damaged in [*flips(data), *(data[:end] for end in range(len(data))), data + b"\0"]:
            error = refusal(inner, lambda stored, new={place: damaged}: with_records(stored, new), ref)
            assert isinstance(error, DAMAGE), error


def test_every_flipped_bit_and_truncation_of_a_header_is_reported() -> None:
    """Each bit and the end of what is sealed in a header matter; without it the checkpoint is none of this store."""
    inner = meddled()
    sealed = as_it_is(inner).header.sealed

    def refused(data: bytes) -> RehydrateError:
        return refusal(inner, lambda s: with_header(s, msgspec.structs.replace(s.header, sealed=data)))

    for damaged in [*flips(sealed), *(sealed[:end] for end in range(1, len(sealed))), sealed + b"\0"]:
        assert isinstance(refused(damaged), DAMAGE)
    assert isinstance(refused(b""), NotEncryptedError)


@pytest.mark.parametrize(
    "field",
    [
        {"format": 0}, {"run_id": "another"}, {"workflow": "another"}, {"checkpoint_id": "another"}, {"seq": 1},
        {"status": Status.RUNNING}, {"turn": 7}, {"superstep": 7},
        {"created": 7.0}, {"pending": 7}, {"events": 7}, {"cause": Cause.EDIT}, {"size": 7}, {"changed": 7},
        {"scopes": ("a#1",)}, {"reason": "because"},
    ],
    ids=lambda field: next(iter(field)),
)  # fmt: skip
def test_what_stands_in_clear_in_a_header_cannot_be_changed(field: dict[str, object]) -> None:
    """A header of which one field says something else than is sealed is refused; the lineage is the store's to mend."""
    error = refusal(meddled(), lambda s: with_header(s, msgspec.structs.replace(s.header, **field)))
    assert isinstance(error, CheckpointCorruptError)


def test_a_stale_record_is_refused() -> None:
    """An earlier version of a record, in its own place and with the sum made right, is not taken for the newest."""
    inner = meddled()
    first, newest = as_it_is(inner, "run:0").records, as_it_is(inner).records
    stale = {place: data for place, data in first.items() if newest[place] != data}
    assert len(stale) == 1
    error = refusal(inner, lambda stored: with_records(stored, stale))
    assert isinstance(error, CheckpointCorruptError)
    assert "put back" in str(error)


def test_records_that_changed_places_are_refused() -> None:
    """A record is bound to its key: two that are swapped are refused, also one at a time."""
    inner = meddled()
    (one, first), (two, second) = as_it_is(inner).records.items()
    assert isinstance(refusal(inner, lambda s: with_records(s, {one: second, two: first})), CheckpointCorruptError)
    store = EncryptedCheckpointStorage(inner, ring())

    async def reading_swapped(run_id: str, keys: object) -> dict[str, bytes]:
        return {place: {one: second, two: first}[place] for place in keys}

    inner.read = reading_swapped
    with pytest.raises(CheckpointCorruptError, match="a record of run 'run' is damaged"):
        asyncio.run(store.read("run", ["a"]))


def test_records_of_another_run_are_refused() -> None:
    """Neither one record nor a whole checkpoint of another run is taken for this one's."""
    inner = meddled()
    asyncio.run(a_run(inner, "other"))
    other, mine = as_it_is(inner, Latest("other")), as_it_is(inner)
    theirs = dict(zip(mine.records, other.records.values(), strict=True))
    assert isinstance(refusal(inner, lambda stored: with_records(stored, theirs)), CheckpointCorruptError)
    assert isinstance(refusal(inner, lambda stored: other), CheckpointCorruptError)


def test_records_of_a_run_that_was_deleted_are_refused() -> None:
    """A run that has the id of a deleted one does not take its records, of the same keys and numbers, for its own."""
    inner = meddled()
    before = as_it_is(inner, "run:0")
    store = EncryptedCheckpointStorage(inner, ring())
    assert asyncio.run(store.delete("run")) is True
    asyncio.run(store.commit(CommitMaker().claim({"a": b"first", "b": b"only"})))
    assert set(as_it_is(inner).records) == set(before.records)
    assert isinstance(refusal(inner, lambda stored: with_records(stored, before.records)), CheckpointCorruptError)


def test_a_lost_or_added_record_is_refused() -> None:
    """One record less, and one more, are seen though count and sum of the store inside are made right."""
    inner = meddled()
    (one, first), _ = as_it_is(inner).records.items()
    lost = refusal(inner, lambda stored: msgspec.structs.replace(stored, records={one: first}))
    added = refusal(inner, lambda stored: with_records(stored, {"f" * 32: first}))
    assert isinstance(lost, CheckpointCorruptError)
    assert isinstance(added, CheckpointCorruptError)


def test_a_header_of_an_earlier_checkpoint_is_not_the_head() -> None:
    """An earlier header of the run under the id of a later one, with the earlier records, is refused."""
    inner = meddled()
    earlier, newest = as_it_is(inner, "run:0"), as_it_is(inner)
    changed = msgspec.structs.replace(earlier.header, checkpoint_id=newest.header.checkpoint_id, seq=newest.header.seq)
    head = msgspec.structs.replace(newest.head, header=changed)
    forged = msgspec.structs.replace(earlier, header=changed, head=head)
    assert isinstance(refusal(inner, lambda stored: forged), CheckpointCorruptError)
    assert isinstance(refusal(inner, lambda stored: earlier), CheckpointCorruptError)
    assert isinstance(refusal(inner, lambda stored: newest, "run:0"), CheckpointCorruptError)


def test_a_commit_does_not_build_on_what_was_changed() -> None:
    """A store that has not loaded the run reads it before it writes on, and refuses what was put back there."""
    inner = meddled()
    maker = CommitMaker()
    maker.head, maker.seq, maker.epoch = "run:2", 2, 1
    stale = as_it_is(inner, "run:0").records
    inner.change = lambda stored: with_records(stored, stale)
    store = EncryptedCheckpointStorage(inner, ring())
    with pytest.raises(CheckpointCorruptError, match="checkpoint 'run:2' of run 'run'"):
        asyncio.run(store.commit(maker.copy(owner="next", tag="x").claim({"c": b"new"})))
    inner.change = None
    claim = maker.copy(owner="next", tag="y").claim()
    claim = msgspec.structs.replace(claim, header=msgspec.structs.replace(claim.header, records=2))
    asyncio.run(store.commit(claim))
    assert asyncio.run(store.head("run")).header.checkpoint_id == "run:3y"


def test_a_head_or_history_of_another_run_is_refused() -> None:
    """Where the store inside gives another run's head or headers for this one's, that is damage."""
    inner = meddled()
    asyncio.run(a_run(inner, "other"))
    store = EncryptedCheckpointStorage(inner, ring())
    theirs = store.listing_key("other")
    head, history = asyncio.run(inner.head(theirs)), asyncio.run(inner.history(theirs))

    async def give_head(run_id: str) -> object:
        return head

    async def give_history(run_id: str, **_: object) -> object:
        return history

    inner.head, inner.history = give_head, give_history
    for call in (store.head("run"), store.history("run")):
        with pytest.raises(CheckpointCorruptError, match="a checkpoint of run 'run' is damaged: it is another run's"):
            asyncio.run(call)
    assert asyncio.run(store.head("other")).header.run_id == "other"


def test_a_commit_goes_on_from_the_head_that_it_names() -> None:
    """What another store object has committed meanwhile is part of the sum of the next commit, also without a load."""
    inner, maker = MeddledStorage(clock=ManualClock()), CommitMaker()
    one, two = EncryptedCheckpointStorage(inner, ring()), EncryptedCheckpointStorage(inner, ring())

    async def main() -> Stored | None:
        await one.commit(maker.claim({"a": b"1", "b": b"1"}))
        await two.commit(maker.step({"a": b"2"}))
        await one.commit(maker.step({"b": b"2"}))
        await two.commit(maker.step({"c": b"2"}, ["a"]))
        await one.commit(maker.step({"c": b"3"}))
        return await two.load(HEAD)

    stored = asyncio.run(main())
    assert stored is not None
    assert stored.records == {"b": b"2", "c": b"3"}


def test_rows_beside_the_records_cannot_be_changed() -> None:
    """The row of a request or turn that says something else in clear than is sealed is refused, and a plain one too."""
    inner = InMemoryCheckpointStorage(clock=ManualClock())
    store, maker = EncryptedCheckpointStorage(inner, ring()), CommitMaker()
    row = RequestRow("q", "run", "a#1/b#2", "open")
    turn = maker.turn("key")

    async def main() -> tuple[RequestRow, TurnRow]:
        await store.commit(msgspec.structs.replace(maker.claim(), requests=(row,), turn=turn))
        assert (await store.find_request("q"), await store.find_turn("flow", "key")) == (row, turn)
        hidden = EncryptedCheckpointStorage(inner, ring())
        request = await inner.find_request("q")
        names = hidden._names.workflow("flow"), hidden._names.turn_key("flow", "key")
        found = await inner.find_turn(*names)
        assert request is not None
        assert found is not None
        return request, found

    request, found = asyncio.run(main())

    def answer(kind: str, value: object) -> None:
        async def give(*names: str) -> object:
            return value

        setattr(inner, kind, give)

    for change in ({"state": "answered"}, {"run_id": "other"}):
        answer("find_request", msgspec.structs.replace(request, **change))
        with pytest.raises(CheckpointCorruptError, match="request 'q'"):
            asyncio.run(store.find_request("q"))
    answer("find_request", request)
    with pytest.raises(CheckpointCorruptError, match="request 'another'"):
        asyncio.run(store.find_request("another"))
    for change in ({"number": 2}, {"run_id": "other"}, {"checkpoint_id": "other"}, {"status": Status.IDLE}):
        answer("find_turn", msgspec.structs.replace(found, **change))
        with pytest.raises(CheckpointCorruptError, match="the turn of key 'key'"):
            asyncio.run(store.find_turn("flow", "key"))
    answer("find_request", row)
    with pytest.raises(NotEncryptedError, match="request 'q' is not encrypted"):
        asyncio.run(store.find_request("q"))
    answer("find_turn", turn)
    with pytest.raises(NotEncryptedError, match="the turn of key 'key' is not encrypted"):
        asyncio.run(store.find_turn("flow", "key"))


def test_events_keep_their_run_and_number() -> None:
    """A kept event under another number or in another run, or a plain one, is refused."""
    inner = InMemoryCheckpointStorage(clock=ManualClock(), keep_events=True)
    store = EncryptedCheckpointStorage(inner, ring())

    def telling(run_id: str) -> Commit:
        commit = CommitMaker(run_id).claim()
        header = msgspec.structs.replace(commit.header, events=2)
        return msgspec.structs.replace(commit, header=header, events=(b"one", b"two"))

    async def main() -> tuple[list[StoredEvent], list[StoredEvent]]:
        await store.commit(telling("run"))
        await store.commit(telling("other"))
        assert await store.events("run") == [StoredEvent(1, b"one"), StoredEvent(2, b"two")]
        return await inner.events(store.listing_key("run")), await inner.events(store.listing_key("other"))

    (first, second), theirs = asyncio.run(main())

    def refused(*events: StoredEvent) -> RehydrateError:
        async def give(run_id: str, **_: int) -> list[StoredEvent]:
            return list(events)

        inner.events = give
        with pytest.raises(RehydrateError) as raised:
            asyncio.run(store.events("run"))
        return raised.value

    assert isinstance(refused(StoredEvent(1, second.data), StoredEvent(2, first.data)), CheckpointCorruptError)
    assert isinstance(refused(*theirs), CheckpointCorruptError)
    # Its number stands in clear behind magic, version, length and id of the key, its check and the salt.
    at = slice(4 + len("2026-11") + 8 + 16, 4 + len("2026-11") + 8 + 16 + 8)
    assert int.from_bytes(second.data[at], "big") == 2
    renumbered = second.data[: at.start] + (1).to_bytes(8, "big") + second.data[at.stop :]
    assert isinstance(refused(StoredEvent(1, renumbered)), CheckpointCorruptError)
    assert isinstance(refused(first, StoredEvent(2, b"RH plain")), NotEncryptedError)
