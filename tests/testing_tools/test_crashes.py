"""Crash injection: a process that ends at any command of a run, and what comes of it."""

import asyncio
from collections import Counter

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, Status, WorkflowBuilder, executor
from rehydrate.model.checkpoint import Latest
from rehydrate.testing import CrashError, Crashes, CrashPoint
from tests.testing_tools.flows import ByClass, ByGlobal, desk

ANSWERS = {"asker": "yes"}


def test_a_run_that_is_faithful_bears_a_crash_at_every_command(tmp_path):
    """Over both stores, before and after each commit, publication and start, two levels deep and over a pause."""

    async def tried(make_store):
        return await Crashes(desk, "a b", answers=ANSWERS, make_store=make_store).check()

    numbers = iter(range(1000))
    in_memory = asyncio.run(tried(None))
    in_files = asyncio.run(tried(lambda: SqliteCheckpointStorage(tmp_path / f"{next(numbers)}.db")))
    assert in_memory == 38
    assert in_files >= 30


def test_the_points_of_a_run_are_its_commands():
    """Each is there once before and once after, numbered by kind."""
    points = asyncio.run(Crashes(desk, "a", answers=ANSWERS).points())
    assert len(set(points)) == len(points)
    kinds = Counter((point.kind, point.moment) for point in points)
    assert kinds["start", "before"] == kinds["start", "after"] == 4
    assert kinds["commit", "before"] == kinds["commit", "after"] >= 6
    assert str(points[0]) == "before commit 1"


def entered(counts):
    @executor(id="first")
    async def first(text: str) -> str:
        counts["first"] += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return text

    @executor(id="second")
    async def second(text: str) -> str:
        counts["second"] += 1
        return text

    return WorkflowBuilder("two", first).add_chain([first, second]).build()


@pytest.mark.parametrize(
    ("point", "ran"),
    [
        (CrashPoint("commit", 1, "before"), (1, 1)),
        (CrashPoint("commit", 1, "after"), (1, 1)),
        (CrashPoint("start", 1, "before"), (1, 1)),
        (CrashPoint("start", 1, "after"), (2, 1)),
        (CrashPoint("commit", 2, "before"), (2, 1)),
        (CrashPoint("commit", 2, "after"), (1, 1)),
        (CrashPoint("start", 2, "after"), (1, 2)),
        (CrashPoint("commit", 3, "before"), (1, 2)),
        (CrashPoint("commit", 3, "after"), (1, 1)),
    ],
    ids=str,
)
def test_what_ran_and_was_not_saved_runs_again_and_nothing_else(point, ran):
    """A handler begins twice where its result was not committed before the crash."""
    counts = Counter()
    crashes = Crashes(lambda: entered(counts), "a", keep=[counts])
    driven = asyncio.run(crashes.at(point))
    assert (driven.outputs, driven.crashes) == (["a"], 1)
    assert (counts["first"], counts["second"]) == ran


def test_a_crashed_run_is_not_cancelled_and_its_lease_is_not_given_back():
    """To the store the process was killed: the run is RUNNING and has an owner."""
    seen = []

    class Seeing(InMemoryCheckpointStorage):
        async def find_turn(self, workflow, key):
            row = await super().find_turn(workflow, key)
            if row is not None:
                seen.append((await self.load(Latest(row.run_id))).head)
            return row

    crashes = Crashes(desk, "a", make_store=Seeing)
    driven = asyncio.run(crashes.at(CrashPoint("start", 1, "after")))
    assert driven.result.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert seen[0].header.status is Status.RUNNING
    assert seen[0].owner is not None


@pytest.mark.parametrize("kind", [ByClass, ByGlobal])
def test_state_beside_the_run_is_lost_by_the_crashes_after_it_was_kept(kind):
    """The error names the points and what is otherwise."""
    with pytest.raises(CrashError) as raised:
        asyncio.run(Crashes(desk(kind), "a", answers=ANSWERS).check())
    points = list(raised.value.differences)
    assert CrashPoint("commit", 1, "before") not in points
    assert CrashPoint("commit", 1, "after") not in points
    assert points
    assert "outputs" in str(raised.value)
    assert "assert_resumable" in str(raised.value)


def test_a_handler_that_cannot_be_done_again_is_found():
    """An effect on the world that is not bound to `effect_key` happens twice after a crash before its commit."""
    balance = {"paid": 0}

    @executor(id="pay")
    async def pay(amount: int) -> int:
        balance["paid"] += amount
        return balance["paid"]

    async def scenario():
        balance["paid"] = 0
        return await Crashes(WorkflowBuilder("paying", pay).build(), 5, keep=[balance]).at(
            CrashPoint("commit", 2, "before")
        )

    assert asyncio.run(scenario()).outputs == [10]
