"""Nothing depends on what finished first: a run gives the same facts however long its handlers take."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.differential.building import build
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts
from tests.differential.harness import Calls, calls_of, reference_run, run_differences
from tests.differential.plans import FamilyPlan


async def run_of(calls: Calls) -> RunFacts:
    """Run the script and close the store."""
    facts = await reference_run(calls, "run")
    if calls.store is not None:
        await calls.store.close()
    return facts


def stores(folder: Path) -> list[CheckpointStorage | None]:
    """A store of each kind, and none."""
    return [None, InMemoryCheckpointStorage(), SqliteCheckpointStorage(folder / "runs.db")]


@pytest.mark.parametrize("seed", range(80, 92))
def test_a_run_is_the_same_however_long_its_handlers_take_and_wherever_it_is_kept(seed: int, tmp_path: Path) -> None:
    """Facts and per-scope events are the same for other finishing orders, without a store and in each kind."""
    family = draw(seed)
    first, *others = [
        asyncio.run(run_of(calls_of(family, store, chance))) for chance, store in enumerate(stores(tmp_path))
    ]
    assert [run_differences(first, other) for other in others] == [[], []]


@pytest.mark.parametrize("seed", range(92, 98))
def test_a_bound_on_running_handlers_changes_nothing_but_time(seed: int) -> None:
    """With one handler at a time, and with any number, the facts are the same."""

    def facts(most: int | None) -> RunFacts:
        family: FamilyPlan = msgspec.structs.replace(draw(seed), max_concurrency=most)
        return asyncio.run(run_of(calls_of(family, None, chance=7)))

    assert run_differences(facts(None), facts(1)) == []


@pytest.mark.parametrize("durability", ["turn", "off"])
@pytest.mark.parametrize("seed", [3, 7, 14])
def test_a_weaker_durability_changes_nothing_but_what_is_stored(seed: int, durability: str) -> None:
    """A run that is saved only at claims, pauses and ends, or never, gives the same facts."""
    family = draw(seed)
    store = None if durability == "off" else InMemoryCheckpointStorage()
    weaker = Calls(family, build(family), store, chance=9, durability=durability)
    strict = calls_of(family, InMemoryCheckpointStorage(), chance=10)
    assert run_differences(asyncio.run(run_of(strict)), asyncio.run(run_of(weaker))) == []


@pytest.mark.parametrize("seed", [3, 4, 13])
def test_committed_events_are_numbered_without_gap_over_all_calls(seed: int) -> None:
    """Each committed event has the next number, from 1 on, whatever scope it is of."""
    facts = asyncio.run(run_of(calls_of(draw(seed), InMemoryCheckpointStorage(), chance=8)))
    numbers = [event.sequence for call in facts.calls for event in call.events]
    assert numbers == list(range(1, len(numbers) + 1))
