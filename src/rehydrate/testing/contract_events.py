"""The store contract, part on events: kept with their commit, read by number, gone with their run.

Each check holds for a store that keeps events and for one that keeps none, which is given some all the same.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

from typing import cast

import msgspec

from rehydrate.errors import CommitConflictError, WrongCallError
from rehydrate.model.checkpoint import Commit, StoredEvent
from rehydrate.ports import CheckpointStorage

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, refused


def telling(commit: Commit, *events: bytes, last: int) -> Commit:
    """Return a commit that reports these events, the last of them under this number."""
    header = msgspec.structs.replace(commit.header, events=last)
    return msgspec.structs.replace(commit, header=header, events=events)


def kept(store: CheckpointStorage, first: int, *events: bytes) -> list[StoredEvent]:
    """Return what a store is to give back of events that were numbered from `first` on."""
    if not store.keeps_events:
        return []
    return [StoredEvent(number, data) for number, data in enumerate(events, first)]


async def events_come_back_by_number(make: MakeStore) -> None:
    """Events of commits, and of commits without any, come back byte for byte, in order, from behind a number on."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    big = b"\x00\xff" * 200_000
    await store.commit(telling(maker.claim({"k": b"v"}), b"one", b"", last=2))
    await store.commit(telling(maker.step(), last=2))
    await store.commit(telling(maker.step({"k": b"w"}), big, last=3))
    await store.commit(telling(maker.end(), b"four", b"five", last=5))
    everything = kept(store, 1, b"one", b"", big, b"four", b"five")
    assert await store.events("run") == everything
    assert await store.events("run", after=2) == everything[2:]
    assert await store.events("run", after=5) == await store.events("run", after=2**70) == []
    assert await store.events("unknown") == []
    await store.close()


async def events_go_by_pages(make: MakeStore) -> None:
    """Pages follow each other without gap or repeat, also between the events of one commit."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    await store.commit(telling(other.claim(), *[b"other"] * 9, last=9))
    await store.commit(telling(maker.claim(), *[b"%d" % number for number in range(1, 8)], last=7))
    pages: list[list[StoredEvent]] = []
    after = 0
    while page := await store.events("run", after=after, limit=3):
        pages.append(page)
        after = page[-1].number
    everything = kept(store, 1, *[b"%d" % number for number in range(1, 8)])
    assert pages == [page for page in (everything[:3], everything[3:6], everything[6:]) if page]
    await store.close()


async def events_may_begin_late(make: MakeStore) -> None:
    """A run whose first events nobody kept has the others under their numbers."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(telling(maker.claim(), last=40))
    await store.commit(telling(maker.step(), b"late", last=41))
    assert await store.events("run") == await store.events("run", after=40) == kept(store, 41, b"late")
    await store.close()


async def a_lost_commit_keeps_no_event(make: MakeStore) -> None:
    """What reports a commit that lost its race is not there, and the winner's is."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(telling(maker.claim(), b"claim", last=1))
    late = maker.copy(owner="owner", tag="late")
    await store.commit(telling(maker.step(), b"won", last=2))
    await refused(CommitConflictError, store.commit(telling(late.step(), b"lost", b"lost", last=3)))
    assert await store.events("run") == kept(store, 1, b"claim", b"won")
    await store.close()


async def events_are_the_callers(make: MakeStore) -> None:
    """Changing the list that was read changes nothing in the store."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(telling(maker.claim(), b"one", last=1))
    (await store.events("run")).clear()
    assert await store.events("run") == kept(store, 1, b"one")
    await store.close()


async def events_go_with_their_run(make: MakeStore) -> None:
    """A deleted run leaves none, another run's stay, and the id used again starts anew."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    for one in (maker, other):
        await store.commit(telling(one.claim(), one.run_id.encode(), b"two", last=2))
        await store.commit(telling(one.end(), last=2))
    assert await store.delete("run") is True
    assert await store.events("run") == []
    await store.commit(telling(CommitMaker(tag="again").claim(), b"anew", last=1))
    assert await store.events("run") == kept(store, 1, b"anew")
    assert await store.events("other") == kept(store, 1, b"other", b"two")
    await store.close()


async def wrong_calls_for_events_are_refused(make: MakeStore) -> None:
    """Pages of nothing, numbers below zero, what is no number or text, and more events than numbers are refused."""
    store, maker, number = make(clock=ManualClock()), CommitMaker(), cast("int", "3")
    await store.commit(maker.claim())
    for call in (
        store.events("run", limit=0),
        store.events("run", after=-1),
        store.events("run", after=number),
        store.events("run", limit=number),
        store.events(cast("str", 3)),
        store.events("\ud800"),
        store.commit(telling(maker.copy(owner="owner", tag="more").step(), b"one", b"two", last=1)),
    ):
        await refused(WrongCallError, call)
    assert await store.events("run") == []
    await store.close()


#: What a store that keeps events promises of them; part of `CHECKS`.
EVENT_CHECKS: tuple[Check, ...] = (
    events_come_back_by_number,
    events_go_by_pages,
    events_may_begin_late,
    a_lost_commit_keeps_no_event,
    events_are_the_callers,
    events_go_with_their_run,
    wrong_calls_for_events_are_refused,
)
