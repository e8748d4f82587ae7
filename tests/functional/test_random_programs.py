"""P1 and P2 for functions: from any checkpoint, after any crash or stop, a random program goes on as if nothing had
happened, and no step whose result was saved runs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.testing import claim_turns_again, run_virtually
from tests.differential.harness import reference_run, run_differences
from tests.differential.moments import CANCELS, DRAINS, Way, draw_stops
from tests.differential.stopped import WITH_RESULT
from tests.differential.stopping import LateStorage, StoppedRun, repeats
from tests.functional.random_plans import draw_programs
from tests.functional.random_programs import build_programs
from tests.functional.random_restorer import spawn, write_job
from tests.functional.random_runs import (
    RUN_ID,
    answered_in_order,
    calls_of,
    uninterrupted,
    wrong_after_crashes,
    wrong_from_checkpoints,
    wrong_when_repeated,
)
from tests.proof.ledger import Tried
from tests.widest import one_in

StoreKind = Literal["none", "memory", "sqlite"]
#: The row of the table of proofs.
CHECKPOINTS = "checkpoints of random functions, taken up"


@pytest.fixture(autouse=True)
def undrained() -> Iterator[None]:
    """Each test leaves a process that claims turns."""
    yield
    claim_turns_again()


def found_in(work: Coroutine[object, object, list[str]]) -> list[str]:
    """Run in virtual time."""
    return run_virtually(work)


def store_of(kind: StoreKind, file: Path) -> CheckpointStorage:
    """Return an empty store that keeps events."""
    if kind == "sqlite":
        return SqliteCheckpointStorage(file, keep_events=True)
    return InMemoryCheckpointStorage(keep_events=True)


async def wrong_in_other_orders(seed: int) -> list[str]:
    """Run a plan with steps that take other times; name what differs, and whether a step ran twice."""
    plan = draw_programs(seed)
    first, *others = [calls_of(plan, InMemoryCheckpointStorage(), chance) for chance in (1, 2, 3)]
    expected = await reference_run(first, RUN_ID)
    wrong = [text for calls in others for text in run_differences(expected, await reference_run(calls, RUN_ID))]
    twice = [repeats(calls.journal) for calls in (first, *others) if calls.journal is not None]
    return [*wrong, *(f"{count} steps ran twice" for count in twice if count)]


@pytest.mark.parametrize("seed", range(8))
def test_a_program_is_the_same_however_long_its_steps_take(seed: int) -> None:
    """Outputs, state, inner request names, receipts and per-scope events do not depend on what finished first."""
    assert found_in(wrong_in_other_orders(seed)) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", one_in(4, range(8, 400)))
def test_any_program_is_the_same_however_long_its_steps_take(seed: int) -> None:
    """The long form of the same."""
    assert found_in(wrong_in_other_orders(seed)) == []


@pytest.mark.parametrize("seed", [18, 112])
def test_a_program_comes_to_the_same_in_whatever_order_its_questions_are_answered(seed: int) -> None:
    """One at a time, in four orders, with timers that are up in between or not: outputs, state and questions are the
    same, and no step runs twice."""
    found = [run_virtually(answered_in_order(draw_programs(seed, mixed=True), chance)) for chance in range(4)]
    assert [facts for facts, _ in found] == [found[0][0]] * 4
    assert sum(timed for _, timed in found) >= 2


@pytest.mark.proof
@pytest.mark.parametrize("first", one_in(3, range(0, 300, 60)))
def test_any_program_comes_to_the_same_in_whatever_order_its_questions_are_answered(first: int) -> None:
    """The long form of the same. In a graph it matters which answer a handler has seen first, so there is none."""
    timed = 0
    for plan in (draw_programs(seed, mixed=True) for seed in range(first, first + 60)):
        if not plan.seeds:
            found = [run_virtually(answered_in_order(plan, chance)) for chance in range(12)]
            assert [facts for facts, _ in found] == [found[0][0]] * 12, plan.seed
            timed += sum(times for _, times in found)
    assert timed > 0


@pytest.mark.parametrize("seed", [2, 7, 20])
def test_a_call_that_is_made_again_gives_what_it_gave(seed: int) -> None:
    """With its key it is known, nothing runs, and result, requests and records are the same."""
    assert found_in(wrong_when_repeated(draw_programs(seed))) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", one_in(4, range(200)))
def test_any_call_that_is_made_again_gives_what_it_gave(seed: int) -> None:
    """The long form of the same."""
    assert found_in(wrong_when_repeated(draw_programs(seed))) == []


async def wrong_from_every(seed: int, kind: StoreKind, file: Path, every: int) -> tuple[list[str], int]:
    """Take up every n-th checkpoint of a seed's reference; return what differs, and how many that were."""
    store = store_of(kind, file)
    reference = await uninterrupted(draw_programs(seed), store)
    wrong = ["a step ran twice"] if reference.repeats else []
    chosen = range(seed % every, reference.facts.ends[-1] + 1, every)
    wrong += await wrong_from_checkpoints(reference, store, chosen.__contains__)
    await store.close()
    return wrong, len(chosen)


@pytest.mark.promise("P1", CHECKPOINTS)
@pytest.mark.parametrize(("kind", "seed", "every"), [("memory", 11, 12), ("memory", 8, 6), ("sqlite", 7, 12)])
def test_a_program_goes_on_from_its_checkpoints(
    kind: StoreKind, seed: int, every: int, tried: Tried, tmp_path: Path
) -> None:
    """Taken up in other workflows, as a fork or without a store, it gives what the uninterrupted run gave."""
    wrong, taken = run_virtually(wrong_from_every(seed, kind, tmp_path / "runs.db", every))
    assert wrong == []
    tried(taken)


