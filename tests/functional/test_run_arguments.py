"""Run arguments of a function that waits while a further turn brings others."""

import asyncio

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, step, workflow


def test_a_function_that_waits_reads_the_run_arguments_it_began_with() -> None:
    """A message in a further turn has its own; the pass that waited calls its step with what it was called with."""

    @step
    async def tagged(word: str, tag: object) -> str:
        return f"{word} {tag}"

    @workflow(types=[str])
    async def asking(word: str, ctx: FunctionalContext) -> str:
        before = await tagged(word, ctx.run_args)
        answer = await ctx.request_info("?", response_type=str) if word == "first" else "none"
        return f"{before} {answer} {ctx.run_args}"

    async def main() -> list[list[object]]:
        options = {"checkpoint_storage": InMemoryCheckpointStorage()}
        first = await asking.run("first", run_id="run", run_args="a", **options)
        second = await asking.run("second", checkpoint=first, run_args="b", on_pending="keep", **options)
        third = await asking.run(checkpoint=second, responses=[first.pending_requests[0].answer("yes")], **options)
        return [first.outputs, second.outputs, third.outputs]

    assert asyncio.run(main()) == [[], ["second b none b"], ["first a yes a"]]
