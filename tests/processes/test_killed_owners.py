"""Cases 55 and 56: a killed process owns nothing any more, and the same call again goes on where it died (section 5).

Stores of these tests have a clock that stands still, so no lease ever ends: what goes on goes on at once.
"""

import pytest

from tests.processes.races import RACES, Course, filled, heads, outcome

NOW = 1_000_000.0


@pytest.fixture
def course(nursery, tmp_path):
    """Two processes, `a` and `b`, that use one file."""
    found = Course(nursery, tmp_path, ["a", "b"], now=NOW)
    yield found
    found.leave()


@pytest.mark.parametrize("kind", RACES)
def test_case_55_a_run_that_is_being_executed_is_not_stolen_and_goes_on_when_its_process_is_killed(course, kind):
    """The same call is refused while the process lives, and is made by another one as soon as it is killed."""
    race = RACES[kind]
    words = course.prepare({"run": race})["run"]
    call = filled(race.call, name="a", **words)
    course.callers["a"].send({"call": call, "holds": race.begins})
    assert sorted(course.callers["a"].receive()["holds"] for _ in race.begins) == race.begins
    other = {"call": {"message": "c", "checkpoint": "latest", "run_id": "run"}}
    assert outcome(course.ask("b", other)) == "RunBusyError"
    assert outcome(course.ask("b", {"call": call})) in {"TurnInProgressError", "RunBusyError"}
    assert sorted(course.entries()) == [f"run a {entry}" for entry in race.begins]
    course.callers["a"].kill()
    course.add("a")
    result = course.ask("b", {"call": call})
    assert result["outputs"] == filled(race.outputs, name="a", **words)
    assert sorted(course.entries()) == sorted(f"run b {entry}" for entry in race.ran.split())


def test_case_55_a_new_message_goes_on_at_once_after_a_process_was_killed(course):
    """`"latest"` with another message finishes first what the killed process left."""
    course.callers["a"].send({"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    assert course.callers["a"].receive()["holds"] == "clerk"
    course.callers["a"].kill()
    course.add("a")
    result = course.ask("b", {"call": {"message": "b", "run_id": "run", "checkpoint": "latest"}})
    assert (result["outputs"], result["turn"]) == (["1 of 1: a", "2 of 2: b"], 2)


def test_all_runs_of_a_killed_process_go_on_at_once(course):
    """A process dies while it drives forty runs; another one finishes all of them, each as itself."""
    names = [f"r{number}" for number in range(40)]
    calls = [{"message": f"order {name}", "run_id": name} for name in names]
    course.callers["a"].send({"call": calls, "holds": ["clerk"]})
    assert sorted(course.callers["a"].receive()["run_id"] for _ in names) == sorted(names)
    assert all(alive for _, _, alive in heads(course, NOW).values())
    course.callers["a"].kill()
    course.add("a")
    assert [alive for _, _, alive in heads(course, NOW).values()] == [False] * 40
    results = course.ask("b", {"call": [{"run_id": name, "checkpoint": "latest"} for name in names]})
    assert [result["outputs"] for result in results] == [[f"1 of 1: order {name}"] for name in names]
    assert sorted(course.entries()) == sorted(
        f"{name} {entry}" for name in names for entry in ("a take", "a clerk", "b clerk", "b ship")
    )


@pytest.mark.parametrize("kind", RACES)
def test_case_56_a_process_that_dies_right_after_the_claim_loses_neither_input_nor_answers(course, kind):
    """Nothing has run; the same call again is that turn, its input is applied once, and its answers are."""
    race = RACES[kind]
    words = course.prepare({"run": race})["run"]
    call = filled(race.call, name="a", **words)
    assert course.dies("a", {"call": call, "dies_after": 0})
    assert course.entries() == []
    result = course.ask("b", {"call": call})
    assert (result["outputs"], result["replayed"]) == (filled(race.outputs, name="a", **words), False)
    assert result["turn"] == (1 if race.left in {"", "failed"} else 2)
    assert sorted(course.entries()) == sorted(f"run b {entry}" for entry in race.ran.split())
