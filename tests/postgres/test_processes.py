"""Several processes on one place in PostgreSQL, in short; tests/processes and tests/differential are longer."""

import asyncio
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.differential.drawing import draw
from tests.differential.spawning import spawn, write_job
from tests.postgres.server import Place
from tests.processes.nursery import Nursery
from tests.processes.races import RACES, Course, filled, outcome, rounds
from tests.processes.test_one_of_many_processes import race
from tests.processes.test_stalled_owners import AFTER_THE_LEASE, LOST, NOW, go_on, held, stored


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


def test_of_several_processes_that_go_on_with_a_run_exactly_one_runs(nursery, tmp_path: Path, where) -> None:
    """Every kind of race once, with four processes: executors of one of them run, the others get an error."""
    race(nursery, tmp_path, 4, rounds(RACES, len(RACES)), **where)


@pytest.mark.proof
@pytest.mark.parametrize("kind", RACES)
def test_of_eight_processes_exactly_one_runs_in_each_of_100_rounds(nursery, tmp_path: Path, where, kind: str) -> None:
    """The long form."""
    race(nursery, tmp_path, 8, rounds([kind], 100), **where)


@pytest.fixture
def course(nursery: Nursery, tmp_path: Path, where) -> Iterator[Course]:
    """Two processes, `a` and `b`, on one place; `late` lives after a lease of theirs has ended."""
    found = Course(nursery, tmp_path, ["a", "b"], now=NOW, **where)
    found.add("late", now=AFTER_THE_LEASE)
    yield found
    found.leave()


@pytest.mark.parametrize(("by", "how"), [("b", {"takeover": True}), ("late", {})])
@pytest.mark.parametrize("kind", ["an answer and a message", "one new run"])
def test_a_stopped_process_that_lost_its_run_cannot_commit_when_it_is_continued(
    course: Course, kind: str, by: str, how: dict[str, object]
) -> None:
    """It keeps its run until its lease is over or taken; then its next commit is refused, and nothing is stored."""
    told = RACES[kind]
    words = course.prepare({"run": told})["run"]
    call = filled(told.call, name="a", **words)
    held(course, {"call": call, "holds": told.begins, "tells": True})
    assert outcome(course.ask("b", {"call": call})) in {"TurnInProgressError", "RunBusyError"}
    last_event = stored(course, "run").header.events
    result = course.ask(by, {"call": {**call, **how}})
    assert result["outputs"] == filled(told.outputs, name="a", **words)
    there = stored(course, "run")
    assert there.header.checkpoint_id == result["checkpoint"]
    assert go_on(course, last_event)["error"] == LOST
    assert stored(course, "run") == there


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
