"""`ctx.version` of a function that another workflow calls is that of its own workflow."""

from __future__ import annotations

import asyncio

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, workflow


@workflow(version=3, migrate={1: lambda run: None, 2: lambda run: None})
async def inner(name: str, ctx: FunctionalContext) -> str:
    before = ctx.version
    answer = await ctx.request_info(name, response_type=str)
    return f"{answer} {before} {ctx.version}"


@workflow(calls=[inner])
async def outer(name: str, ctx: FunctionalContext) -> str:
    return f"{await ctx.call(inner, name)}, {ctx.version}"


def test_a_called_function_sees_the_version_of_its_own_workflow() -> None:
    """Before its first record and after it was restored: 3 inside, 1 around."""

    async def run() -> list[object]:
        store = InMemoryCheckpointStorage()
        paused = await outer.run("a", run_id="r", checkpoint_storage=store)
        answers = [request.answer("yes") for request in paused.pending_requests]
        return (await outer.run(checkpoint=paused, responses=answers, checkpoint_storage=store)).outputs

    assert asyncio.run(run()) == ["yes 3 3, 1"]
