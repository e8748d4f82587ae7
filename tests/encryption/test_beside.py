"""What stands beside the records of a run, and whole runs: names, inboxes, archives, under covers of their own."""

import asyncio
import string

import msgspec
import pytest

from rehydrate import EncryptedCheckpointStorage, InMemoryCheckpointStorage, KeyRing
from rehydrate.errors import (
    CheckpointCorruptError,
    NotEncryptedError,
    OfferConflictError,
    WrongCallError,
    WrongKeyError,
)
from rehydrate.model.checkpoint import Archive, At, Commit, Latest, Offer, Put, RequestRow
from rehydrate.stores.hidden_texts import MAX_NAME_BYTES
from rehydrate.testing.contract_events import telling
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.encryption.kit import NEW, OLD, OTHER, ring

BOTH = KeyRing({"2026-11": OLD, "2027-05": NEW})


async def filled(store: EncryptedCheckpointStorage) -> Archive:
    """Store a run with something of everything, each of which names the canary, and return its archive."""
    maker = CommitMaker("canary-run", workflow="canary-flow")
    await store.commit(maker.claim({"canary-a": b"canary 1", "canary-b": b"canary b"}))
    row = RequestRow("q", "canary-run", "canary#1", "open")
    await store.commit(maker.step({"canary-a": b"canary 2"}, requests=[row], turn=maker.turn("canary-key")))
    await store.commit(telling(maker.step({"canary-c": b"canary 3"}, ["canary-b", "never"]), b"canary told", last=2))
    await store.tag("canary-run", "canary-name", maker.head)
    for number in (1, 2):
        assert await store.offer(Offer("canary-run", f"canary-{number}", b"canary body")) == number
    await store.commit(msgspec.structs.replace(maker.end({"canary-a": b"canary 4"}), taken=(1,)))
    archive = await store.archive("canary-run")
    assert archive is not None
    return archive


def inside(keys: KeyRing | None = None) -> tuple[InMemoryCheckpointStorage, EncryptedCheckpointStorage]:
    inner = InMemoryCheckpointStorage(clock=ManualClock(), keep_events=True)
    return inner, EncryptedCheckpointStorage(inner, keys or ring())


def inner_archive(inner: InMemoryCheckpointStorage, store: EncryptedCheckpointStorage) -> Archive:
    """Return the archive of the run as the store inside has it."""
    archive = asyncio.run(inner.archive(store.listing_key("canary-run")))
    assert archive is not None
    return archive


def shows_canary(archive: Archive) -> bool:
    """Tell whether the canary stands somewhere, besides in ids of checkpoints, which a run makes from chance."""
    return b"canary" in msgspec.msgpack.encode(archive).replace(b"canary-run:", b"")


def test_an_archive_of_the_store_inside_is_closed_and_opens_elsewhere() -> None:
    """The export of the store inside holds nothing of the user's; taken in by another place, the same keys open it."""
    inner, store = inside()
    archive = asyncio.run(filled(store))
    closed = inner_archive(inner, store)
    assert shows_canary(archive)
    assert not shows_canary(closed)
    there, again = inside()
    asyncio.run(there.adopt(closed))
    assert asyncio.run(again.archive("canary-run")) == archive
    assert asyncio.run(again.load(At("canary-run", "canary-name"))).header.seq == 2
    _, wrong = inside(KeyRing({"2026-11": OTHER}))
    asyncio.run(wrong._store.adopt(closed))
    with pytest.raises(WrongKeyError, match="'2026-11', which has other bytes"):
        asyncio.run(wrong.archive("canary-run"))


def test_a_run_is_encrypted_anew_by_moving_it() -> None:
    """Archived by its owner and taken in under another ring, also of other names, it is the same run under new keys."""
    _, store = inside()
    archive = asyncio.run(filled(store))
    inner, moved = inside(KeyRing({"2027-05": NEW}))
    asyncio.run(moved.adopt(archive))
    assert asyncio.run(moved.archive("canary-run")) == archive
    closed = inner_archive(inner, moved)
    written = msgspec.msgpack.encode(closed)
    assert b"2027-05" in written
    assert b"2026-11" not in written
    assert not shows_canary(closed)
    assert asyncio.run(moved.load(Latest("canary-run"))).records["canary-a"] == b"canary 4"
    plain = InMemoryCheckpointStorage(keep_events=True)
    asyncio.run(plain.adopt(archive))
    assert asyncio.run(plain.archive("canary-run")) == archive


