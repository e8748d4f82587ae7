"""Several processes on one place in PostgreSQL, in short; tests/proof and tests/differential are longer."""

import asyncio
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.differential.drawing import draw
from tests.differential.spawning import spawn, write_job
from tests.postgres.server import Place
from tests.processes.nursery import Nursery
from tests.processes.races import Course, outcome
from tests.proof.racing import LOST, NOW, course_of_owners, held


@pytest.fixture(scope="module")
def template() -> Iterator[Nursery]:
    """The template of all processes."""
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def nursery(template: Nursery) -> Iterator[Nursery]:
    """Makes processes, which are gone at the end of the test."""
    yield template
    template.clear()


@pytest.fixture
def where(postgres: Place) -> dict[str, object]:
    """What processes are told of the place."""
    return {"postgres": [postgres.url, postgres.schema]}


@pytest.fixture
def course(nursery: Nursery, tmp_path: Path, where) -> Iterator[Course]:
    """Two processes, `a` and `b`, on one place; `late` lives after a lease of theirs has ended."""
    found = course_of_owners(nursery, tmp_path, where)
    yield found
    found.leave()


def test_a_killed_owner_is_gone_when_its_lease_is_over(course: Course) -> None:
    """No lock of a file tells that a process on another machine is gone: until then its run is busy, or taken over."""
    held(course, {"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    course.callers["a"].kill()
    latest = {"run_id": "run", "checkpoint": "latest"}
    assert outcome(course.ask("b", {"call": latest})) == "RunBusyError"
    assert course.ask("late", {"call": latest})["outputs"] == ["1 of 1: a"]


def test_a_process_that_is_stopped_while_it_commits_holds_up_nobody(course: Course) -> None:
    """A transaction is one request, so whoever is stopped before it holds nothing on the server."""
    course.callers["a"].send({"call": {"message": "a", "run_id": "run"}, "stalls_before": 1})
    assert course.callers["a"].receive() == "here"
    course.callers["a"].signal(signal.SIGSTOP)
    taken = course.ask("b", {"call": {"run_id": "run", "checkpoint": "latest", "takeover": True}})
    assert taken["outputs"] == ["1 of 1: a"]
    course.callers["a"].signal(signal.SIGCONT)
    course.go(1)
    assert course.callers["a"].receive()["error"] == LOST


def test_acknowledged_commits_survive_a_kill_at_any_of_them(course: Course) -> None:
    """Killed before a commit a process leaves nothing of it, killed after it all, and another finishes the run."""
    for number in range(4):
        for place in ("dies_before", "dies_after"):
            run_id = f"{place} {number}"
            if course.callers["a"].gone:
                course.add("a", now=NOW)
            course.callers["a"].send({"call": {"message": "a", "run_id": run_id}, place: number})
            with pytest.raises(EOFError):
                course.callers["a"].receive()
            assert course.callers["a"].wait() == -signal.SIGKILL
            seq = number - 1 if place == "dies_before" else number
            headers = asyncio.run(history(course, run_id))
            assert headers == list(range(seq, -1, -1))
            if headers:
                again = {"run_id": run_id, "checkpoint": "latest"}
                assert course.ask("late", {"call": again})["outputs"] == ["1 of 1: a"]


async def history(course: Course, run_id: str) -> list[int]:
    """Return the numbers of a run's checkpoints, newest first."""
    async with course.store() as store:
        return [header.seq for header in await store.history(run_id)]


@pytest.mark.parametrize("seeds", [[16], pytest.param([20, *range(1000, 1025)], marks=pytest.mark.proof)])
def test_every_checkpoint_goes_on_in_a_fresh_process(postgres: Place, tmp_path: Path, seeds: Iterable[int]) -> None:
    """From any checkpoint of random graphs a fresh process goes on exactly as the uninterrupted run did."""
    jobs = [write_job(draw(seed), f"{postgres.url}\n{postgres.schema}_{seed}") for seed in seeds]
    try:
        assert spawn(jobs, tmp_path / "jobs") == []
    finally:
        postgres.change(*(f"DROP SCHEMA {postgres.schema}_{seed} CASCADE" for seed in seeds))
