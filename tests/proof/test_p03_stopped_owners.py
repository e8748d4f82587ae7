"""P3: a stopped process whose run was taken over commits nothing any more, and starts nothing (section 5)."""

import signal

import pytest

from tests.processes.races import RACES, Course, filled, outcome, released
from tests.proof import racing
from tests.proof.racing import LOST, begun, go_on, held, stored

where, course = racing.where, racing.course

SQLITE = pytest.param("sqlite")
POSTGRES = pytest.param("postgres")
LONG_POSTGRES = pytest.param("postgres", marks=pytest.mark.proof)
SOME = ["an answer and a message", "one new run", "no input"]
OWNERS = pytest.mark.promise("P3", "stopped owners that were continued after a takeover")


def stop_in_its_executors(course: Course, kind: str) -> dict[str, object]:
    """Let `a` make a call and stop it when its first executors run; return the call, which others are refused."""
    race = RACES[kind]
    words = course.prepare({"run": race})["run"]
    call = filled(race.call, name="a", **words)
    held(course, {"call": call, "holds": race.begins, "tells": True})
    assert outcome(course.ask("b", {"call": call})) in {"TurnInProgressError", "RunBusyError"}
    assert sorted(course.entries()) == [f"run a {entry}" for entry in race.begins]
    return {"words": words, "call": call}


def taken_over(course: Course, kind: str, by: str, how: dict[str, object]) -> None:
    """Stop `a`, let another process finish the run, and continue `a`."""
    race = RACES[kind]
    told = stop_in_its_executors(course, kind)
    last_event = stored(course, "run").header.events
    result = course.ask(by, {"call": {**told["call"], **how}})
    assert result.get("outputs") == filled(race.outputs, name="a", **told["words"]), result
    assert sorted(course.entries()) == sorted(f"run {by} {entry}" for entry in race.ran.split())
    there = stored(course, "run")
    assert there.header.checkpoint_id == result["checkpoint"]
    ended = go_on(course, last_event)
    assert ended.get("error") == LOST, ended
    assert course.entries() == []
    assert stored(course, "run") == there


def taken_over_a_moment_ago(course: Course, kind: str) -> None:
    """Stop `a`, let `b` take the run over, and continue `a` while the first executors of `b` run."""
    race = RACES[kind]
    told = stop_in_its_executors(course, kind)
    last_event = stored(course, "run").header.events
    course.callers["b"].send({"call": {**told["call"], "takeover": True}, "holds": race.begins})
    begun(course, "b", race.begins)
    there = stored(course, "run")
    ended = go_on(course, last_event)
    assert ended.get("error") == LOST, ended
    assert stored(course, "run") == there
    result = released(course.callers["b"])
    assert result.get("outputs") == filled(race.outputs, name="a", **told["words"]), result
    assert sorted(course.entries()) == sorted(f"run b {entry}" for entry in race.ran.split())


BY_TAKEOVER = [(kind, "b", {"takeover": True}) for kind in RACES]
BY_TIME = [(kind, "late", {}) for kind in SOME]


@OWNERS
@pytest.mark.parametrize(("kind", "by", "how"), [*BY_TAKEOVER, *BY_TIME])
@pytest.mark.parametrize("where", [SQLITE, LONG_POSTGRES], indirect=True)
def test_a_stopped_process_that_lost_its_run_cannot_commit_when_it_is_continued(course, kind, by, how):
    """It is refused its next commit, so its call fails; nothing of it is stored, published or run after that."""
    taken_over(course, kind, by, how)


@OWNERS
@pytest.mark.parametrize(("kind", "by", "how"), [BY_TAKEOVER[5], BY_TIME[1]])
@pytest.mark.parametrize("where", [POSTGRES], indirect=True)
def test_it_cannot_in_postgres_either(course, kind, by, how):
    """It keeps its run until its lease is over on the server's clock, or taken."""
    taken_over(course, kind, by, how)


