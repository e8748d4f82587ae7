"""A question in one branch while a step of another begins."""

import asyncio

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, Status, step, workflow
from rehydrate.testing import run_virtually
from tests.differential.moments import pause


def test_a_step_that_begins_after_a_question_is_finished_before_the_function_is_left() -> None:
    """The steps are awaited in tasks of their own and take seconds; they run once, and the question is asked after."""
    runs: list[str] = []

    @step
    async def slow(word: str) -> str:
        runs.append(word)
        await pause(5.0)
        return word

    async def both() -> str:
        return " ".join(await asyncio.gather(slow("a"), slow("b")))

    @workflow(types=[str])
    async def asking(word: str, ctx: FunctionalContext) -> str:
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(ctx.request_info("?", response_type=str))
            worked = group.create_task(both())
        return f"{answer.result()} {worked.result()}"

    async def main() -> list[object]:
        options = {"checkpoint_storage": InMemoryCheckpointStorage()}
        first = await asking.run("x", **options)
        assert first.status is Status.IDLE_WITH_PENDING_REQUESTS
        second = await asking.run(responses=[first.pending_requests[0].answer("yes")], checkpoint=first, **options)
        return second.outputs

    assert run_virtually(main()) == ["yes a b"]
    assert runs == ["a", "b"]
