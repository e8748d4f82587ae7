"""P1: from any checkpoint of a random graph a fresh process goes on exactly as the uninterrupted run did."""

from pathlib import Path

import pytest

from tests.differential.drawing import draw
from tests.differential.spawning import spawn, write_job

STORES = ("memory", "sqlite")


def wrong_in_a_fresh_process(seeds: range, store: str, folder: Path) -> list[str]:
    """Run the reference of each seed here, and take up every checkpoint of it in one new process."""
    jobs = [write_job(draw(seed), folder / f"{seed}.db" if store == "sqlite" else None) for seed in seeds]
    return spawn(jobs, folder / "jobs")


SHORT = [("memory", range(7)), ("memory", range(10, 12)), ("sqlite", range(3, 6))]
LONG = [("memory", range(7, 10)), ("memory", range(12, 30)), ("sqlite", range(6, 13)), ("sqlite", range(20, 25))]
CHUNKS = [*SHORT, *(pytest.param(*chunk, marks=pytest.mark.proof) for chunk in LONG)]
IDS = [f"{store}-{seeds[0]}-{seeds[-1]}" for store, seeds in (*SHORT, *LONG)]


@pytest.mark.parametrize(("store", "seeds"), CHUNKS, ids=IDS)
def test_every_checkpoint_goes_on_in_a_fresh_process_as_if_nothing_had_happened(
    store: str, seeds: range, tmp_path: Path
) -> None:
    """Outputs, state, joins, inner request names, statuses and per-scope events follow as in the reference."""
    assert wrong_in_a_fresh_process(seeds, store, tmp_path) == []


@pytest.mark.proof
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("first", range(1000, 1500, 25))
def test_every_checkpoint_of_many_graphs_goes_on_in_a_fresh_process(first: int, store: str, tmp_path: Path) -> None:
    """The long form of the same."""
    assert wrong_in_a_fresh_process(range(first, first + 25), store, tmp_path) == []


#: Each starts five processes.
ALONE = [("memory", 19), ("sqlite", 14)]
REST = [(store, seed) for store in STORES for seed in (4, 14, 19) if (store, seed) not in ALONE]


@pytest.mark.parametrize(("store", "seed"), [*ALONE, *(pytest.param(*each, marks=pytest.mark.proof) for each in REST)])
def test_a_checkpoint_goes_on_in_a_process_of_its_own(store: str, seed: int, tmp_path: Path) -> None:
    """Five checkpoints of each run are taken up by five processes, each of which sees only that one."""
    job = write_job(draw(seed), tmp_path / "runs.db" if store == "sqlite" else None)
    last = job.facts.ends[-1]
    for part in range(5):
        job.numbers = [last * part // 5]
        assert spawn([job], tmp_path / f"job {part}") == []
