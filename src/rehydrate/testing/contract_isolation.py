"""The store contract: what was given and what was read are the caller's, times of any kind, and lineage without gaps.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import math
import random
from typing import TypeVar, cast

import msgspec

from rehydrate.errors import CommitConflictError
from rehydrate.model.checkpoint import Archive, At, Commit, Latest, Offer, Put, RequestRow
from rehydrate.ports import CheckpointStorage

from .contract_events import kept, telling
from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, loaded, refused

_T = TypeVar("_T")


def _listed(items: tuple[_T, ...], into: list[list[object]]) -> tuple[_T, ...]:
    """Return a list in the place of a tuple, which the caller can change later."""
    found = list(items)
    into.append(cast("list[object]", found))
    return cast("tuple[_T, ...]", found)


def _changeable(commit: Commit, into: list[list[object]]) -> Commit:
    """Return a commit whose parts can be changed after it was handed over."""
    return msgspec.structs.replace(
        commit,
        puts=_listed(commit.puts, into),
        removes=_listed(commit.removes, into),
        requests=_listed(commit.requests, into),
        events=_listed(commit.events, into),
        taken=_listed(commit.taken, into),
    )


async def what_is_given_is_the_callers(make: MakeStore) -> None:
    """Changing what was handed to any call, once the call is done, changes nothing in the store."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"a": b"1", "b": b"1"}))
    await store.offer(Offer("run", "letter", b"come"))
    lists: list[list[object]] = []
    row = RequestRow("q", "run", "", "open")
    commit = telling(maker.step({"a": b"2"}, ["b"], requests=[row]), b"told", last=1)
    await store.commit(_changeable(msgspec.structs.replace(commit, taken=(1,)), lists))
    for one in lists:
        one.clear()
    keys, numbers = ["a"], [0]
    read = await store.read("run", keys)
    dropped = await store.forget("run", numbers)
    keys.append("b")
    numbers.clear()
    dropped.clear()
    assert read == {"a": b"2"}
    assert (await loaded(store, Latest("run"))).records == {"a": b"2"}
    assert (await store.requests(), await store.offers("run")) == ([row], [])
    assert await store.events("run") == kept(store, 1, b"told")
    await store.close()


async def what_any_call_gave_is_the_callers(make: MakeStore) -> None:
    """Changing what any call gave back changes nothing in the store."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    row = RequestRow("q", "run", "", "open")
    await store.commit(telling(maker.claim({"a": b"1"}), b"told", last=1))
    await store.commit(maker.step({"a": b"2"}, requests=[row]))
    await store.tag("run", "name", "run:0")
    await store.offer(Offer("run", "letter", b"come"))
    before = await _said(store)
    for ref in (Latest("run"), "run:0", At("run", 0)):
        stored = await loaded(store, ref)
        stored.records.clear()
        stored.digests.clear()
    (await store.read("run", ["a"])).clear()
    (await store.tags("run")).clear()
    archive = await store.archive("run")
    assert archive is not None
    archive.tags.clear()
    for rows in (store.runs(), store.history("run"), store.events("run"), store.requests(), store.offers("run")):
        cast("list[object]", await rows).clear()
    assert await _said(store) == before
    await store.close()


async def what_was_adopted_is_the_callers(make: MakeStore) -> None:
    """Changing an archive after it was taken in changes nothing in the store."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"a": b"1"}))
    await store.commit(maker.end())
    await store.tag("run", "name", "run:0")
    archive = await store.archive("run")
    assert archive is not None
    assert await store.delete("run") is True
    lists: list[list[object]] = []
    given = msgspec.structs.replace(
        archive, commits=_listed(tuple(_changeable(commit, lists) for commit in archive.commits), lists)
    )
    await store.adopt(given)
    given.tags.clear()
    for one in lists:
        one.clear()
    assert (await loaded(store, Latest("run"))).records == {"a": b"1"}
    assert await store.tags("run") == {"name": "run:0"}
    assert len(await store.history("run")) == 2
    await store.close()


async def times_of_any_kind_are_kept(make: MakeStore) -> None:
    """A time that is no number or has no end comes back as it was; a lease without end holds, one of NaN does not."""
    clock = ManualClock()
    store = make(clock=clock)
    for number, created in enumerate((math.nan, math.inf, -math.inf, -1.5, 0.1 + 0.2, 1e300)):
        maker = CommitMaker(f"r{number}")
        maker.created = created
        await store.commit(maker.claim({"k": b"v"}, seconds=math.inf))
        assert repr((await store.history(maker.run_id))[0].created) == repr(created)
        assert repr((await loaded(store, Latest(maker.run_id))).header.created) == repr(created)
        clock.now += 1e12
        assert (await head_of(store, maker.run_id)).alive
        await store.commit(maker.step(seconds=math.nan))
        assert (await head_of(store, maker.run_id)).owner is None
    await store.close()


async def every_parent_is_there(make: MakeStore) -> None:
    """Whatever is committed, lost and forgotten: what a checkpoint names as the one before it is there."""
    chance = random.Random(29)  # noqa: S311  (a seed that makes the check repeatable)
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"k": b"0"}))
    for number in range(30):
        late = maker.copy(owner="owner", tag=f".late{number}")
        await store.commit(maker.step({f"k{number % 3}": b"%d" % number}))
        await refused(CommitConflictError, store.commit(late.step({"k": b"lost"})))
        if chance.random() < 0.3:
            await store.forget("run", chance.sample(range(number + 1), 1))
    history = await store.history("run")
    assert [header.previous_checkpoint_id for header in history] == [
        *(header.checkpoint_id for header in history[1:]),
        None,
    ]
    for header in history:
        stored = await loaded(store, header.checkpoint_id)
        assert (stored.header, len(stored.records)) == (header, header.records)
    await store.close()


async def _said(store: CheckpointStorage) -> list[object]:
    """Return what every call says of the run `run`."""
    archive: Archive | None = await store.archive("run")
    loads = [await loaded(store, ref) for ref in (Latest("run"), "run:0", At("run", 0), At("run", "name"))]
    lists = (store.runs(), store.history("run"), store.events("run"), store.requests(), store.offers("run"))
    found: list[object] = [*loads, archive, await store.tags("run"), await store.read("run", ["a"])]
    return [*found, *[await rows for rows in lists], Put("", b"")]


ISOLATION_CHECKS: tuple[Check, ...] = (
    what_is_given_is_the_callers,
    what_any_call_gave_is_the_callers,
    what_was_adopted_is_the_callers,
    times_of_any_kind_are_kept,
    every_parent_is_there,
)
