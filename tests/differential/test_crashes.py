"""A process that ends at any commit: the same call again finishes the turn as if nothing had happened."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, WorkflowRunResult
from rehydrate.errors import SaveFailedError, StaleCheckpointError
from rehydrate.model.checkpoint import Commit
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts, call_facts, differences
from tests.differential.harness import Calls, calls_of, reference_run
from tests.differential.plans import FamilyPlan
from tests.differential.script import STOPPED, Step, first_step, next_step

RUN_ID = "crashing"


class CrashingStorage(InMemoryCheckpointStorage):
    """A store that fails once, at the n-th commit: before it has written anything, or after, when nobody learns of it.

    A commit that ends a failed or limited turn passes: whether the caller knows of it makes a difference by design.
    """

    def __init__(self, crash_at: int, *, written: bool) -> None:
        super().__init__()
        self.left = crash_at
        self.written = written

    async def commit(self, commit: Commit) -> None:
        self.left -= commit.header.status not in STOPPED
        if self.left != 0:
            await super().commit(commit)
            return
        self.left = -1
        if self.written:
            await super().commit(commit)
        raise OSError("the power went")


async def again(calls: Calls, number: int, step: Step, options: dict[str, object]) -> WorkflowRunResult:
    """Make the broken call again; a continuation that had ended well without a word has its result in the head."""
    try:
        return await calls.call(number, step, **options)
    except StaleCheckpointError:
        assert step == Step()
        return await calls.call(number, step, run_id=RUN_ID, checkpoint="latest")


async def wrong_after_crash(family: FamilyPlan, reference: RunFacts, crash_at: int, *, written: bool) -> list[str]:
    """Run the script over a store that crashes, making the call that it broke again; follow for two more calls."""
    calls = Calls(family, calls_of(family, None, 0).workflow, CrashingStorage(crash_at, written=written), 6, keyed=True)
    step: Step | None = first_step(family)
    options: dict[str, object] = {"run_id": RUN_ID}
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
            return [f"seed {family.seed}, commit {crash_at}, call {number}: {text}" for text in wrong]
        options = {"checkpoint": result.checkpoint_id}
        number += 1
        step = next_step(family, number, result.status, result.pending_requests)
    return []


async def wrong_after_crashes(family: FamilyPlan, every: int) -> list[str]:
    """Crash at every n-th commit, beginning with the first, and at the others in turn for other seeds."""
    store = InMemoryCheckpointStorage()
    reference = await reference_run(Calls(family, calls_of(family, None, 0).workflow, store, 1, keyed=True), RUN_ID)
    wrong: list[str] = []
    for crash_at in range(1 + family.seed % every, reference.ends[-1] + 2, every):
        wrong += await wrong_after_crash(family, reference, crash_at, written=False)
        wrong += await wrong_after_crash(family, reference, crash_at, written=True)
    return wrong


#: 63 is so large that it alone takes as long as all the others; the long form has its like.
@pytest.mark.parametrize("seed", [60, 61, 62, 64, 65, 66])
def test_the_same_call_again_after_a_crash_gives_what_the_uninterrupted_run_gave(seed: int) -> None:
    """Wherever the store fails, before or after writing, nothing is lost and nothing is applied twice."""
    assert asyncio.run(wrong_after_crashes(draw(seed), every=4)) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_the_same_call_again_after_a_crash_at_any_commit(seed: int) -> None:
    """The long form of the same."""
    assert asyncio.run(wrong_after_crashes(draw(seed), every=1)) == []