@OWNERS
@pytest.mark.parametrize("kind", [*SOME, *(pytest.param(k, marks=pytest.mark.proof) for k in RACES if k not in SOME)])
@pytest.mark.parametrize("where", [SQLITE, LONG_POSTGRES], indirect=True)
def test_it_cannot_commit_either_when_the_other_one_has_just_begun(course, kind):
    """From its claim on the run is the other one's, whose turn is not disturbed."""
    taken_over_a_moment_ago(course, kind)


@pytest.mark.parametrize("where", [SQLITE], indirect=True)
def test_without_a_takeover_a_stopped_process_keeps_its_run_for_as_long_as_its_lease(course):
    """A process that is only slow loses nothing: continued, it finishes its call."""
    held(course, {"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    latest = {"call": {"run_id": "run", "checkpoint": "latest"}}
    assert outcome(course.ask("b", latest)) == "RunBusyError"
    assert go_on(course)["outputs"] == ["1 of 1: a"]
    assert course.ask("b", latest)["outputs"] == ["1 of 1: a"]
    assert course.entries() == ["run a take", "run a clerk", "run a ship"]


@pytest.mark.parametrize("where", [SQLITE], indirect=True)
def test_a_process_that_lost_a_run_can_go_on_with_it_where_the_other_one_left_it(course):
    """What failed is that call, not the process, its store or the run."""
    held(course, {"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    course.ask("b", {"call": {"run_id": "run", "checkpoint": "latest", "takeover": True}})
    assert go_on(course)["error"] == LOST
    result = course.ask("a", {"call": {"message": "b", "run_id": "run", "checkpoint": "latest"}})
    assert (result["outputs"], result["turn"]) == (["2 of 2: b"], 2)


@OWNERS
@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("where", [SQLITE, LONG_POSTGRES], indirect=True)
def test_a_process_that_stalls_before_any_commit_of_a_call_is_refused_that_commit(course, tried, kind):
    """Whatever it was about to save, the claim too, the other one's turn is the only one."""
    race = RACES[kind]
    number = 0
    while True:
        run_id = f"run {number}"
        words = course.prepare({run_id: race})[run_id]
        call = filled(race.call, name="a", **words)
        said = course.ask("a", {"call": call, "stalls_before": number})
        if said != "here":
            break
        course.callers["a"].signal(signal.SIGSTOP)
        result = course.ask("b", {"call": {**call, "takeover": True}})
        assert result["outputs"] == filled(race.outputs, name="a", **words)
        before = stored(course, run_id)
        course.entries()
        course.callers["a"].signal(signal.SIGCONT)
        course.go(1)
        # A claim that came too late looks again at what the call means now; a later commit has lost its run.
        assert outcome(course.callers["a"].receive()) in (race.late if number == 0 else {LOST})
        assert course.entries() == []
        assert stored(course, run_id) == before
        number += 1
    assert number >= 2
    tried(number)


@pytest.mark.parametrize("where", [SQLITE], indirect=True)
def test_of_many_runs_of_a_stopped_process_only_those_that_were_taken_over_fail(course):
    """Thirty runs are committed together again, three of which were taken over in the meantime."""
    names = [f"r{number:02}" for number in range(30)]
    taken = ["r00", "r14", "r29"]
    course.callers["a"].send({"call": [{"message": name, "run_id": name} for name in names], "holds": ["clerk"]})
    assert sorted(course.callers["a"].receive()["run_id"] for _ in names) == names
    course.callers["a"].signal(signal.SIGSTOP)
    for name in taken:
        call = {"run_id": name, "checkpoint": "latest", "takeover": True}
        assert course.ask("b", {"call": call})["outputs"] == [f"1 of 1: {name}"]
    before = [stored(course, name) for name in taken]
    outcomes = dict(zip(names, map(outcome, go_on(course)), strict=True))
    assert outcomes == {name: LOST if name in taken else "ran" for name in names}
    assert [stored(course, name) for name in taken] == before
    results = course.ask("b", {"call": [{"run_id": name, "checkpoint": "latest"} for name in names]})
    assert [result["outputs"] for result in results] == [[f"1 of 1: {name}"] for name in names]
    ships = [f"{name} {'b' if name in taken else 'a'} ship" for name in names]
    assert sorted(line for line in course.entries() if line.endswith("ship")) == ships
