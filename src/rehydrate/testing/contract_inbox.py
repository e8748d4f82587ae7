"""The store contract: pages of open requests, and the inbox of a run.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

from typing import Final, cast

import msgspec

from rehydrate.errors import CommitConflictError, OfferConflictError, RunNotFoundError, WrongCallError
from rehydrate.model.checkpoint import Commit, Offer, RequestRow

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, in_order, refused

#: Runs and their workflows.
_RUNS: Final = {"a": "flow", "b": "flow", "c": "other", "d": "flow"}


def named(rows: list[RequestRow]) -> list[str]:
    """Return the ids of requests."""
    return [row.request_id for row in rows]


async def open_requests_are_listed(make: MakeStore) -> None:
    """Open requests come by id and by pages, of all runs, of one, or of one workflow; closed ones do not come."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other", workflow="another")
    mine = [RequestRow(f"q{number}", "run", "a#1", "open") for number in (4, 1, 3, 5)]
    theirs = [RequestRow(f"q{number}", "other", "", "open") for number in (2, 6)]
    await store.commit(maker.claim())
    await store.commit(maker.step(requests=mine))
    await store.commit(msgspec.structs.replace(other.claim(), requests=tuple(theirs)))

    assert named(await store.requests()) == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert named(await store.requests(limit=2)) == ["q1", "q2"]
    assert named(await store.requests(after="q2", limit=3)) == ["q3", "q4", "q5"]
    assert named(await store.requests(run_id="run", after="q1")) == ["q3", "q4", "q5"]
    assert named(await store.requests(workflow="another")) == ["q2", "q6"]
    assert await store.requests(workflow="another", run_id="run") == []
    assert await store.requests(run_id="none") == []
    assert (await store.requests(limit=1)) == [mine[1]]
    answered = msgspec.structs.replace(mine[0], state="answered")
    cancelled = msgspec.structs.replace(mine[1], state="cancelled")
    await store.commit(maker.step(requests=[answered, cancelled]))
    assert named(await store.requests()) == ["q2", "q3", "q5", "q6"]
    await refused(WrongCallError, store.requests(limit=0))
    await refused(WrongCallError, store.requests(run_id=cast("str", 3)))
    await store.close()


