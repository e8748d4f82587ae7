"""A process that ends at any commit: the same call again finishes the turn as if nothing had happened."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, Workflow, WorkflowRunResult
from rehydrate.errors import SaveFailedError, StaleCheckpointError
from rehydrate.model.checkpoint import Commit
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts, call_facts, differences, request_names
from tests.differential.harness import Calls, calls_of
from tests.differential.keeping import Names, wrong_in_store
from tests.differential.plans import FamilyPlan
from tests.differential.script import STOPPED, Step, first_step, next_step
from tests.differential.stopping import uninterrupted
from tests.widest import one_in

RUN_ID = "crashing"


class Crashing:
    """A store that fails once, at the n-th commit: before it has written anything, or after, when nobody learns of it.

    A commit that ends a failed or limited turn passes: whether the caller knows of it makes a difference by design.
    """

    left = 0
    written = False

    async def commit(self, commit: Commit) -> None:
        self.left -= commit.header.status not in STOPPED
        if self.left != 0:
            await super().commit(commit)
            return
        self.left = -1
        if self.written:
            await super().commit(commit)
        raise OSError("the power went")


class CrashingMemory(Crashing, InMemoryCheckpointStorage):
    """In memory."""


class CrashingSqlite(Crashing, SqliteCheckpointStorage):
    """In a file."""


StoreKind = Literal["memory", "sqlite"]


async def again(calls: Calls, number: int, step: Step, options: dict[str, object]) -> WorkflowRunResult:
    """Make the broken call again; a continuation that had ended well without a word has its result in the head."""
    try:
        return await calls.call(number, step, **options)
    except StaleCheckpointError:
        assert step == Step()
        return await calls.call(number, step, run_id=RUN_ID, checkpoint="latest")


async def wrong_after_crash(calls: Calls, reference: RunFacts) -> list[str]:
    """Run the script over a store that crashes, making the call that it broke again; follow for two more calls, and
    compare the events that the store has kept."""
    family = calls.family
    step: Step | None = first_step(family)
    options: dict[str, object] = {"run_id": RUN_ID}
    names: list[Names] = []
    crashed = number = 0
    while step is not None and number < len(reference.calls) and crashed < 3:
        try:
            result = await calls.call(number, step, **options)
        except SaveFailedError:
            result = await again(calls, number, step, options)
            crashed = 1
        crashed += crashed > 0
        wrong = differences(reference.calls[number], call_facts(result, ()))
        if wrong:
            return [f"call {number}: {text}" for text in wrong]
        names.append(request_names(result.checkpoint.records))
        options = {"checkpoint": result.checkpoint_id}
        number += 1
        step = next_step(family, number, result.status, result.pending_requests)
    assert calls.store is not None
    return await wrong_in_store(calls.workflow, calls.store, RUN_ID, reference.calls[:number], names)


async def wrong_after_crash_at(
    crash_at: int, family: FamilyPlan, workflow: Workflow, reference: RunFacts, file: Path | None, *, written: bool
) -> list[str]:
    """Crash a run at one commit, in memory or in a file."""
    store = CrashingMemory(keep_events=True) if file is None else CrashingSqlite(file, keep_events=True)
    store.left, store.written = crash_at, written
    wrong = await wrong_after_crash(Calls(family, workflow, store, 6, keyed=True), reference)
    await store.close()
    return [f"seed {family.seed}, commit {crash_at}, written: {written}: {text}" for text in wrong]


async def wrong_after_crashes(family: FamilyPlan, every: int, folder: Path | None) -> list[str]:
    """Crash at every n-th commit, beginning with the first, and at the others in turn for other seeds."""
    reference = (await uninterrupted(family, keyed=True)).facts
    workflow = calls_of(family, None, 0).workflow
    wrong: list[str] = []
    for crash_at in range(1 + family.seed % every, reference.ends[-1] + 2, every):
        for written in (False, True):
            file = folder / f"{crash_at} {written}.db" if folder is not None else None
            wrong += await wrong_after_crash_at(crash_at, family, workflow, reference, file, written=written)
    return wrong


#: 63 is so large that it alone takes as long as all the others; the long form has its like.
@pytest.mark.promise("P4", "random graphs, crashed at their commits")
@pytest.mark.parametrize(
    ("store", "seed", "every"),
    [
        *(("memory", seed, 4) for seed in (60, 62, 65)),
        *(pytest.param("memory", seed, 4, marks=pytest.mark.proof) for seed in (61, 64, 66)),
        ("sqlite", 61, 12),
    ],
)
def test_the_same_call_again_after_a_crash_gives_what_the_uninterrupted_run_gave(
    store: StoreKind, seed: int, every: int, tmp_path: Path
) -> None:
    """Wherever the store fails, before or after writing, nothing is lost, nothing is applied twice, and each event is
    kept once."""
    assert asyncio.run(wrong_after_crashes(draw(seed), every, tmp_path if store == "sqlite" else None)) == []


@pytest.mark.proof
@pytest.mark.promise("P4", "random graphs, crashed at their commits")
@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("seed", one_in(5, range(2000, 2100)))
def test_the_same_call_again_after_a_crash_at_any_commit(seed: int, store: StoreKind, tmp_path: Path) -> None:
    """The long form of the same."""
    every, folder = (1, None) if store == "memory" else (7, tmp_path)
    assert asyncio.run(wrong_after_crashes(draw(seed), every, folder)) == []
