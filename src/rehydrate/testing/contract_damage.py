"""The store contract, part on damage: what changes under a store is reported, and a deleted run leaves nothing.

It needs a way to the stored bytes, `StoredBytes`, which whoever makes a store may give. A piece is whatever the place
holds under one name: a file, a field of a row, an object. Each check is an async function and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Protocol, TypeAlias

import msgspec

from rehydrate.codecs.envelope import unwrap, wrap
from rehydrate.codecs.events import decode_event, encode_events
from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import At, Head, Header, Latest, Offer, RequestRow, Stored
from rehydrate.model.events import TurnStarted
from rehydrate.ports import CheckpointStorage

from .contract_events import telling
from .contract_tools import CommitMaker, MakeStore, ManualClock, loaded

#: Which positions of a piece are damaged: one in so many.
SPARSE = 13


class StoredBytes(Protocol):
    """The bytes of a store that is closed. Names stay the same while nothing writes through the store."""

    def names(self) -> Sequence[str]:
        """Return the names of all pieces that hold something."""
        ...

    def read(self, name: str) -> bytes:
        """Return a piece."""
        ...

    def write(self, name: str, data: bytes | None) -> None:
        """Replace a piece, put it back, or remove it (`None`)."""
        ...


DamageCheck: TypeAlias = Callable[[MakeStore, StoredBytes], Coroutine[object, object, None]]


async def fill(make: MakeStore, run_id: str = "run") -> CommitMaker:
    """Store a small run at rest, with something of everything, and close the store."""
    store, maker = make(clock=ManualClock()), CommitMaker(run_id)
    request = RequestRow(f"q-{run_id}", run_id, "child#1", "open")
    told = encode_events(run_id, 1, [TurnStarted(run_id=run_id, turn=1)])
    await store.commit(maker.claim({"a": wrap(b"first a"), "b": wrap(b"first b")}))
    await store.commit(maker.step({"a": wrap(b"second a")}, requests=[request], turn=maker.turn(f"key-{run_id}")))
    await store.commit(telling(maker.end({"b": wrap(b"second b")}), *told, last=1))
    await store.tag(run_id, "begun", f"{run_id}:0")
    await store.offer(Offer(run_id, "letter", b"come"))
    await store.close()
    return maker


async def answers(make: MakeStore) -> list[object]:
    """Return what every call says of the run `run`, or the error that it raises.

    What has an envelope of its own is taken out of it: a store need not look into it a second time.
    """
    store = make(clock=ManualClock())
    refs = (Latest("run"), "run:0", "run:1", "run:2", At("run", "begun"))
    calls: list[Awaitable[object]] = [store.load(ref) for ref in refs]
    calls += [store.head("run"), _read(store), store.find_request("q-run"), store.runs()]
    calls += [store.find_turn("flow", "key-run"), store.history("run"), _events(store), store.tags("run")]
    calls += [store.requests(), store.offers("run"), _archive(store)]
    found: list[object] = []
    for call in calls:
        try:
            found.append(await call)
        except RehydrateError as error:
            found.append(error)
    await store.close()
    return found


async def flipped_bits_are_reported(make: MakeStore, stored: StoredBytes, every: int = SPARSE) -> None:
    """With any bit of any piece flipped each answer is the right one or an error, and some answer is an error."""
    await fill(make)
    right = await answers(make)
    for name in stored.names():
        data = stored.read(name)
        for place in range(0, len(data), every):
            for bit in range(8) if every == 1 else (place % 8,):
                flipped = bytearray(data)
                flipped[place] ^= 1 << bit
                stored.write(name, bytes(flipped))
                found = await answers(make)
                assert _wrong(found, right) == [], (name, place, bit)
                assert _reported(found), (name, place, bit)
        stored.write(name, data)
    assert await answers(make) == right


async def truncations_are_reported(make: MakeStore, stored: StoredBytes, every: int = SPARSE) -> None:
    """With any piece cut anywhere each answer is the right one or an error, and some answer is an error."""
    await fill(make)
    right = await answers(make)
    for name in stored.names():
        data = stored.read(name)
        for length in sorted({*range(0, len(data), every), len(data) - 1}):
            stored.write(name, data[:length])
            found = await answers(make)
            assert _wrong(found, right) == [], (name, length)
            assert _reported(found), (name, length)
        stored.write(name, data)
    assert await answers(make) == right


async def a_lost_piece_makes_no_other_run(make: MakeStore, stored: StoredBytes) -> None:
    """Without any one piece a checkpoint loads as it was committed, or is damaged, or is not there."""
    await fill(make)
    right = await answers(make)
    for name in stored.names():
        data = stored.read(name)
        stored.write(name, None)
        found = await answers(make)
        assert found != right, name
        _check_loads(found, right, name)
        stored.write(name, data)
    assert await answers(make) == right


async def stale_pieces_make_no_other_run(make: MakeStore, stored: StoredBytes) -> None:
    """With any one piece as it was before the newest commit, what loads is a checkpoint that was committed, whole."""
    maker = await fill(make)
    former = {name: stored.read(name) for name in stored.names()}
    committed = [answer for answer in await answers(make) if isinstance(answer, Stored)]
    store = make(clock=ManualClock())
    await store.commit(maker.claim({"a": wrap(b"third a"), "c": wrap(b"third c")}))
    await store.close()
    committed += [answer for answer in await answers(make) if isinstance(answer, Stored)]
    newest = {name: stored.read(name) for name in stored.names()}
    for name in newest.keys() & former.keys():
        if newest[name] == former[name]:
            continue
        stored.write(name, former[name])
        for answer in await answers(make):
            if isinstance(answer, Stored):
                known = [one.records for one in committed if one.header == answer.header]
                assert answer.records in known, name
        stored.write(name, newest[name])


async def swapped_pieces_make_no_other_run(make: MakeStore, stored: StoredBytes) -> None:
    """With any two pieces in each other's place a checkpoint loads as it was committed, or is damaged or not there."""
    await fill(make)
    await fill(make, "other")
    right = await answers(make)
    names = list(stored.names())
    kept = {name: stored.read(name) for name in names}
    for one in names:
        for other in names:
            if one >= other or kept[one] == kept[other]:
                continue
            stored.write(one, kept[other])
            stored.write(other, kept[one])
            _check_loads(await answers(make), right, (one, other))
            stored.write(one, kept[one])
            stored.write(other, kept[other])
    assert await answers(make) == right


