"""P5 at once: many deliver one turn with one key at one moment, in threads and processes, and it runs once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rehydrate import WorkflowRunResult
from rehydrate.errors import TurnInProgressError
from tests.call.desk import World
from tests.processes.nursery import Nursery
from tests.processes.races import RACES, WAYS, Course, Race, filled, outcome
from tests.proof.ledger import Tried
from tests.proof.repeats import Play
from tests.proof.scenes import KEYED

ONE_REQUEST = (
    "one message", "an answer", "an answer alone", "an answer and a message", "latest, one message",
    "latest, an answer", "one new run",
)  # fmt: skip
OTHER_REQUESTS = ("two messages", "two answers", "latest, two messages", "two new runs")
ANOTHER = frozenset({"IdempotencyKeyError"})


def keyed(kind: str) -> Race:
    """Return a race in which all bring one key."""
    race = RACES[kind]
    late = ANOTHER if kind in OTHER_REQUESTS else frozenset({"replayed"})
    busy = ANOTHER if kind in OTHER_REQUESTS else frozenset({"TurnInProgressError"})
    return replace(race, call={**race.call, "idempotency_key": "{run}"}, busy=busy, late=late)


def race_with_keys(
    nursery: Nursery, folder: Path, processes: int, kinds: Sequence[str], rounds: int = 1, **told: object
) -> int:
    """Let processes deliver one turn at one moment, and each once more afterwards; return in how many rounds."""
    course = Course(nursery, folder, [f"p{number}" for number in range(processes)], **told)
    races = {f"{kind} {number}": keyed(kind) for number in range(rounds) for kind in kinds}
    words = course.prepare(races)
    for number, (run_id, race) in enumerate(races.items()):
        meet, held = WAYS[(number + number // len(kinds)) % len(WAYS)]
        checkpoint = course.round(race, words[run_id], meet=meet, held=held)
        for name, caller in course.callers.items():
            caller.send({"call": filled(race.call, name=name, **words[run_id])})
        again = [caller.receive() for caller in course.callers.values()]
        outcomes = Counter(map(outcome, again))
        replayed = processes if race.late == {"replayed"} else 1
        assert outcomes == Counter({"replayed": replayed, "IdempotencyKeyError": processes - replayed})
        assert {reply["checkpoint"] for reply in again if outcome(reply) == "replayed"} == {checkpoint}
        assert course.entries() == []
    course.close()
    return len(races)


@pytest.mark.promise("P5", "rounds in which processes deliver one key at once")
def test_of_two_processes_with_one_key_one_runs(nursery: Nursery, tmp_path: Path, tried: Tried) -> None:
    """The others are told that it is in progress, or get its result; those with another request are refused."""
    tried(race_with_keys(nursery, tmp_path, 2, ["an answer and a message", "two messages"]))


@pytest.mark.proof
@pytest.mark.promise("P5", "rounds in which processes deliver one key at once")
def test_of_eight_processes_with_one_key_one_runs_in_each_round(nursery: Nursery, tmp_path: Path, tried: Tried) -> None:
    """The long form: 20 rounds of each kind of call."""
    tried(race_with_keys(nursery, tmp_path, 8, [*ONE_REQUEST, *OTHER_REQUESTS], rounds=20))


async def prepared(folder: Path, name: str) -> Play:
    """Return a run in a file that a keyed call goes on with."""
    play = Play(replace(KEYED[name], key="k", store="sqlite"), folder)
    await play.prepare()
    return play


def deliver(play: Play, together: threading.Barrier) -> WorkflowRunResult | None:
    """Make the call of a play in a loop of this thread; `None` where it is in progress."""
    together.wait()
    try:
        return asyncio.run(play.make())
    except TurnInProgressError:
        return None


def check_once(results: list[WorkflowRunResult | None], world: World, name: str) -> None:
    """Check that one delivery ran, and that each executor of it did once."""
    found = [result for result in results if result is not None]
    assert [result.replayed for result in found].count(False) == 1, name
    assert len({result.checkpoint_id for result in found}) == 1, name
    assert set(Counter(world.diary).values()) == {1}, name


def at_once_in_threads(folder: Path, kinds: Sequence[str], rounds: int = 1) -> int:
    """Deliver each kind of call in eight threads at one moment; return how often."""
    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        for number in range(rounds):
            for name in kinds:
                place = folder / f"{name} {number}"
                place.mkdir()
                play = asyncio.run(prepared(place, name))
                results = [
                    delivery.result() for delivery in [threads.submit(deliver, play, together) for _ in range(8)]
                ]
                check_once(results, play.world, name)
                asyncio.run(play.store.close())
    return rounds * len(kinds)


@pytest.mark.promise("P5", "rounds in which threads deliver one key at once")
def test_of_eight_threads_with_one_key_one_runs(tmp_path: Path, tried: Tried) -> None:
    """Eight event loops of one process use one store object."""
    tried(at_once_in_threads(tmp_path, ["all, latest"]))


@pytest.mark.proof
@pytest.mark.promise("P5", "rounds in which threads deliver one key at once")
def test_of_eight_threads_with_one_key_one_runs_in_each_round(tmp_path: Path, tried: Tried) -> None:
    """The long form: 20 rounds of each kind of call, forks among them."""
    tried(at_once_in_threads(tmp_path, [*KEYED], rounds=20))


@pytest.mark.proof
@pytest.mark.notices("P5")
@pytest.mark.parametrize("broken", ["finds no key", "keeps a key with the end only"])
def test_a_store_without_keys_is_noticed(nursery: Nursery, tmp_path: Path, broken: str) -> None:
    """Some delivery gets another error, or runs the turn again."""
    with pytest.raises(AssertionError):
        race_with_keys(nursery, tmp_path, 2, ["two messages", *ONE_REQUEST], broken=broken)
