"""A run's history: its checkpoints by headers, their names, and loading one by number, id or name."""

import asyncio

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, RunHistory, Status
from rehydrate.errors import CheckpointNotFoundError, ForeignCheckpointError, RunNotFoundError, WrongCallError
from rehydrate.model.checkpoint import Cause
from tests.history.flows import BIG, SMALL, desk

run = asyncio.run


async def asked(store: CheckpointStorage, run_id: str = "r") -> str:
    """Leave a run of two turns with an open question, edited once; return the question's id."""
    session = desk(store).session(run_id)
    await session.run(SMALL)
    result = await session.run(BIG)
    await session.edit({"rate": 50}, reason="a new tariff")
    return result.pending_requests[0].request_id


def test_entries_are_headers_newest_first_with_names(store):
    """An entry says when, why, how much and where, and has the names of its checkpoint."""

    async def story():
        await asked(store)
        history = RunHistory(store, "r")
        await history.tag("tariff", "latest")
        await history.tag("before", 6)
        await history.tag("also", 6)
        return await history.entries()

    entries = run(story())
    assert [entry.number for entry in entries] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [entry.tags for entry in entries][:3] == [("tariff",), ("also", "before"), ()]
    newest, last = entries[0], entries[-1]
    assert (newest.cause, newest.reason, newest.status, newest.pending, newest.turn) == (
        Cause.EDIT,
        "a new tariff",
        Status.IDLE_WITH_PENDING_REQUESTS,
        1,
        2,
    )
    assert newest.previous_checkpoint_id == entries[1].checkpoint_id
    assert (last.cause, last.previous_checkpoint_id, last.changed, last.scopes) == (Cause.MESSAGE, None, 1, ("",))
    assert str(newest) == (
        "#7 turn 2 superstep 5 IDLE_WITH_PENDING_REQUESTS by edit: "
        f"{newest.size} bytes in the root, 1 open [tariff] 'a new tariff'"
    )


def test_a_long_history_is_read_page_by_page(store):
    """Iterating gives all entries once, though a page has fewer; a page begins below the number that is given."""

    async def story():
        session = desk(store).session("r")
        for _ in range(40):
            await session.run(SMALL)
        history = RunHistory(store, "r")
        return [entry.number async for entry in history], [e.number for e in await history.entries(before=3, limit=2)]

    numbers, page = run(story())
    assert numbers == list(range(159, -1, -1))
    assert page == [2, 1]


class WithoutRecords(InMemoryCheckpointStorage):
    """A store that gives no records."""

    async def load(self, ref):
        raise AssertionError(f"{ref} was loaded")

    async def read(self, run_id, keys):
        raise AssertionError(f"records of {run_id} were read")


def test_listing_reads_no_records():
    """Entries and names by number come from headers alone."""
    store = WithoutRecords()

    async def story():
        await desk(store).run(SMALL, run_id="r")
        history = RunHistory(store, "r")
        await history.tag("first", 0)
        await history.tag("last", "latest")
        return [entry.tags async for entry in history]

    assert run(story()) == [("last",), (), (), ("first",)]


def test_a_checkpoint_is_loaded_by_number_id_name_or_as_the_head(store):
    """All four name the same checkpoint; a run goes on from what was loaded."""

    async def story():
        await asked(store)
        history = RunHistory(store, "r")
        entry = await history.tag("good", 3)
        found = [await history.load(at) for at in (3, entry.checkpoint_id, "good")]
        fork = await desk(store).run(BIG, checkpoint=found[0], fork=True)
        return entry, found, await history.load("latest"), fork

    entry, found, head, fork = run(story())
    assert {checkpoint.checkpoint_id for checkpoint in found} == {entry.checkpoint_id}
    assert head.header.seq == 7
    assert fork.checkpoint.state["log"] == ["c-1", "c-2"]


def test_what_is_not_there_is_told_with_what_is_near(store):
    """An unknown number, name, id or run is an error that says what there is."""

    async def story():
        await asked(store)
        await asked(store, "other")
        await store.forget("r", [1, 2])
        history, told = RunHistory(store, "r"), []
        await history.tag("good", 3)
        for at in (1, 99, -1, "god", "good ", (await store.head("other")).header.checkpoint_id):
            with pytest.raises((CheckpointNotFoundError, ForeignCheckpointError)) as error:
                await history.load(at)
            told.append(getattr(error.value, "near", "foreign"))
        for wrong in (True, None, 1.0):
            with pytest.raises(WrongCallError):
                await history.load(wrong)
        for call in (history.untag("god"), history.tag("x", 1), history.tag("x", "y")):
            with pytest.raises(CheckpointNotFoundError):
                await call
        for name in ("latest", "a/b", ""):
            with pytest.raises(WrongCallError):
                await history.tag(name, 3)
        for work in (RunHistory(store, "none").entries(), RunHistory(store, "none").load(0)):
            with pytest.raises(RunNotFoundError):
                await work
        return told, await store.tags("r")

    told, tags = run(story())
    assert told == [
        ("number 3", "number 0"),
        ("number 7", "number 6", "number 5", "number 4", "number 3"),
        ("number 0",),
        ("name 'good'",),
        ("name 'good'",),
        "foreign",
    ]
    assert list(tags) == ["good"]


def test_a_name_moves_and_is_taken_back(store):
    """A name stands for one checkpoint; what has none can be forgotten again."""

    async def story():
        await asked(store)
        history = RunHistory(store, "r")
        await history.tag("good", 1)
        await history.tag("good", 2)
        assert await store.forget("r", [1, 2]) == [1]
        await history.untag("good")
        return await store.forget("r", [2]), (await history.load("latest")).header.seq

    assert run(story()) == ([2], 7)


def test_a_history_needs_a_store():
    """What is no store is refused at once."""
    for storage in (None, "runs.db", InMemoryCheckpointStorage):
        with pytest.raises(WrongCallError):
            RunHistory(storage, "r")
