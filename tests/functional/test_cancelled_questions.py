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
