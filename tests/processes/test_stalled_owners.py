"""A stalled process whose run was taken over cannot commit any more, and starts nothing (section 5)."""

import asyncio
import signal

import pytest

from rehydrate.model.checkpoint import Latest, Stored
from rehydrate.testing.store_contract import ManualClock
from tests.processes.races import RACES, Course, filled, outcome, released

NOW = 1_000_000.0
#: The lease of a claim ends 30 seconds after it.
AFTER_THE_LEASE = NOW + 31
#: What a call ends with whose commit came after another owner's.
LOST = "CommitConflictError"


@pytest.fixture
def course(nursery, tmp_path):
    """Two processes, `a` and `b`, that use one file; `late` lives after a lease of theirs has ended."""
    found = Course(nursery, tmp_path, ["a", "b"], now=NOW)
    found.add("late", now=AFTER_THE_LEASE)
    yield found
    found.leave()


def stored(course: Course, run_id: str) -> Stored:
    """Return all that is stored of a run's head."""

    async def read() -> Stored:
        async with course.store(ManualClock(NOW)) as store:
            return await store.load(Latest(run_id))

    return asyncio.run(read())


def held(course: Course, told: dict[str, object]) -> None:
    """Let `a` begin a call that waits in executors, and stop the process when it waits in all of them."""
    course.callers["a"].send(told)
    waiting: list[object] = []
    while len(waiting) < len(told["holds"]):
        said = course.callers["a"].receive()
        waiting += [said] if isinstance(said, dict) else []
    course.callers["a"].signal(signal.SIGSTOP)


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


TAKEOVER, LEASE_OVER = ("b", {"takeover": True}), ("late", {})


@pytest.mark.parametrize(
    ("kind", "by", "how"),
    [
        *((kind, *TAKEOVER) for kind in RACES),
        *((kind, *LEASE_OVER) for kind in ("an answer", "no input", "one new run")),
    ],
)
def test_a_stopped_process_that_lost_its_run_cannot_commit_when_it_is_continued(course, kind, by, how):
    """It is refused its next commit, so its call fails; nothing of it is stored, published or run after that."""
    race = RACES[kind]
    words = course.prepare({"run": race})["run"]
    call = filled(race.call, name="a", **words)
    held(course, {"call": call, "holds": race.begins, "tells": True})
    assert outcome(course.ask("b", {"call": call})) in {"TurnInProgressError", "RunBusyError"}
    assert sorted(course.entries()) == [f"run a {entry}" for entry in race.begins]
    last_event = stored(course, "run").header.events
    result = course.ask(by, {"call": {**call, **how}})
    assert result["outputs"] == filled(race.outputs, name="a", **words)
    assert sorted(course.entries()) == sorted(f"run {by} {entry}" for entry in race.ran.split())
    there = stored(course, "run")
    assert there.header.checkpoint_id == result["checkpoint"]
    assert go_on(course, last_event)["error"] == LOST
    assert course.entries() == []
    assert stored(course, "run") == there


def test_without_a_takeover_a_stopped_process_keeps_its_run_for_as_long_as_its_lease(course):
    """A process that is only slow loses nothing: continued, it finishes its call."""
    held(course, {"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    latest = {"call": {"run_id": "run", "checkpoint": "latest"}}
    assert outcome(course.ask("b", latest)) == "RunBusyError"
    assert go_on(course)["outputs"] == ["1 of 1: a"]
    assert course.ask("b", latest)["outputs"] == ["1 of 1: a"]
    assert course.entries() == ["run a take", "run a clerk", "run a ship"]


def test_a_process_that_lost_a_run_can_go_on_with_it_where_the_other_one_left_it(course):
    """What failed is that call, not the process, its store or the run."""
    held(course, {"call": {"message": "a", "run_id": "run"}, "holds": ["clerk"]})
    course.ask("b", {"call": {"run_id": "run", "checkpoint": "latest", "takeover": True}})
    assert go_on(course)["error"] == LOST
    result = course.ask("a", {"call": {"message": "b", "run_id": "run", "checkpoint": "latest"}})
    assert (result["outputs"], result["turn"]) == (["2 of 2: b"], 2)


@pytest.mark.parametrize("kind", ["an answer and a message", "one new run", "no input"])
def test_a_process_that_stalls_before_any_commit_of_a_call_is_refused_that_commit(course, kind):
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