def test_a_changed_archive_is_refused() -> None:
    """A record that was put back, left out or is plain shows in the archive of the store inside, as in a load."""
    inner, store = inside()
    asyncio.run(filled(store))
    closed = inner_archive(inner, store)
    first, second, third, last = closed.commits
    by_key = {put.key: put.data for put in first.puts}
    stale = msgspec.structs.replace(last, puts=tuple(Put(put.key, by_key[put.key]) for put in last.puts))
    lost = msgspec.structs.replace(third, puts=())
    plain = msgspec.structs.replace(second, puts=tuple(Put(put.key, b"RH plain") for put in second.puts))
    for commits, error in (
        ((first, second, third, stale), CheckpointCorruptError),
        ((first, second, lost, last), CheckpointCorruptError),
        ((first, plain, third, last), NotEncryptedError),
    ):

        async def give(run_id: str, commits: tuple[Commit, ...] = commits) -> Archive:
            return msgspec.structs.replace(closed, commits=commits)

        inner.archive = give
        with pytest.raises(error):
            asyncio.run(store.archive("canary-run"))


def test_the_same_offer_is_the_same_under_a_new_key() -> None:
    """An offer that comes again after a key was added is known, waiting or taken; another under its key is refused."""
    inner, store = inside()
    asyncio.run(filled(store))
    rotated = EncryptedCheckpointStorage(inner, BOTH)
    for number in (1, 2):
        assert asyncio.run(rotated.offer(Offer("canary-run", f"canary-{number}", b"canary body"))) == number
        with pytest.raises(OfferConflictError, match=f"key 'canary-{number}' was offered to run 'canary-run' before"):
            asyncio.run(rotated.offer(Offer("canary-run", f"canary-{number}", b"something else")))
    assert [(offer.key, offer.body) for offer in asyncio.run(rotated.offers("canary-run"))] == [
        ("canary-2", b"canary body")
    ]


def test_names_and_offers_cannot_be_changed() -> None:
    """A name, key or body that was changed, moved from another run, or is plain, is refused."""
    inner, store = inside()
    asyncio.run(filled(store))
    other = CommitMaker("other")
    asyncio.run(store.commit(other.claim()))
    asyncio.run(store.tag("other", "name", "other:0"))
    asyncio.run(store.offer(Offer("other", "key", b"body")))
    mine, theirs = store.listing_key("canary-run"), store.listing_key("other")
    (name,) = asyncio.run(inner.tags(theirs))
    (offer,) = asyncio.run(inner.offers(theirs))
    (waiting,) = asyncio.run(inner.offers(mine))

    async def tags(run_id: str) -> dict[str, str]:
        return {name: "run:0"}

    inner.tags = tags
    mine_named = next(iter(inner_archive(inner, store).tags))
    others = string.ascii_letters + string.digits + "-_"
    spelled = [mine_named[:-1] + last for last in others if last != mine_named[-1]]
    for found in (name, "plain", "", mine_named + "=", *spelled):
        name = found
        with pytest.raises(CheckpointCorruptError):
            asyncio.run(store.tags("canary-run"))
    replace = msgspec.structs.replace
    changed = replace(waiting, body=waiting.body[:-1] + bytes([waiting.body[-1] ^ 1]))
    moved = replace(offer, run_id=mine)
    for found, error in (
        (changed, CheckpointCorruptError),
        (offer, CheckpointCorruptError),
        (moved, CheckpointCorruptError),
        (replace(waiting, key="plain"), CheckpointCorruptError),
        (replace(waiting, body=b"RH plain"), NotEncryptedError),
    ):

        async def offers(run_id: str, found: Offer = found, **_: int) -> list[Offer]:
            return [found]

        inner.offers = offers
        with pytest.raises(error):
            asyncio.run(store.offers("canary-run"))


def test_a_name_has_as_much_room_as_its_cover_leaves() -> None:
    """A name of 122 bytes is the longest that a store inside takes under its cover; a longer one is a wrong call."""
    assert MAX_NAME_BYTES == 122
    _, store = inside()
    maker = CommitMaker()
    asyncio.run(store.commit(maker.claim()))
    asyncio.run(store.tag("run", "é" * 61, "run:0"))
    assert asyncio.run(store.tags("run")) == {"é" * 61: "run:0"}
    with pytest.raises(WrongCallError, match="the name has 123 bytes in UTF-8, and 122 are allowed"):
        asyncio.run(store.tag("run", "x" * 123, "run:0"))
