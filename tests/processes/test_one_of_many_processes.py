"""P3 and case 37: of many processes that go on with one run at one moment, exactly one does (section 5)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from rehydrate import Status
from tests.processes.nursery import Nursery
from tests.processes.races import RACES, Course, outcome, rounds


def race(nursery: Nursery, folder: Path, processes: int, told, **where: object) -> None:
    """Run the rounds; afterwards each run is at rest, at the checkpoint that its winner was given."""
    names = [f"p{number}" for number in range(processes)]
    course = Course(nursery, folder, names, **where)
    words = course.prepare({run_id: race for run_id, (race, _, _) in told.items()})
    heads = {
        run_id: course.round(race, words[run_id], meet=meet, held=held) for run_id, (race, meet, held) in told.items()
    }
    course.close()

    async def stored() -> dict[str, tuple[str, Status]]:
        async with course.store() as store:
            headers = await store.runs(limit=len(told) + 1)
        return {header.run_id: (header.checkpoint_id, header.status) for header in headers}

    assert asyncio.run(stored()) == {run_id: (checkpoint, Status.IDLE) for run_id, checkpoint in heads.items()}


@pytest.mark.parametrize(("processes", "number"), [(2, 56), (8, 28)])
def test_of_several_processes_that_go_on_with_a_run_exactly_one_runs(nursery, tmp_path, processes, number):
    """Executors of one process only run; all others get an error, or the winner's result where a key is given."""
    race(nursery, tmp_path, processes, rounds(RACES, number))


@pytest.mark.proof
@pytest.mark.parametrize("kind", RACES)
@pytest.mark.parametrize("processes", [2, 8])
def test_of_several_processes_exactly_one_runs_in_each_of_200_rounds(nursery, tmp_path, processes, kind):
    """The long form: 200 rounds of each kind of race, with 2 and with 8 processes."""
    race(nursery, tmp_path, processes, rounds([kind], 200))


@pytest.mark.parametrize("kind", ["an answer and a message", "one new run", "no input", "one key"])
def test_of_several_processes_that_take_a_run_over_at_one_moment_one_finishes_it(nursery, tmp_path, kind):
    """Three call with `takeover=True`, so some lose the run in the middle; one of them finishes it, as if alone."""
    course = Course(nursery, tmp_path, ["p0", "p1", "p2"])
    told = RACES[kind]
    told = replace(told, call={**told.call, "takeover": True})
    for words in course.prepare({f"run {number}": told for number in range(6)}).values():
        replies = course.replies(told, words, meets_at="claim")
        ran = [reply for reply in replies.values() if outcome(reply) == "ran"]
        assert [reply["outputs"] for reply in ran] == [told.outputs]
        assert {outcome(reply) for reply in replies.values()} <= {"ran", "CommitConflictError"} | told.late
    course.close()


def test_several_processes_make_a_file_at_one_moment(nursery, tmp_path):
    """Six processes, each with a run of its own, find no file at all: one makes it, and all use it."""
    names = [f"p{number}" for number in range(6)]
    told = replace(RACES["one new run"], call={"message": "{name}", "run_id": "{name}"})
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        course = Course(nursery, tmp_path / str(number), names)
        replies = course.replies(told, {}, meets_at="call")
        assert {name: reply["outputs"] for name, reply in replies.items()} == {
            name: [f"1 of 1: {name}"] for name in names
        }
        course.close()