def wrong_in_another_process(seeds: Iterable[int], kind: StoreKind, step: int, folder: Path) -> tuple[list[str], int]:
    """Let a process take up every n-th checkpoint of some programs; return what differs, and how many that were."""
    jobs = [write_job(seed, step, folder / f"{seed}.db" if kind == "sqlite" else None) for seed in seeds]
    return spawn(jobs, folder / "jobs"), sum(job.facts.ends[-1] // step + 1 for job in jobs)


@pytest.mark.promise("P1", CHECKPOINTS)
@pytest.mark.parametrize(
    ("kind", "seeds", "step"), [("memory", (10,), 5), pytest.param("sqlite", (8, 13), 9, marks=pytest.mark.proof)]
)
def test_another_process_goes_on_from_checkpoints(
    kind: StoreKind, seeds: tuple[int, ...], step: int, tried: Tried, tmp_path: Path
) -> None:
    """It has the checkpoints only, and what must follow."""
    wrong, taken = wrong_in_another_process(seeds, kind, step, tmp_path)
    assert wrong == []
    tried(taken)


@pytest.mark.proof
@pytest.mark.promise("P1", CHECKPOINTS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("first", one_in(2, range(200, 300, 10)))
def test_another_process_goes_on_from_any_checkpoint(first: int, kind: StoreKind, tried: Tried, tmp_path: Path) -> None:
    """The long form of the same."""
    step = 1 if kind == "memory" else 4
    wrong, taken = wrong_in_another_process(range(first, first + 10), kind, step, tmp_path)
    assert wrong == []
    tried(taken)


def stores_in(kind: StoreKind, folder: Path) -> object:
    """Return what makes stores by name."""
    return lambda name: store_of(kind, folder / f"{name}.db")


@pytest.mark.parametrize(
    ("kind", "seed", "every", "crashes"),
    [("memory", 11, 120, 2), ("memory", 24, 12, 1), ("sqlite", 13, 20, 1)],
)
def test_a_program_goes_on_after_a_crash(kind: StoreKind, seed: int, every: int, crashes: int, tmp_path: Path) -> None:
    """The process ends before or after a command, perhaps more than once; the same call again finishes the turn, no
    step runs again whose result was saved, and each event is kept once."""
    make = stores_in(kind, tmp_path)
    assert found_in(wrong_after_crashes(draw_programs(seed), every, make, crashes)) == []


@pytest.mark.proof
@pytest.mark.parametrize("crashes", [1, 2, 3])
@pytest.mark.parametrize("seed", one_in(4, range(60)))
def test_any_program_goes_on_after_crashes_at_any_command(seed: int, crashes: int, tmp_path: Path) -> None:
    """The long form of the same: every command of small programs, a part of those of large ones."""
    make = stores_in("memory", tmp_path)
    assert found_in(wrong_after_crashes(draw_programs(seed), 1 + 6 * crashes, make, crashes)) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", one_in(3, range(60, 90)))
def test_any_program_in_a_file_goes_on_after_a_crash(seed: int, tmp_path: Path) -> None:
    """The same over SQLite."""
    assert found_in(wrong_after_crashes(draw_programs(seed), 31, stores_in("sqlite", tmp_path))) == []


def wrong_after_stops(
    seed: int, ways: tuple[Way, ...], kind: StoreKind, folder: Path, variants: int
) -> tuple[list[str], Counter[str]]:
    """Stop runs of a seed's program; return what differs, and how often each stop ended in which way."""
    wrong: list[str] = []
    ends: Counter[str] = Counter()
    reference = run_virtually(uninterrupted(draw_programs(seed), InMemoryCheckpointStorage()))
    possible = tuple(way for way in ways if kind != "none" or way in WITH_RESULT)
    for variant in range(variants):
        stops = draw_stops(Random(f"{ways} {seed} {variant}"), possible, Counter(reference.commands))
        workflows = [build_programs(reference.family) for _ in range(2)]
        store: CheckpointStorage | None = None
        if kind != "none":
            store = (
                LateStorage(variant) if kind == "memory" else store_of(kind, folder / f"{seed}-{variant}-{ways[0]}.db")
            )
        run = StoppedRun(reference, store, stops, variant, slow=True, workflows=workflows)
        found = run_virtually(_stopped(run))
        claim_turns_again()
        wrong += [f"seed {seed}, variant {variant}, {stops}: {text}" for text in found]
        ends.update(run.ends)
    return wrong, ends


async def _stopped(run: StoppedRun) -> list[str]:
    wrong = await run.run()
    if run.store is not None:
        await run.store.close()
    return wrong


@pytest.mark.parametrize(
    ("ways", "kind", "seed"),
    [
        (DRAINS, "memory", 10),
        (DRAINS, "sqlite", 3),
        (DRAINS, "none", 18),
        (CANCELS, "memory", 7),
        (CANCELS, "none", 9),
    ],
)
def test_a_program_goes_on_after_a_stop(ways: tuple[Way, ...], kind: StoreKind, seed: int, tmp_path: Path) -> None:
    """Drained or cancelled at any moment, it comes to the same end, and no step that had finished runs again."""
    wrong, ends = wrong_after_stops(seed, ways, kind, tmp_path, variants=4)
    assert wrong == []
    assert ends.total() >= 2


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["memory", "sqlite", "none"])
@pytest.mark.parametrize("seed", one_in(3, range(100)))
def test_any_program_goes_on_after_stops_at_any_moment(seed: int, kind: StoreKind, tmp_path: Path) -> None:
    """The long form of the same."""
    assert wrong_after_stops(seed, DRAINS, kind, tmp_path, variants=6)[0] == []
    assert wrong_after_stops(seed, CANCELS, kind, tmp_path, variants=6)[0] == []
