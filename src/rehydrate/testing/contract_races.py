"""The store contract, third part: many callers at once, event loops that come and go, cancelled calls, closing.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import asyncio
import threading
from typing import Protocol

from rehydrate.errors import CommitConflictError, RunBusyError, StoreClosedError
from rehydrate.model.checkpoint import Commit, Latest, Offer, RequestRow, Status
from rehydrate.ports import CheckpointStorage

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, loaded, refused

#: How often two writers meet at one head.
ROUNDS = 50


class Meeting(Protocol):
    """Where two that race wait for each other: a barrier of threads, or of processes."""

    def wait(self) -> int:
        """Wait for the other one."""
        ...


async def attempt(store: CheckpointStorage, commit: Commit) -> bool:
    """Say whether a commit was taken; a lost race is the only other end."""
    try:
        await store.commit(commit)
    except CommitConflictError:
        return False
    return True


async def of_two_tasks_one_wins(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two tasks commit on one head at once: exactly one is taken, in each of 50 rounds, and its records are there."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    for _ in range(rounds):
        rivals = [maker.copy(owner="owner", tag=tag) for tag in ("a", "b")]
        commits = [rival.step({"k": rival.tag.encode()}) for rival in rivals]
        won = await asyncio.gather(*(attempt(store, commit) for commit in commits))
        assert sorted(won) == [False, True]
        maker = rivals[won.index(True)]
    assert (await loaded(store, Latest("run"))).records == maker.records
    await store.close()


async def of_two_with_one_id_one_wins(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two tasks commit different records under one checkpoint id: the winner's are there, and it goes on at once."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"k": b"0"}))

    async def go_on(rival: CommitMaker, puts: dict[str, bytes], after: int) -> bool:
        if not await attempt(store, rival.step(puts)):
            return False
        for _ in range(after):
            await asyncio.sleep(0)
        await store.commit(rival.step({"m": b"on"}))
        return True

    for number in range(rounds):
        rivals = [maker.copy(owner="owner", tag="") for _ in range(2)]
        puts = [{"k": b"%d" % number, f"l{number}": b"v"}, {"k": b"other"}]
        won = await asyncio.gather(*(go_on(one, put, number % 5) for one, put in zip(rivals, puts, strict=True)))
        assert sorted(won) == [False, True]
        maker = rivals[won.index(True)]
        assert (await loaded(store, Latest("run"))).records == maker.records
    await store.close()


async def of_two_threads_one_wins(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two threads with loops of their own start the same runs through one store: each run is started exactly once."""
    store = make(clock=ManualClock())

    async def start_all(tag: str) -> list[bool]:
        return [await attempt(store, CommitMaker(f"r{number}", tag=tag).claim()) for number in range(rounds)]

    def in_thread(tag: str) -> list[bool]:
        return asyncio.run(start_all(tag))

    first, second = await asyncio.gather(asyncio.to_thread(in_thread, "a"), asyncio.to_thread(in_thread, "b"))
    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * rounds
    for number, won in enumerate(first):
        head = await head_of(store, f"r{number}")
        assert head.header.checkpoint_id == f"r{number}:0{'a' if won else 'b'}"
    await store.close()


