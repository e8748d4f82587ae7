"""Questions that are withdrawn below a function, beside one that is answered in the same call."""

import asyncio
from typing import Never

from rehydrate import (
    Executor,
    FunctionalContext,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    workflow,
)
from rehydrate.testing import run_virtually


class Asker(Executor):
    """Asks twice and yields what was answered."""

    @handler
    async def on_word(self, word: str, ctx: WorkflowContext) -> None:
        ctx.request_info(f"{word} 1", response_type=str)
        ctx.request_info(f"{word} 2", response_type=str)

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question}: {answer}")


def test_a_graph_below_a_function_takes_its_answer_while_another_question_is_withdrawn() -> None:
    """The function waits for the graph, which has an answer to take, and gets what that yields."""
    graph = WorkflowBuilder("graph", Asker("asker")).build()

    @workflow(calls=[graph])
    async def parent(word: str, ctx: FunctionalContext) -> list[str]:
        return await ctx.call(graph, word) if word == "first" else [word]

    async def main() -> list[object]:
        store = InMemoryCheckpointStorage()
        first = await parent.run("first", run_id="run", checkpoint_storage=store)
        answers = [first.pending_requests[0].answer("yes")]
        second = await parent.run(
            "second", checkpoint=first, responses=answers, on_pending="cancel", checkpoint_storage=store
        )
        return second.outputs

    assert asyncio.run(main()) == [["second"], ["first 1: yes"]]


def test_a_question_that_its_function_gives_up_does_not_look_answered_in_the_history() -> None:
    """The last checkpoint was made by a superstep; nobody has answered."""

    @workflow
    async def impatient(word: str, ctx: FunctionalContext) -> str:
        asked = asyncio.ensure_future(ctx.request_info(word, response_type=str))
        await ctx.sleep(60)
        asked.cancel()
        return "nobody answered"

    async def main() -> tuple[list[object], list[str]]:
        store = InMemoryCheckpointStorage()
        paused = await impatient.run("first", run_id="run", checkpoint_storage=store)
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=61)
        done = await impatient.run(checkpoint=paused, checkpoint_storage=store)
        return done.outputs, [header.cause.value for header in await store.history("run")]

    outputs, causes = run_virtually(main())
    assert outputs == ["nobody answered"]
    assert causes == ["superstep", "continuation", "superstep", "invocation", "message"]
