"""P3 and case 37: of many processes that go on with one run at one moment, exactly one does (section 5)."""

from dataclasses import replace

import pytest

from tests.processes.races import RACES, Course, outcome, rounds
from tests.proof import racing
from tests.proof.racing import race

where = racing.where

#: Each store with its line in the table.
ON_FILES = pytest.mark.promise("P3", "rounds of 2, 8 and 32 processes on a SQLite file")
ON_SERVERS = pytest.mark.promise("P3", "rounds of 2, 8 and 32 processes in PostgreSQL")
STORES = [pytest.param("sqlite", marks=ON_FILES), pytest.param("postgres", marks=ON_SERVERS)]
#: The short form: store, processes, rounds.
SHORT = [
    pytest.param("sqlite", 2, 28, marks=ON_FILES),
    pytest.param("sqlite", 8, 14, marks=ON_FILES),
    pytest.param("postgres", 4, 14, marks=ON_SERVERS),
]


@pytest.mark.parametrize(("where", "processes", "number"), SHORT, indirect=["where"])
def test_of_several_processes_that_go_on_with_a_run_exactly_one_runs(
    nursery, tmp_path, tried, where, processes, number
):
    """Executors of one process only run; all others get an error, or the winner's result where a key is given."""
    tried(race(nursery, tmp_path, processes, rounds(RACES, number), where))


@pytest.mark.proof
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("processes", [2, 8, 32])
@pytest.mark.parametrize("where", STORES, indirect=True)
def test_of_several_processes_exactly_one_runs_in_each_of_1000_rounds(nursery, tmp_path, tried, where, processes, part):
    """The long form: 1,000 rounds of each size on each store, in four parts, over all kinds of races."""
    kinds = list(RACES)[part:] + list(RACES)[:part]
    tried(race(nursery, tmp_path, processes, rounds(kinds, 250), where))


@pytest.mark.promise("P3", "takeovers by three processes at one moment")
@pytest.mark.parametrize("kind", ["an answer and a message", "one new run", "no input", "one key"])
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_of_several_processes_that_take_a_run_over_at_one_moment_one_finishes_it(nursery, tmp_path, tried, where, kind):
    """Three call with `takeover=True`, so some lose the run in the middle; one of them finishes it, as if alone."""
    tried(take_over_at_once(Course(nursery, tmp_path, ["p0", "p1", "p2"], **where), kind, 6))


@pytest.mark.proof
@pytest.mark.promise("P3", "takeovers by three processes at one moment")
@pytest.mark.parametrize("kind", ["an answer and a message", "one new run", "no input", "one key"])
@pytest.mark.parametrize("where", ["postgres"], indirect=True)
def test_takeovers_at_one_moment_end_well_in_postgres(nursery, tmp_path, tried, where, kind):
    """The same on a server, where nobody sees that another process is gone."""
    tried(take_over_at_once(Course(nursery, tmp_path, ["p0", "p1", "p2"], **where), kind, 20))


def take_over_at_once(course: Course, kind: str, number: int) -> int:
    """Let all take over one run after the other; return how many."""
    told = RACES[kind]
    told = replace(told, call={**told.call, "takeover": True})
    for words in course.prepare({f"run {n}": told for n in range(number)}).values():
        replies = course.replies(told, words, meets_at="claim")
        ran = [reply for reply in replies.values() if outcome(reply) == "ran"]
        assert [reply["outputs"] for reply in ran] == [told.outputs]
        assert {outcome(reply) for reply in replies.values()} <= {"ran", "CommitConflictError"} | told.late
    course.close()
    return number


def test_several_processes_make_a_file_at_one_moment(nursery, tmp_path):
    """Six processes, each with a run of its own, find no file at all: one makes it, and all use it."""
    names = [f"p{number}" for number in range(6)]
    told = replace(RACES["one new run"], call={"message": "{name}", "run_id": "{name}"})
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        course = Course(nursery, tmp_path / str(number), names)
        replies = course.replies(told, {}, meets_at="call")
        assert {name: reply["outputs"] for name, reply in replies.items()} == {
            name: [f"1 of 1: {name}"] for name in names
        }
        course.close()
