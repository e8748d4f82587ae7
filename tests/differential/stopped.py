"""Many stopped runs: each seed's reference, and runs of it that are stopped at moments drawn from the seed.

All in virtual time, in which handlers take as long as chance wills without anybody waiting for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Literal

from rehydrate import CheckpointStorage, SqliteCheckpointStorage
from rehydrate.testing import run_virtually
from tests.differential.drawing import draw
from tests.differential.moments import Stop, Way, draw_stops
from tests.differential.stopping import Handover, LateStorage, Reference, StoppedRun, two_of, uninterrupted

#: Where runs are kept; without a store only a result tells of them.
StoreKind = Literal["none", "memory", "sqlite"]
#: The ways that leave a result in the hand.
WITH_RESULT: tuple[Way, ...] = ("drain", "cancel", "leave")


def stopped_runs(
    seeds: Iterable[int], ways: tuple[Way, ...], kind: StoreKind, folder: Path, variants: int
) -> tuple[list[str], Counter[str]]:
    """Stop runs of the graphs of some seeds; return what differs, and how often each stop ended in which way."""
    wrong: list[str] = []
    ends: Counter[str] = Counter()
    for seed in seeds:
        reference = run_virtually(uninterrupted(draw(seed)))
        workflows = two_of(reference.family)
        for variant in range(variants):
            stops = _stops(reference, ways, kind, variant)
            store = _store(kind, folder / f"{seed}-{variant}.db", variant)
            run = StoppedRun(reference, store, stops, variant, slow=variant % 2 == 0, workflows=workflows)
            found, seen = run_virtually(_run(run))
            wrong += [f"seed {seed}, variant {variant}, {stops}: {text}" for text in found]
            ends.update(seen)
    return wrong, ends


def handed_over(seeds: Iterable[int], ways: tuple[Way, ...], folder: Path, variants: int) -> list[Handover]:
    """Stop runs of the graphs of some seeds, each in a SQLite file of its own, for another process to go on with."""
    found: list[Handover] = []
    for seed in seeds:
        reference = run_virtually(uninterrupted(draw(seed)))
        workflows = two_of(reference.family)
        for variant in range(variants):
            stops = _stops(reference, ways, "sqlite", variant)
            file = folder / f"{seed}-{variant}.db"
            store = _store("sqlite", file, variant)
            run = StoppedRun(reference, store, stops, variant, slow=variant % 2 == 0, workflows=workflows)
            left = run_virtually(_handed_over(run, str(file)))
            found += [] if left is None else [left]
    return found


def _stops(reference: Reference, ways: tuple[Way, ...], kind: StoreKind, variant: int) -> list[Stop]:
    random = Random(f"{ways} {reference.family.seed} {variant}")
    possible = tuple(way for way in ways if kind != "none" or way in WITH_RESULT)
    return draw_stops(random, possible, Counter(reference.commands))


def _store(kind: StoreKind, file: Path, chance: int) -> CheckpointStorage | None:
    if kind == "none":
        return None
    return LateStorage(chance) if kind == "memory" else SqliteCheckpointStorage(file, keep_events=True)


async def _run(run: StoppedRun) -> tuple[list[str], list[str]]:
    wrong = await run.run()
    if run.store is not None:
        await run.store.close()
    return wrong, run.ends


async def _handed_over(run: StoppedRun, database: str) -> Handover | None:
    left = await run.hand_over(database)
    assert run.store is not None
    await run.store.close()
    assert run.wrong == []
    return left
