"""A function that ends while a workflow which it called waits: that ends, too, and what it asked is withdrawn."""

import asyncio

import pytest

from rehydrate import FunctionalContext, Status, step, workflow
from rehydrate.model.events import RequestsCancelled
from tests.functional.book import run


@workflow
async def asking(text: str, ctx: FunctionalContext) -> str:
    return f"{text}: {await ctx.request_info('?', response_type=bool)}"


@step
async def slow(text: str) -> str:
    for _ in range(200):  # the called workflow comes to rest meanwhile
        await asyncio.sleep(0)
    return text


@pytest.mark.parametrize("name", ["above", "zone"])
@pytest.mark.parametrize("again", [False, True])
def test_a_function_may_end_before_a_workflow_that_it_called(store, name, again):
    """It returns, or begins anew, in the superstep in which the called workflow waits for the outside."""

    async def caller(text: str, ctx: FunctionalContext) -> str:
        if text == "once more":
            return text
        call = asyncio.ensure_future(ctx.call(asking, text))
        await slow(text)
        if again:
            await ctx.continue_as_new("once more")
        return f"{text}, {call.done()}"

    made = workflow(name=name, calls=[asking], checkpoint_storage=store)(caller)
    result = run(made, "a")
    assert (result.status, result.pending_requests) == (Status.IDLE, ())
    assert result.outputs == ["once more" if again else "a, False"]
    assert [kind for kind in ("pass", "call", "scope") if result.checkpoint.records.table("", kind)] == []
    assert len([event for event in result.events if isinstance(event, RequestsCancelled)]) == 1