async def offers_are_taken_once(make: MakeStore) -> None:
    """Offers come in the order in which they were made, and leave the inbox with the commit that takes them."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    numbers = [await store.offer(Offer("run", key, key.encode())) for key in ("b", "a", "c")]
    assert numbers == [1, 2, 3]
    assert [(o.number, o.key, o.body, o.taken) for o in await store.offers("run")] == [
        (1, "b", b"b", False),
        (2, "a", b"a", False),
        (3, "c", b"c", False),
    ]
    assert [o.number for o in await store.offers("run", after=1, limit=1)] == [2]
    await store.commit(msgspec.structs.replace(maker.step({"k": b"v"}), taken=(1, 3)))
    assert [o.number for o in await store.offers("run")] == [2]
    lost = maker.copy(owner="owner", tag="lost")
    for taken in ((1,), (2, 3), (7,)):
        await refused(CommitConflictError, store.commit(msgspec.structs.replace(lost.step(), taken=taken)))
        lost = maker.copy(owner="owner", tag="lost")
    assert [o.number for o in await store.offers("run")] == [2]
    assert (await head_of(store)).header.seq == 1
    assert await store.offer(Offer("run", "d", b"d")) == 4
    await store.close()


async def runs_with_an_inbox_are_listed(make: MakeStore) -> None:
    """Runs to which something was offered that was not taken come by pages, of all workflows or one."""
    store = make(clock=ManualClock())
    makers = {run_id: CommitMaker(run_id, workflow=workflow) for run_id, workflow in _RUNS.items()}
    for maker in makers.values():
        await store.commit(maker.claim())
    assert await store.runs(offered=True) == []
    assert (await head_of(store, "b")).offered is False
    for run_id in ("d", "b", "c", "b"):
        await store.offer(Offer(run_id, f"{run_id} {len(await store.offers(run_id))}", b"body"))
    expected = in_order(store, "b", "c", "d")
    assert [header.run_id for header in await store.runs(offered=True)] == expected
    assert [(await head_of(store, run_id)).offered for run_id in _RUNS] == [False, True, True, True]
    assert [header.run_id for header in await store.runs(offered=True, limit=2)] == expected[:2]
    assert [header.run_id for header in await store.runs(offered=True, after=expected[0])] == expected[1:]
    assert [header.run_id for header in await store.runs(offered=True, workflow="other")] == ["c"]
    assert await store.runs(offered=True, status="FAILED") == []
    await store.commit(msgspec.structs.replace(makers["b"].step(), taken=(2,)))
    assert (await head_of(store, "b")).offered is True
    assert len(await store.runs(offered=True)) == 3
    await store.commit(msgspec.structs.replace(makers["b"].step(seconds=0), taken=(1,)))
    assert (await head_of(store, "b")).offered is False
    await store.commit(makers["c"].step(seconds=0))
    await store.delete("c")
    assert [header.run_id for header in await store.runs(offered=True)] == ["d"]
    assert len(await store.runs()) == 3
    await store.close()


async def runs_with_a_timer_that_is_up_are_listed(make: MakeStore) -> None:
    """Runs at rest whose first timer is up by a time come by pages, until a commit says that none waits any more."""
    store = make(clock=ManualClock())
    makers = {run_id: CommitMaker(run_id, workflow=workflow) for run_id, workflow in _RUNS.items()}
    for maker in makers.values():
        await store.commit(maker.claim())
    assert await store.runs(due_by=1e12) == []
    for run_id, due in {"d": 30.0, "b": 10.0, "c": 20.0}.items():
        await store.commit(_at_rest(makers[run_id], due))
    expected = in_order(store, "b", "c", "d")
    assert [header.run_id for header in await store.runs(due_by=30.0)] == expected
    assert [header.due for header in await store.runs(due_by=19.5)] == [10.0]
    assert await store.runs(due_by=9.5) == []
    assert [header.run_id for header in await store.runs(due_by=30.0, limit=2)] == expected[:2]
    assert [header.run_id for header in await store.runs(due_by=30.0, after=expected[0])] == expected[1:]
    assert [header.run_id for header in await store.runs(due_by=30.0, workflow="other")] == ["c"]
    assert await store.runs(due_by=30.0, status="FAILED") == []
    await store.offer(Offer("d", "key", b"body"))
    assert [header.run_id for header in await store.runs(due_by=30.0, offered=True)] == ["d"]
    await store.commit(_at_rest(makers["b"], 40.0))
    await store.commit(_at_rest(makers["c"], None))
    assert [header.run_id for header in await store.runs(due_by=30.0)] == ["d"]
    assert [header.run_id for header in await store.runs(due_by=40.0)] == in_order(store, "b", "d")
    await store.delete("d")
    archive = await store.archive("b")
    await store.delete("b")
    assert await store.runs(due_by=40.0) == []
    assert archive is not None
    await store.adopt(archive)
    assert [header.due for header in await store.runs(due_by=40.0)] == [40.0]
    await store.close()


def _at_rest(maker: CommitMaker, due: float | None) -> Commit:
    commit = maker.step(seconds=0)
    return msgspec.structs.replace(commit, header=msgspec.structs.replace(commit.header, due=due))


async def a_key_is_offered_once(make: MakeStore) -> None:
    """The same offer again is the one that is there, also after it was taken; another one under its key is refused."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    assert await store.offer(Offer("run", "k", b"body")) == 1
    assert await store.offer(Offer("run", "k", b"body")) == 1
    await refused(OfferConflictError, store.offer(Offer("run", "k", b"other")))
    await store.commit(msgspec.structs.replace(maker.step(), taken=(1,)))
    assert await store.offer(Offer("run", "k", b"body")) == 1
    assert await store.offers("run") == []
    await refused(OfferConflictError, store.offer(Offer("run", "k", b"")))
    await refused(RunNotFoundError, store.offer(Offer("none", "k", b"body")))
    await refused(WrongCallError, store.offer(Offer("run", "half \ud800", b"body")))
    await refused(WrongCallError, store.offer(Offer("run", "k", cast("bytes", "text"))))
    await refused(WrongCallError, store.offers("run", limit=0))
    assert await store.offers("none") == []
    await store.close()


async def a_lost_commit_takes_no_offer(make: MakeStore) -> None:
    """A commit that loses its race leaves the inbox as it was."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim())
    rival = maker.copy(owner="owner", tag="rival")
    await store.offer(Offer("run", "k", b"body"))
    await store.commit(maker.step())
    await refused(CommitConflictError, store.commit(msgspec.structs.replace(rival.step(), taken=(1,))))
    assert [offer.number for offer in await store.offers("run")] == [1]
    await store.close()


INBOX_CHECKS: tuple[Check, ...] = (
    open_requests_are_listed,
    offers_are_taken_once,
    runs_with_an_inbox_are_listed,
    runs_with_a_timer_that_is_up_are_listed,
    a_key_is_offered_once,
    a_lost_commit_takes_no_offer,
)
