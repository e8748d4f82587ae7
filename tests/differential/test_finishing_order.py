"""Nothing depends on what finished first: a run gives the same facts however long its handlers take."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts, differences, event_differences
from tests.differential.harness import Calls, calls_of, reference_run
from tests.differential.plans import FamilyPlan


def wrong_between(one: RunFacts, other: RunFacts) -> list[str]:
    """Compare two runs call by call."""
    wrong = [f"{len(other.calls)} calls instead of {len(one.calls)}"] if len(one.calls) != len(other.calls) else []
    for number, (expected, found) in enumerate(zip(one.calls, other.calls, strict=False)):
        told = differences(expected, found) + event_differences(expected.events, found.events)
        wrong += [f"call {number}: {text}" for text in told]
    return wrong


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
    assert [wrong_between(first, other) for other in others] == [[], []]


@pytest.mark.parametrize("seed", range(92, 98))
def test_a_bound_on_running_handlers_changes_nothing_but_time(seed: int) -> None:
    """With one handler at a time, and with any number, the facts are the same."""

    def facts(most: int | None) -> RunFacts:
        family: FamilyPlan = msgspec.structs.replace(draw(seed), max_concurrency=most)
        return asyncio.run(run_of(calls_of(family, None, chance=7)))

    assert wrong_between(facts(None), facts(1)) == []


@pytest.mark.parametrize("seed", [3, 4, 13])
def test_committed_events_are_numbered_without_gap_over_all_calls(seed: int) -> None:
    """Each committed event has the next number, from 1 on, whatever scope it is of."""
    facts = asyncio.run(run_of(calls_of(draw(seed), InMemoryCheckpointStorage(), chance=8)))
    numbers = [event.sequence for call in facts.calls for event in call.events]
    assert numbers == list(range(1, len(numbers) + 1))
