"""The store contract, first part: runs, heads, leases, records, and what is listed.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import msgspec

from rehydrate.errors import CheckpointNotFoundError, CommitConflictError, WrongCallError
from rehydrate.model.checkpoint import Cause, Head, Header, Latest, RequestRow, Status

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, in_order, loaded, refused


async def a_claim_starts_a_run(make: MakeStore) -> None:
    """The first commit gives the run its head, its owner and epoch 1."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    assert await store.head("run") is None
    commit = maker.claim({"k": b"v"})
    await store.commit(commit)
    assert await head_of(store) == Head(commit.header, "owner", 1, alive=True)
    await store.close()


async def a_run_starts_once(make: MakeStore) -> None:
    """A new run of a known id, a first commit without a claim and one with another epoch are refused."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    commit = maker.claim()
    await store.commit(commit)
    await refused(CommitConflictError, store.commit(CommitMaker(tag="x").claim()))
    await refused(CommitConflictError, store.commit(CommitMaker("other").step()))
    late = CommitMaker("other")
    late.epoch = 1
    await refused(CommitConflictError, store.commit(late.claim()))
    assert (await head_of(store)).header == commit.header
    assert await store.head("other") is None
    await store.close()


async def a_lost_commit_changes_nothing(make: MakeStore) -> None:
    """A commit on a head that has moved leaves no record, request, turn or lease behind."""
    clock = ManualClock()
    store, maker = make(clock=clock), CommitMaker()
    await store.commit(maker.claim({"k": b"first"}))
    late = maker.copy(owner="owner", tag="late")
    winner = maker.step({"k": b"second"}, seconds=10)
    await store.commit(winner)
    row = RequestRow("q", "run", "", "open")
    lost = late.step({"k": b"lost", "l": b"lost"}, requests=[row], turn=late.turn("key"), seconds=99)
    error = await refused(CommitConflictError, store.commit(lost))
    assert (error.run_id, error.found) == ("run", f"head {winner.header.checkpoint_id}")
    stored = await loaded(store, Latest("run"))
    assert (stored.header, stored.records) == (winner.header, {"k": b"second"})
    assert await store.load(lost.header.checkpoint_id) is None
    assert await store.find_request("q") is None
    assert await store.find_turn("flow", "key") is None
    clock.now += 11
    assert not (await head_of(store)).alive
    await store.close()


async def an_epoch_ends_with_the_next_claim(make: MakeStore) -> None:
    """After a takeover the former owner can neither commit nor renew, whatever head it names."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    stale = maker.copy(owner="owner", tag="stale")
    taker = maker.copy(owner="taker", tag="taker")
    await store.commit(taker.claim())
    stale.head, stale.seq = taker.head, taker.seq
    await refused(CommitConflictError, store.commit(stale.step()))
    await refused(CommitConflictError, store.renew("run", "owner", 1, 30))
    skipping = taker.copy(owner="third", tag="third")
    skipping.epoch += 1
    await refused(CommitConflictError, store.commit(skipping.claim()))
    head = await head_of(store)
    assert (head.owner, head.epoch, head.header.checkpoint_id) == ("taker", 2, taker.head)
    await store.close()


async def a_lease_runs_on_the_stores_clock(make: MakeStore) -> None:
    """A commit and `renew` lengthen the lease; it ends by the clock, and the run can be claimed again."""
    clock = ManualClock()
    store, maker = make(clock=clock), CommitMaker()
    await store.commit(maker.claim(seconds=30))
    clock.now += 29
    assert (await head_of(store)).alive
    await store.renew("run", "owner", 1, 30)
    clock.now += 29
    assert (await head_of(store)).alive
    await store.commit(maker.step(seconds=30))
    clock.now += 29
    assert (await head_of(store)).alive
    clock.now += 2
    head = await head_of(store)
    assert (head.owner, head.alive) == ("owner", False)
    await store.commit(maker.copy(owner="next", tag="next").claim())
    assert (await head_of(store)).alive
    await store.close()


async def the_end_of_a_turn_clears_the_owner(make: MakeStore) -> None:
    """A commit without lease leaves no owner and keeps the epoch; nobody can renew, and the next claim follows."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    await store.commit(maker.end())
    head = await head_of(store)
    assert (head.owner, head.epoch, head.alive) == (None, 1, False)
    await refused(CommitConflictError, store.renew("run", "owner", 1, 30))
    await refused(CommitConflictError, store.renew("unknown", "owner", 1, 30))
    maker.owner = "another"
    await store.commit(maker.claim())
    head = await head_of(store)
    assert (head.owner, head.epoch) == ("another", 2)
    await store.close()


async def a_header_comes_back_whole(make: MakeStore) -> None:
    """Every field of a header is kept, also what a store around this one keeps in it."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    commit = maker.claim()
    whole = msgspec.structs.replace(
        commit.header, cause=Cause.EDIT, size=7, changed=2, scopes=("", "a#1/b#2"), reason="why", sealed=b"\x00\xff"
    )
    await store.commit(msgspec.structs.replace(commit, header=whole))
    await store.commit(maker.end())
    assert (await loaded(store, "run:0")).header == whole
    assert (await store.history("run"))[1] == whole
    await store.close()


