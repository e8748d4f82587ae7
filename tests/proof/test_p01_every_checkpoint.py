"""P1: from every checkpoint of a random tree of graphs and functions a fresh process goes on as the run itself did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rehydrate.engine.passes import PACK
from tests.proof.ledger import Tried
from tests.proof.tree_jobs import Found, Order, taken, written

#: The row of the table.
CHECKPOINTS = "checkpoints of random trees, to eight deep, taken up"
ALONE = "checkpoints taken up in a process of their own"
#: So many calls of a function share a record where short passes are to have such records.
SMALL = 4


def gone_on(seeds: Sequence[int], store: str, folder: Path, pack: int = PACK) -> Found:
    """Run each tree in a process that ends, and go on from every checkpoint in another."""
    order = Order(list(seeds), str(folder) if store == "sqlite" else "", pack)
    return taken(written(order, folder / "written"), folder / "taken")


@pytest.mark.promise("P1", CHECKPOINTS)
@pytest.mark.parametrize(
    ("store", "seeds", "pack"),
    [("memory", (2, 5, 70, 8), SMALL), ("sqlite", (11, 176), PACK)],
    ids=["memory", "sqlite"],
)
def test_every_checkpoint_goes_on_in_a_fresh_process_as_if_nothing_had_happened(
    store: str, seeds: Sequence[int], pack: int, tried: Tried, tmp_path: Path
) -> None:
    """Outputs, state, joins, inner request names, statuses and the rest of the events follow as in the run itself."""
    found = gone_on(seeds, store, tmp_path, pack)
    assert found.wrong == []
    tried(found.taken)


#: Five hundred trees, every fifth part of them in files, and some more in which few calls of functions share a record.
PARTS = [("sqlite" if part % 5 == 4 else "memory", 25 * part, PACK) for part in range(20)] + [("memory", 500, SMALL)]


@pytest.mark.proof
@pytest.mark.promise("P1", CHECKPOINTS)
@pytest.mark.parametrize(("store", "first", "pack"), PARTS, ids=[f"{store}-{first}" for store, first, _ in PARTS])
def test_every_checkpoint_of_five_hundred_trees_goes_on_in_a_fresh_process(
    store: str, first: int, pack: int, tried: Tried, tmp_path: Path
) -> None:
    """The long form of the same."""
    found = gone_on(range(first, first + 25), store, tmp_path, pack)
    assert found.wrong == []
    tried(found.taken)


@pytest.mark.promise("P1", ALONE)
@pytest.mark.parametrize(
    ("store", "seed", "processes"),
    [
        ("memory", 8, 3),
        ("sqlite", 7, 2),
        *(pytest.param(store, seed, 5, marks=pytest.mark.proof) for store in ("memory", "sqlite") for seed in (17, 35)),
    ],
)
def test_a_checkpoint_goes_on_in_a_process_of_its_own(
    store: str, seed: int, processes: int, tried: Tried, tmp_path: Path
) -> None:
    """Some checkpoints of a run are taken up by a process each, which gets the bytes of that one only."""
    order = Order([seed], str(tmp_path) if store == "sqlite" else "")
    (job,) = written(order, tmp_path / "written")
    last = job.facts.ends[-1]
    for part in range(processes):
        found = taken([job.alone(last * part // processes)], tmp_path / f"taken {part}")
        assert (found.taken, found.wrong) == (1, [])
    tried(processes)
