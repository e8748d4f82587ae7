"""P4 in processes: one is killed at points around the claim, and another one makes the same call again.

Stores of these tests have a clock that stands still, so no lease ever ends: what goes on goes on at once.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rehydrate import Status
from tests.processes.nursery import Nursery
from tests.processes.races import RACES, Course, Race, filled, heads, outcome
from tests.proof.ledger import Tried

NOW = 1_000_000.0
#: Where a process dies: before and after each call of the store, and as each executor begins.
PLACES = ("find_turn", "find_request", "head", "load", "commit")
KINDS: dict[str, Race] = {
    **RACES,
    "latest, an answer and a message": replace(
        RACES["an answer and a message"],
        call={**RACES["an answer and a message"].call, "checkpoint": "latest", "run_id": "{run}"},
    ),
}
KEYED = {
    f"{name}, with a key": replace(race, call={**race.call, "idempotency_key": "{run}"})
    for name, race in KINDS.items()
    if name not in {"one key", "no input", "latest, no input"}
}
KINDS.update(KEYED)


@pytest.fixture
def course(nursery: Nursery, tmp_path: Path) -> Iterator[Course]:
    """Two processes, `a` and `b`, that use one file."""
    found = Course(nursery, tmp_path, ["a", "b"], now=NOW)
    found.prepare({"another run": RACES["one message"]})  # it makes the file
    yield found
    found.leave()


def rows(course: Course) -> dict[str, list[object]]:
    """Return all that is in the file, by table."""
    with closing(sqlite3.connect(course.file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in tables}


def die_at(course: Course, race: Race, run_id: str, place: str, number: int) -> bool:
    """Let `a` die at a place of a call and `b` repeat it; tell whether there was such a place."""
    words = course.prepare({run_id: race})[run_id]
    before, stood = rows(course), heads(course, NOW).get(run_id)
    call = filled(race.call, name="a", **words)
    if not course.dies("a", {"call": call, "dies_at": [place, number]}):
        return False
    after, stands = rows(course), heads(course, NOW).get(run_id)
    claimed = stands != stood
    ran = course.entries()
    if not claimed:
        assert after == before
        assert ran == []
    if claimed and stands[1] is Status.IDLE and "idempotency_key" not in call:
        # It died after its last commit, so the turn had ended well.
        assert race.late is None or outcome(course.ask("b", {"call": call})) in race.late
        call = {"run_id": run_id, "checkpoint": "latest"}
    result = course.ask("b", {"call": call})
    assert result["outputs"] == filled(race.outputs, name="a", **words)
    done = Counter(entry.split()[-1] for entry in [*ran, *course.entries()])
    twice = done - Counter(race.ran.split())
    assert done - twice == Counter(race.ran.split())
    # What had begun since the last commit: two may be running side by side.
    assert twice.total() <= len(race.begins) + (place == "before commit")
    if "idempotency_key" in call:
        again = course.ask("b", {"call": call})
        assert (again["replayed"], again["checkpoint"]) == (True, result["checkpoint"])
        assert course.entries() == []
    return True


def die_everywhere(course: Course, kind: str, places: list[str]) -> int:
    """Let a process die at each place of a call; return how often one has."""
    race, kills = KINDS[kind], 0
    for place in places:
        for number in itertools.count():
            if not die_at(course, race, f"{place} {number}", place, number):
                break
            course.entries()
            kills += 1
        course.entries()
    return kills


AROUND_THE_STORE = [f"{moment} {place}" for place in PLACES for moment in ("before", "after")]


@pytest.mark.promise("P4", "SIGKILL at a call of the store, or in a handler")
@pytest.mark.parametrize(
    ("kind", "places", "least"),
    [
        ("an answer and a message, with a key", ["before commit", "after commit"], 8),
        ("latest, an answer and a message", ["before load", "after load", "at take", "at answer"], 4),
    ],
)
def test_the_same_call_again_finishes_what_a_killed_process_has_begun(
    course: Course, tried: Tried, kind: str, places: list[str], least: int
) -> None:
    """Up to the claim every row of the file is what it was, and no executor ran; after it nothing saved is repeated."""
    kills = die_everywhere(course, kind, places)
    tried(kills)
    assert kills >= least


@pytest.mark.proof
@pytest.mark.promise("P4", "SIGKILL at a call of the store, or in a handler")
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_dies_anywhere_in_any_call_loses_nothing(course: Course, tried: Tried, kind: str) -> None:
    """The long form: every place of each kind of call."""
    handlers = [f"at {entry}" for entry in dict.fromkeys(KINDS[kind].ran.split())]
    kills = die_everywhere(course, kind, [*AROUND_THE_STORE, *handlers])
    tried(kills)
    assert kills >= 7


@pytest.mark.notices("P4")
def test_a_store_that_writes_later_than_it_says_is_noticed(nursery: Nursery, tmp_path: Path) -> None:
    """An executor of a killed process has run, and there is no claim."""
    course = Course(nursery, tmp_path, ["a", "b"], now=NOW, broken="acknowledges a commit before it writes it")
    with pytest.raises(AssertionError):
        die_everywhere(course, "an answer and a message", ["at take"])
    course.leave()
