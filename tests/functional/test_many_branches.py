"""What it costs that many branches wait at a time."""

import sys

import pytest

from rehydrate import FunctionalContext, workflow
from tests.functional.book import bounded


@workflow(types=[int])
async def one(number: int, ctx: FunctionalContext) -> int:
    return await ctx.request_info(number, response_type=int)


@workflow(calls=[one])
async def of_called(count: int, ctx: FunctionalContext) -> int:
    return sum(await ctx.gather(*[ctx.call(one, number) for number in range(count)]))


@workflow(types=[int])
async def of_questions(count: int, ctx: FunctionalContext) -> int:
    return sum(await ctx.gather(*[ctx.request_info(number, response_type=int) for number in range(count)]))


def calls_made(flow, count):
    """Return how many functions are called until all have asked, one is answered, and all are answered."""
    calls = 0

    def note(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    async def scenario():
        found = await flow.run(count)
        for number in (1, count - 1):
            requests = found.pending_requests[-number:]
            found = await flow.run(checkpoint=found.checkpoint, responses=[each.answer(1) for each in requests])
        return found.output

    sys.setprofile(note)
    try:
        assert bounded(scenario()) == count
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("flow", [of_called, of_questions])
def test_each_branch_costs_the_same_however_many_there_are(flow):
    """Five times as many take about five times as long; a look at all by each would take more than ten times."""
    calls_made(flow, 3)
    assert calls_made(flow, 200) < 6 * calls_made(flow, 40)