async def puts_replace_and_removes_delete(make: MakeStore) -> None:
    """The head has the newest of each record; removing what is not there is fine; empty data is data."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"a": b"1", "b": b"1", "c": b""}))
    await store.commit(maker.step({"a": b"2"}, ["b", "never"]))
    stored = await loaded(store, Latest("run"))
    assert stored.records == {"a": b"2", "c": b""}
    assert await store.read("run", ["c", "b", "a", "never"]) == {"c": b"", "a": b"2"}
    assert await store.read("unknown", ["a"]) == {}
    await store.close()


async def earlier_checkpoints_stay(make: MakeStore) -> None:
    """Every checkpoint loads as it was, with the head of the moment; unknown ones are `None`."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    kept: list[tuple[Header, dict[str, bytes]]] = []
    for commit in (
        lambda: maker.claim({"a": b"1", "b": b"1"}),
        lambda: maker.step({"a": b"2"}, ["b"]),
        lambda: maker.step({"b": b"3"}),
        lambda: maker.step({}, ["a", "b"]),
        lambda: maker.end({"a": b"5"}),
    ):
        made = commit()
        await store.commit(made)
        kept.append((made.header, dict(maker.records)))
    for header, records in kept:
        stored = await loaded(store, header.checkpoint_id)
        assert (stored.header, stored.records, stored.head.header) == (header, records, kept[-1][0])
    assert await store.load("unknown") is None
    assert await store.load(Latest("unknown")) is None
    await refused(CheckpointNotFoundError, store.inspect("unknown"))
    await refused(CheckpointNotFoundError, store.inspect(Latest("unknown")))
    await store.close()


async def big_records_are_exact(make: MakeStore) -> None:
    """Records of any size come back byte for byte, from the head and from an earlier checkpoint."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    sizes = (1, 65_535, 262_144, 262_145, 524_288, 5_000_001)
    puts = {f"k{size}": bytes(range(251)) * (size // 251) + b"\xff" * (size % 251) for size in sizes}
    first = maker.claim(puts)
    await store.commit(first)
    assert (await loaded(store, Latest("run"))).records == puts
    await store.commit(maker.step({"k5000001": b"small now"}, ["k262145"]))
    assert (await loaded(store, first.header.checkpoint_id)).records == puts
    assert await store.read("run", ["k524288"]) == {"k524288": puts["k524288"]}
    await store.close()


async def what_is_loaded_is_the_callers(make: MakeStore) -> None:
    """Changing what was loaded changes nothing in the store."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"a": b"1"}))
    (await loaded(store, Latest("run"))).records["a"] = b"changed"
    (await store.read("run", ["a"]))["a"] = b"changed"
    (await store.history("run")).clear()
    assert (await loaded(store, Latest("run"))).records == {"a": b"1"}
    assert len(await store.history("run")) == 1
    await store.close()


async def numbers_order_not_times(make: MakeStore) -> None:
    """With equal times, and with a clock that goes back an hour, the newest is the one with the highest number."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    await store.commit(maker.step())
    maker.created -= 3600
    newest = maker.step()
    await store.commit(newest)
    assert (await head_of(store)).header == newest.header
    assert [header.seq for header in await store.history("run")] == [2, 1, 0]
    again = maker.copy(owner="owner", tag="again")
    again.seq = 1
    await refused(CommitConflictError, store.commit(again.step()))
    await store.close()


async def history_goes_by_pages(make: MakeStore) -> None:
    """Pages of headers follow each other, newest first, without gap or repeat."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    for _ in range(6):
        await store.commit(maker.step())
    pages: list[list[int]] = []
    before: int | None = None
    while page := await store.history("run", before=before, limit=3):
        pages.append([header.seq for header in page])
        before = page[-1].seq
    assert pages == [[6, 5, 4], [3, 2, 1], [0]]
    assert await store.history("unknown") == []
    await refused(WrongCallError, store.history("run", limit=0))
    await store.close()


async def runs_are_listed_by_id(make: MakeStore) -> None:
    """Runs come ordered by id (or by what it is hidden under), by pages, and by workflow and status of their heads."""
    store = make(clock=ManualClock())
    for name, workflow in (("b", "one"), ("a", "two"), ("c", "one"), ("é", "one"), ("B", "two")):
        maker = CommitMaker(name, workflow=workflow)
        await store.commit(maker.claim())
        if name in {"a", "c"}:
            await store.commit(maker.end())

    async def ids(workflow: str | None = None, status: str | None = None, after: str | None = None) -> list[str]:
        return [header.run_id for header in await store.runs(workflow=workflow, status=status, after=after)]

    everything = in_order(store, "B", "a", "b", "c", "é")
    assert await ids() == everything
    assert [header.run_id for header in await store.runs(after=everything[1], limit=2)] == everything[2:4]
    assert await ids("one") == in_order(store, "b", "c", "é")
    assert await ids(status="IDLE") == in_order(store, "a", "c")
    assert await ids("one", "IDLE") == ["c"]
    assert await ids("one", "RUNNING", in_order(store, "b", "é")[0]) == in_order(store, "b", "é")[1:]
    assert await ids("none") == []
    assert await ids(status=Status.IDLE) == in_order(store, "a", "c")
    await refused(WrongCallError, store.runs(limit=0))
    error = await refused(WrongCallError, store.runs(status="IDEL"))
    assert "'IDEL'" in str(error)
    assert all(repr(status.value) in str(error) for status in Status)
    await store.close()


RUN_CHECKS: tuple[Check, ...] = (
    a_claim_starts_a_run,
    a_run_starts_once,
    a_lost_commit_changes_nothing,
    an_epoch_ends_with_the_next_claim,
    a_lease_runs_on_the_stores_clock,
    the_end_of_a_turn_clears_the_owner,
    a_header_comes_back_whole,
    puts_replace_and_removes_delete,
    earlier_checkpoints_stay,
    big_records_are_exact,
    what_is_loaded_is_the_callers,
    numbers_order_not_times,
    history_goes_by_pages,
    runs_are_listed_by_id,
)
