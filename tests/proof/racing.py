"""What the proofs of P3 share: processes on both stores, a race of many rounds, and owners that are stopped.

Must not decide what is right: the races say what may come of each (`tests.processes.races`).
"""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate import Status
from rehydrate.model.checkpoint import Head, Latest, Stored
from rehydrate.testing.store_contract import ManualClock
from tests.processes.nursery import Nursery
from tests.processes.races import Course, Race, released

NOW = 1_000_000.0
#: The lease of a claim ends 30 seconds after it.
AFTER_THE_LEASE = NOW + 31
#: What a call ends with whose commit came after another owner's.
LOST = "CommitConflictError"
#: Where a race is run, as callers are told of it: nothing, for a file, or a place in PostgreSQL.
Where = dict[str, object]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest) -> Where:
    """Each of the stores in turn."""
    if request.param == "sqlite":
        return {}
    place = request.getfixturevalue("postgres")
    return {"postgres": [place.url, place.schema]}


@pytest.fixture
def course(nursery: Nursery, tmp_path: Path, where: Where) -> Iterator[Course]:
    """Two processes, `a` and `b`, on one store; `late` lives after a lease of theirs has ended."""
    found = course_of_owners(nursery, tmp_path, where)
    yield found
    found.leave()


def course_of_owners(nursery: Nursery, folder: Path, where: Where) -> Course:
    """Start the three."""
    found = Course(nursery, folder, ["a", "b"], now=NOW, **where)
    found.add("late", now=AFTER_THE_LEASE)
    return found


def race(nursery: Nursery, folder: Path, processes: int, told: dict[str, tuple[Race, str, bool]], where: Where) -> int:
    """Run the rounds and return how many. Afterwards each run is at rest, where its winner left it, and was claimed by
    that one only."""
    course = Course(nursery, folder, [f"p{number}" for number in range(processes)], **where)
    try:
        words = course.prepare({run_id: race for run_id, (race, _, _) in told.items()})
        given = {
            run_id: course.round(race, words[run_id], meet=meet, held=held)
            for run_id, (race, meet, held) in told.items()
        }
        for caller in course.callers.values():
            caller.end()
    finally:
        course.leave()
    found = asyncio.run(heads(course, list(told)))
    for run_id, (kind, _, _) in told.items():
        head = found[run_id]
        assert (head.header.checkpoint_id, head.header.status, head.owner) == (given[run_id], Status.IDLE, None)
        assert head.epoch == (2 if kind.left else 1)
    return len(told)


async def heads(course: Course, run_ids: list[str]) -> dict[str, Head]:
    """Return each run's head."""
    async with course.store() as store:
        return dict(zip(run_ids, await asyncio.gather(*map(store.head, run_ids)), strict=True))


def stored(course: Course, run_id: str) -> Stored:
    """Return all that is stored of a run's head."""

    async def read() -> Stored:
        async with course.store(ManualClock(NOW)) as store:
            return await store.load(Latest(run_id))

    return asyncio.run(read())


def held(course: Course, told: dict[str, object]) -> None:
    """Let `a` begin a call that waits in executors, and stop the process when it waits in all of them."""
    course.callers["a"].send(told)
    begun(course, "a", told["holds"])
    course.callers["a"].signal(signal.SIGSTOP)


def begun(course: Course, name: str, holds: list[str]) -> None:
    """Wait until a caller waits in all of these executors."""
    waiting: list[object] = []
    while len(waiting) < len(holds):
        said = course.callers[name].receive()
        assert not (isinstance(said, dict) and "holds" not in said), said
        waiting += [said] if isinstance(said, dict) else []


def go_on(course: Course, last_event: int = 0) -> dict[str, object]:
    """Let the stopped process go on, and its executor with it; return how its call ended.

    No event above `last_event` may come before.
    """
    course.callers["a"].signal(signal.SIGCONT)
    said = released(course.callers["a"])
    while isinstance(said, int):
        assert said <= last_event
        said = course.callers["a"].receive()
    return said
