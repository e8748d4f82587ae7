"""P12: one definition, any number of concurrent runs, none sees another, and nothing of them stays behind."""

import asyncio
import gc
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, Status
from rehydrate.model.checkpoint import Latest
from tests.processes.crowd import Order, crowd, expected, mark


def store_of(kind, folder):
    return InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(folder / "runs.db")


async def run_all(workflow, store, numbers) -> None:
    """Run all at once to their question, look at what they have there, answer all at once, look at the end."""
    paused = await asyncio.gather(
        *(workflow.run(Order(number), run_id=f"run {number}", checkpoint_storage=store) for number in numbers)
    )
    assert [result.run_id for result in paused] == [f"run {number}" for number in numbers]
    asked = [[request.data.mark for request in result.pending_requests] for result in paused]
    assert asked == [[mark(number)] for number in numbers]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await look_for_strangers(store, numbers)
    answers = [
        [request.answer(f"answer {request.data.mark}") for request in result.pending_requests] for result in paused
    ]
    ended = await asyncio.gather(
        *(
            workflow.run(checkpoint=result, responses=given, checkpoint_storage=store)
            for result, given in zip(paused, answers, strict=True)
        )
    )
    assert [result.outputs for result in ended] == [[expected(f"run {number}", number)] for number in numbers]
    assert {result.status for result in ended} == {Status.IDLE}
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await look_for_strangers(store, numbers)


async def look_for_strangers(store, numbers) -> None:
    """Assert that no record of a run holds the mark of another one."""
    for number in numbers:
        stored = await store.load(Latest(f"run {number}"))
        marks = set(re.findall(rb"<\d{6}>", b"".join(stored.records.values())))
        assert marks == {mark(number).encode()}


def living() -> Counter[str]:
    """Count the objects of this package's classes, of this folder's and of tasks, as the collector knows them."""
    gc.collect()
    kinds = (type(found) for found in gc.get_objects())
    return Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if kind.__module__.partition(".")[0] in {"rehydrate", "tests", "_asyncio", "asyncio"}
    )


@pytest.mark.parametrize(
    ("kind", "count"), [("memory", 1000), ("sqlite", 200), pytest.param("sqlite", 1000, marks=pytest.mark.proof)]
)
def test_many_concurrent_runs_of_one_definition_do_not_see_each_other(kind, count, tmp_path):
    """Each has its own outputs, question, state and instances; afterwards nothing of them is left in memory."""
    workflow = crowd()

    async def in_a_store_of_their_own(numbers, name) -> None:
        (tmp_path / name).mkdir()
        store = store_of(kind, tmp_path / name)
        await run_all(workflow, store, numbers)
        await store.close()

    asyncio.run(in_a_store_of_their_own(range(10), "before"))
    objects, blocks = living(), sys.getallocatedblocks()
    asyncio.run(in_a_store_of_their_own(range(count), "runs"))
    assert living() - objects == Counter()
    # Less than one piece of memory for each run, of whatever type.
    assert sys.getallocatedblocks() - blocks < count


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_runs_in_several_threads_and_event_loops_do_not_see_each_other(kind, tmp_path):
    """Four loops use one workflow object and one store object at the same time, with runs of their own."""
    workflow, store = crowd(), store_of(kind, tmp_path)
    with ThreadPoolExecutor(4) as threads:
        shares = [range(first, first + 50) for first in range(0, 200, 50)]
        done = [threads.submit(asyncio.run, run_all(workflow, store, share)) for share in shares]
        assert [each.result() for each in done] == [None] * 4
    asyncio.run(store.close())
