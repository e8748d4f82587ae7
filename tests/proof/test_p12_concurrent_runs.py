"""P12: one definition, any number of concurrent runs, none sees another, and nothing of them stays behind."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.proof.crowd import function, graph
from tests.proof.crowding import Flow, settle, what_is_there, wrong_in_a_crowd

MAKES: dict[str, Callable[[], Flow]] = {"graph": graph, "function": function}


def store_of(kind: str, folder: Path) -> CheckpointStorage:
    return InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(folder / "runs.db")


def one_round(flow: Flow, kind: str, folder: Path, numbers: range) -> list[str]:
    """Run a crowd in a store and an event loop of its own."""
    folder.mkdir()

    async def crowd() -> list[str]:
        store = store_of(kind, folder)
        found = await wrong_in_a_crowd(flow, store, numbers)
        await store.close()
        return found

    return asyncio.run(crowd())


def two_rounds(flow: Flow, kind: str, folder: Path, first: int, count: int) -> list[str]:
    """Run two crowds one after the other; name what was wrong, and what the second has left behind."""
    settle()
    wrong = one_round(flow, kind, folder / "first", range(first))
    before = what_is_there()
    wrong += one_round(flow, kind, folder / "second", range(count))
    # Less than one block of memory, of whatever type, for each ten runs; some are there for all of them.
    return wrong + what_is_there().since(before, 500 + count // 10)


@pytest.mark.promise("P12", "runs at once over one graph or function, 3 of 10 stopped")
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(("kind", "count"), [("memory", 50), ("sqlite", 20)])
def test_concurrent_runs_of_one_definition_do_not_see_each_other(kind, count, make, tmp_path, tried):
    """Each has its own outputs, question, state and instances; afterwards nothing of them is left in memory."""
    assert two_rounds(MAKES[make](), kind, tmp_path, 10, count) == []
    tried(count)


@pytest.mark.proof
@pytest.mark.promise("P12", "runs at once over one graph or function, 3 of 10 stopped")
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(("kind", "count"), [("memory", 10_000), ("sqlite", 1000)])
def test_many_concurrent_runs_of_one_definition_do_not_see_each_other(kind, count, make, tmp_path, tried):
    """The same for ten thousand; what is there afterwards is what was there after a fifth of them."""
    assert two_rounds(MAKES[make](), kind, tmp_path, count // 5, count) == []
    tried(count // 5 + count)


@pytest.mark.promise("P12", "runs at once in four threads with event loops of their own")
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_runs_in_several_threads_and_event_loops_do_not_see_each_other(kind, make, tmp_path, tried):
    """Four loops use one workflow object and one store object at the same time, with runs of their own."""
    flow, store = MAKES[make](), store_of(kind, tmp_path)
    with ThreadPoolExecutor(4) as threads:
        shares = [range(first, first + 10) for first in range(0, 40, 10)]
        done = [threads.submit(asyncio.run, wrong_in_a_crowd(flow, store, share)) for share in shares]
        assert [each.result() for each in done] == [[]] * 4
    asyncio.run(store.close())
    tried(40)
