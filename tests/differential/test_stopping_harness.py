"""What drains and cancels random graphs must be able to fail: it sees what a broken runtime or store does.

The same runs with all as it is are in `test_drains` and `test_cancellations`, and show nothing.
"""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.codecs.records import decode_records
from rehydrate.engine.inputs import CancelAsked, Input
from rehydrate.model.checkpoint import Commit
from rehydrate.model.records import Key, Record
from rehydrate.runtime.actor import Actor
from rehydrate.testing import claim_turns_again, run_virtually
from tests.differential.drawing import draw
from tests.differential.moments import CANCELS, DRAINS, Stop, Way
from tests.differential.stopped import stopped_runs
from tests.differential.stopping import LateStorage, StoppedRun, two_of, uninterrupted
from tests.differential.test_harness import lost, shifted_counter

pytestmark = pytest.mark.notices("P1")
SEEDS = {DRAINS: range(5100, 5110), CANCELS: range(5200, 5210)}


def noticed(ways: tuple[Way, ...], folder: Path) -> bool:
    """Tell whether anything differs in some run; stops at the first graph that shows it."""
    try:
        return any(stopped_runs([seed], ways, "memory", folder, variants=6)[0] for seed in SEEDS[ways])
    finally:
        claim_turns_again()


@pytest.mark.parametrize("ways", [DRAINS, CANCELS], ids=["drains", "cancellations"])
@pytest.mark.parametrize("name", ["done", "outbox", "counters"])
def test_a_load_that_loses_something_is_noticed(
    name: str, ways: tuple[Way, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is forgotten where a stopped run is gone on with shows, also what had finished and was not merged."""
    change: Callable[[Key, Record], Record | None] = shifted_counter if name == "counters" else lost(name)

    def broken(records: dict[str, bytes]) -> list[tuple[Key, Record]]:
        changed = [(key, change(key, record)) for key, record in decode_records(records)]
        return [(key, record) for key, record in changed if record is not None]

    monkeypatch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)
    assert noticed(ways, tmp_path)


def without_every_fifth(commit: Commit, number: int) -> Commit:
    """A store that keeps no events of some commits."""
    return msgspec.structs.replace(commit, events=()) if number % 5 == 0 else commit


def with_the_last_twice(commit: Commit, number: int) -> Commit:
    """A store that keeps another event in the place of one."""
    return msgspec.structs.replace(commit, events=commit.events[:-1] + commit.events[:1]) if number % 5 == 0 else commit


@pytest.mark.parametrize("ways", [DRAINS, CANCELS], ids=["drains", "cancellations"])
@pytest.mark.parametrize("change", [without_every_fifth, with_the_last_twice])
def test_a_store_that_does_not_keep_what_was_told_is_noticed(
    change: Callable[[Commit, int], Commit], ways: tuple[Way, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hole and a wrong event show."""
    numbers = itertools.count(3)

    class Forgetful(LateStorage):
        async def commit(self, commit: Commit) -> None:
            await super().commit(change(commit, next(numbers)))

    monkeypatch.setattr("tests.differential.stopped.LateStorage", Forgetful)
    assert noticed(ways, tmp_path)


def test_a_drain_that_never_lets_go_of_a_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is not handed on although nothing of it runs any more."""
    monkeypatch.setattr(Actor, "_hands_on", lambda actor: False)
    reference = run_virtually(uninterrupted(draw(5003)))
    stop = Stop("drain", "merge after", 1, grace=30.0)
    stopped = StoppedRun(
        reference, InMemoryCheckpointStorage(keep_events=True), [stop], workflows=two_of(reference.family)
    )
    assert run_virtually(stopped.run()) != []


def test_a_drain_that_does_not_wait_for_handlers_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that they have finished."""

    def hands_on(actor: Actor) -> bool:
        return actor.draining and actor.ending is None and actor._committing is None and not actor._inbox

    monkeypatch.setattr(Actor, "_hands_on", hands_on)
    assert noticed(DRAINS, tmp_path)


def test_a_drain_that_throws_away_what_has_finished_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handlers run again."""
    arrived = Actor._arrived

    def forgetful(actor: Actor, item: Input, cause: BaseException | None) -> None:
        if not actor.draining:
            arrived(actor, item, cause)

    monkeypatch.setattr(Actor, "_arrived", forgetful)
    assert noticed(DRAINS, tmp_path)


def hears_handlers(actor: Actor) -> None:
    """A cancellation that takes what handlers make of it."""
    if actor.ended or actor.ending is not None:
        return
    actor.cancelled = True
    tasks = list(actor.crew._tasks)
    for task in tasks:
        task.cancel()

    async def later() -> None:
        if tasks:
            await asyncio.wait(tasks)
        actor.post(CancelAsked())

    waiting.append(asyncio.get_running_loop().create_task(later()))


def ends_without_a_word(actor: Actor) -> None:
    """A cancellation that saves nothing."""
    if actor.task is not None:
        actor.task.cancel()


waiting: list[asyncio.Task[None]] = []


@pytest.mark.parametrize("broken", [hears_handlers, ends_without_a_word])
def test_a_broken_cancellation_is_noticed(
    broken: Callable[[Actor], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cancelled handler has done shows, and so does a run that is left as if it went on."""
    monkeypatch.setattr(Actor, "cancel", broken)
    assert noticed(CANCELS, tmp_path)
    waiting.clear()