async def a_deleted_run_leaves_no_piece(make: MakeStore, stored: StoredBytes) -> None:
    """After a run was deleted the place holds what it held before the run, and nothing of the run's."""
    await fill(make, "other")
    before = {name: stored.read(name) for name in stored.names()}
    store, maker = make(clock=ManualClock()), CommitMaker("canary")
    request = RequestRow("q-canary", "canary", "child#1", "open")
    await store.commit(maker.claim({"canary": b"canary" * 50_000}))
    await store.commit(telling(maker.step(requests=[request], turn=maker.turn("canary")), b"canary", last=2))
    await store.tag("canary", "canary", "canary:0")
    await store.offer(Offer("canary", "canary", b"canary"))
    await store.commit(maker.end({"canary": b"canary"}))
    assert await store.delete("canary") is True
    assert (await loaded(store, Latest("other"))).header.seq == 2
    await store.close()
    after = {name: stored.read(name) for name in stored.names()}
    assert sorted(after) == sorted(before)
    assert not [name for name, data in after.items() if b"canary" in data]


async def _read(store: CheckpointStorage) -> object:
    return {key: bytes(unwrap(data)) for key, data in (await store.read("run", ["a", "b"])).items()}


async def _events(store: CheckpointStorage) -> object:
    return [decode_event("run", event) for event in await store.events("run")]


async def _archive(store: CheckpointStorage) -> object:
    archive = await store.archive("run")
    if archive is None:
        return None
    return [decode_event("run", event) for event in archive.events], msgspec.structs.replace(archive, events=())


def _wrong(found: Sequence[object], right: Sequence[object]) -> list[object]:
    pairs = zip(found, right, strict=True)
    return [one for one, other in pairs if not isinstance(one, RehydrateError) and one != other]


def _reported(found: Sequence[object]) -> bool:
    return any(isinstance(answer, RehydrateError) for answer in found)


def _check_loads(found: Sequence[object], right: Sequence[object], where: object) -> None:
    for one, other in zip(found, right, strict=True):
        if isinstance(other, (Stored, Head, Header)):
            assert one is None or isinstance(one, RehydrateError) or _same(one, other), where


def _same(one: object, other: object) -> bool:
    """Say whether two answers are of the same checkpoint; whose a run is and what its inbox has is no part of it."""
    if isinstance(one, Stored) and isinstance(other, Stored):
        return msgspec.structs.replace(one, head=other.head) == other
    if isinstance(one, Head) and isinstance(other, Head):
        return msgspec.structs.replace(one, offered=other.offered) == other
    return one == other


#: What a store promises whose bytes were changed behind its back.
DAMAGE_CHECKS: tuple[DamageCheck, ...] = (
    flipped_bits_are_reported,
    truncations_are_reported,
    a_lost_piece_makes_no_other_run,
    stale_pieces_make_no_other_run,
    swapped_pieces_make_no_other_run,
    a_deleted_run_leaves_no_piece,
)
