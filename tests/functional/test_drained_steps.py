"""A process that is drained while steps run: those are finished, and no other is started."""

import asyncio
from collections.abc import Iterator

import pytest

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, Retry, drain, step, workflow
from rehydrate.errors import RunDrainedError
from rehydrate.testing import claim_turns_again, run_virtually
from tests.differential.moments import pause


@pytest.fixture(autouse=True)
def undrained() -> Iterator[None]:
    """Each test leaves a process that claims turns."""
    yield
    claim_turns_again()


async def drained_after_half_a_second(work: asyncio.Task[object]) -> float:
    """Drain and return how many seconds that has taken."""
    await pause(0.5)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await drain(30.0)
    with pytest.raises(RunDrainedError):
        await work
    return round(loop.time() - began, 3)


def test_a_step_that_fails_during_a_drain_and_is_tried_again_does_not_keep_the_process() -> None:
    """The attempt ends after a second and is recorded; the next one, far off, is another process's."""

    @step(retry=Retry(3, 100.0, max_delay=100.0))
    async def failing() -> None:
        await pause(1.0)
        raise OSError("not yet")

    @workflow
    async def trying(word: str, ctx: FunctionalContext) -> None:
        await failing()

    async def main() -> float:
        work = asyncio.ensure_future(trying.run("a", checkpoint_storage=InMemoryCheckpointStorage()))
        return await drained_after_half_a_second(work)

    assert run_virtually(main()) == 0.5


def test_a_step_that_waits_for_its_turn_is_not_started_in_a_drain() -> None:
    """One step at a time: the one that runs is finished, the other has not begun when the process hands the run on."""
    begun: list[str] = []

    @step
    async def slow(word: str) -> str:
        begun.append(word)
        await pause(1.0)
        return word

    @workflow(max_concurrency=1)
    async def both(word: str, ctx: FunctionalContext) -> str:
        return " ".join(await ctx.gather(slow("a"), slow("b")))

    async def main() -> tuple[float, list[str], list[object]]:
        store = InMemoryCheckpointStorage()
        work = asyncio.ensure_future(both.run("x", run_id="run", checkpoint_storage=store))
        seconds = await drained_after_half_a_second(work)
        before = list(begun)
        claim_turns_again()
        result = await both.run(run_id="run", checkpoint="latest", checkpoint_storage=store)
        return seconds, before, result.outputs

    assert run_virtually(main()) == (0.5, ["a"], ["a b"])
    assert begun == ["a", "b"]