async def of_two_threads_one_goes_on(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two threads commit on one head at once, 50 times: exactly one is taken each time, and both go on from it."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    barrier = threading.Barrier(2, timeout=60)

    def in_thread(tag: str) -> list[bool]:
        return asyncio.run(race_on_one_head(store, tag, barrier, rounds))

    first, second = await asyncio.gather(asyncio.to_thread(in_thread, "a"), asyncio.to_thread(in_thread, "b"))
    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * rounds
    assert (await head_of(store)).header.seq == rounds
    await store.close()


async def race_on_one_head(
    store: CheckpointStorage, tag: str, barrier: Meeting, rounds: int, *, seconds: float = 30.0
) -> list[bool]:
    """Commit on the head of the run `run`, `rounds` times together with another one, and say which were taken."""
    won: list[bool] = []
    for number in range(rounds):
        maker = CommitMaker(tag=tag)
        maker.head, maker.seq, maker.epoch = (await head_of(store)).header.checkpoint_id, number, 1
        maker.know("k", tag.encode())
        barrier.wait()
        won.append(await attempt(store, maker.step({"k": tag.encode()}, seconds=seconds)))
        barrier.wait()
    return won


async def saves_and_deletes_do_not_mix(make: MakeStore) -> None:
    """While one task starts and ends a run again and again and another one deletes it, it is whole or not there."""
    store, makers = make(clock=ManualClock()), [CommitMaker(tag=f".{number}") for number in range(25)]
    request = RequestRow("q", "run", "", "open")
    deleted: list[bool] = []

    async def save() -> None:
        for maker in makers:
            while not await attempt(store, maker.claim({"k": b"1", "l": b"1"})):
                maker.epoch = 0
                maker.seq, maker.head = -1, None
                await asyncio.sleep(0)
            await store.commit(maker.step({"k": b"2"}, requests=[request]))
            await store.commit(maker.step({"k": b"3"}, ["l"], seconds=0, status=Status.IDLE))

    async def delete() -> None:
        while sum(deleted) < len(makers):
            try:
                deleted.append(await store.delete("run"))
            except RunBusyError:
                deleted.append(False)
            await asyncio.sleep(0)

    async def look() -> None:
        while sum(deleted) < len(makers):
            stored = await store.load(Latest("run"))
            known = ({"k": b"1", "l": b"1"}, {"k": b"2", "l": b"1"}, {"k": b"3"})
            assert stored is None or stored.records == known[stored.header.seq]
            await asyncio.sleep(0)

    await asyncio.wait_for(asyncio.gather(save(), delete(), look()), 60)
    assert await store.runs() == []
    assert (await store.find_request("q"), await store.requests()) == (None, [])
    await store.close()


async def a_lost_commit_fails_alone(make: MakeStore) -> None:
    """Of many runs that commit at the same moment, those with a stale head or another's key fail, and only they."""
    store = make(clock=ManualClock())
    makers = [CommitMaker(f"r{number:03d}") for number in range(100)]
    await asyncio.gather(*(store.commit(maker.claim({"k": b"0"})) for maker in makers))
    await store.commit(makers[0].step(turn=makers[0].turn("key")))
    makers[50].head = "stale"
    commits = [
        maker.step({"k": b"1"}, ["never"], turn=maker.turn("key") if number == 70 else None)
        for number, maker in enumerate(makers)
    ]
    results = await asyncio.gather(*(store.commit(commit) for commit in commits), return_exceptions=True)
    assert [number for number, result in enumerate(results) if isinstance(result, CommitConflictError)] == [50, 70]
    assert [result for number, result in enumerate(results) if number not in {50, 70}] == [None] * 98
    records = [(await loaded(store, Latest(maker.run_id))).records for maker in makers]
    assert [number for number, found in enumerate(records) if found != {"k": b"1"}] == [50, 70]
    assert (records[50], records[70]) == ({"k": b"0"}, {"k": b"0"})
    await store.close()


async def loops_come_and_go(make: MakeStore) -> None:
    """One store object serves event loops one after the other, and a loop that left calls behind disturbs nobody."""
    store, maker = make(clock=ManualClock()), CommitMaker()

    async def step(commit: Commit) -> None:
        await store.commit(commit)

    async def leave(commit: Commit) -> None:
        waiting = asyncio.ensure_future(store.commit(commit))
        await asyncio.sleep(0)
        waiting.cancel()

    await asyncio.to_thread(lambda: asyncio.run(step(maker.claim({"k": b"0"}))))
    await asyncio.to_thread(lambda: asyncio.run(step(maker.step({"k": b"1"}))))
    left = maker.copy(owner="owner", tag=".left")
    await asyncio.to_thread(lambda: asyncio.run(leave(left.step({"k": b"2"}))))
    if (await head_of(store)).header.checkpoint_id == left.head:
        maker = left
    await asyncio.to_thread(lambda: asyncio.run(step(maker.step({"k": b"3"}))))
    assert (await loaded(store, Latest("run"))).records == {"k": b"3"}
    await store.close()


async def a_cancelled_call_harms_nothing(make: MakeStore) -> None:
    """A commit whose caller is cancelled is taken or not, as a whole, and the store goes on."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"k": b"start"}))
    for number in range(20):
        before = maker.copy(owner="owner", tag=f".{number}")
        after = maker.copy(owner="owner", tag=f".{number}")
        commit = after.step({"k": b"%d" % number, "l": b"%d" % number})
        waiting = asyncio.ensure_future(store.commit(commit))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        stored = await loaded(store, Latest("run"))
        taken = stored.header.checkpoint_id == after.head
        maker = after if taken else before
        assert (stored.header.checkpoint_id, stored.records) == (maker.head, maker.records)
    await store.commit(maker.step({"k": b"end"}))
    assert (await loaded(store, Latest("run"))).records["k"] == b"end"
    await store.close()


async def reads_follow_writes(make: MakeStore) -> None:
    """A read that is asked for after a commit, without waiting for it, sees it."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    commits: list[asyncio.Future[None]] = []
    reads: list[asyncio.Future[dict[str, bytes]]] = []
    for number in range(10):
        commits.append(asyncio.ensure_future(store.commit(maker.step({"k": b"%d" % number}))))
        reads.append(asyncio.ensure_future(store.read("run", ["k"])))
    assert await asyncio.gather(*reads) == [{"k": b"%d" % number} for number in range(10)]
    await asyncio.gather(*commits)
    await store.close()


async def a_closed_store_says_so(make: MakeStore) -> None:
    """Calls made before `close` are done; a second `close` does nothing; every later call is refused."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    commits = [asyncio.ensure_future(store.commit(commit)) for commit in (maker.claim(), maker.step(), maker.end())]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*commits) == [None, None, None]
    await store.close()
    again = make(clock=ManualClock())
    await again.commit((kept := CommitMaker("kept")).claim())
    await again.commit(kept.end())
    archive = await again.archive("kept")
    assert archive is not None
    await again.close()
    for call in (
        store.commit(maker.claim()),
        store.head("run"),
        store.load("run:0"),
        store.read("run", []),
        store.find_request("q"),
        store.find_turn("flow", "key"),
        store.renew("run", "owner", 1, 30),
        store.runs(),
        store.history("run"),
        store.inspect("run:0"),
        store.delete("run"),
        store.requests(),
        store.events("run"),
        store.tags("run"),
        store.tag("run", "name", "run:0"),
        store.offers("run"),
        store.offer(Offer("run", "key", b"x")),
        store.forget("run", [0]),
        store.archive("run"),
        store.adopt(archive),
    ):
        await refused(StoreClosedError, call)
    unused = make(clock=ManualClock())
    await unused.close()
    await refused(StoreClosedError, unused.head("run"))


RACE_CHECKS: tuple[Check, ...] = (
    of_two_tasks_one_wins,
    of_two_with_one_id_one_wins,
    of_two_threads_one_wins,
    of_two_threads_one_goes_on,
    saves_and_deletes_do_not_mix,
    a_lost_commit_fails_alone,
    loops_come_and_go,
    a_cancelled_call_harms_nothing,
    reads_follow_writes,
    a_closed_store_says_so,
)
