"""The clock, random numbers and ids of a pass: the same whenever its function runs anew."""

import random
import uuid
from datetime import UTC, datetime

from rehydrate import FunctionalContext, workflow
from rehydrate.testing import VirtualClock, run_virtually
from tests.functional.book import answers


def moments(store, clock, told):
    """Make a workflow that reads all of them, before a question and after, in its own line and in branches."""

    @workflow(name="moments", checkpoint_storage=store, types=[str])
    async def moments(text: str, ctx: FunctionalContext) -> list[str]:
        def all_of_them():
            return [str(ctx.uuid()), ctx.random().random(), ctx.random().randint(1, 10**9), ctx.now().isoformat()]

        async def branch():
            return all_of_them()

        first = all_of_them()
        second = await ctx.gather(branch(), branch())
        told.append([*first, *second[0], *second[1]])
        clock.advance(86_400)
        await ctx.request_info(text, response_type=str)
        return [*map(str, told[-1]), *map(str, all_of_them())]

    return moments


def test_they_are_the_same_after_a_wait_in_the_run_and_in_a_fork_of_it(store):
    """What was read before the question reads the same after it; the fork has waited for the same."""
    clock, told = VirtualClock(), []

    async def scenario():
        first = await moments(store, clock, told).run("?", run_id="r")
        forked = await moments(store, clock, told).run(
            checkpoint=first, fork=True, run_id="s", responses=answers(first, "go")
        )
        clock.advance(86_400)
        own = await moments(store, clock, told).run(responses=answers(first, "go"))
        return forked.output, own.output

    forked, own = run_virtually(scenario(), clock=clock)
    assert told[0] == told[1] == told[2]
    assert len({str(value) for value in told[0] if isinstance(value, float | int) or len(value) == 36}) == 9
    assert forked[:12] == own[:12] == [str(value) for value in told[0]]
    assert forked[12:15] == own[12:15]
    assert forked[12] != own[0]
    assert uuid.UUID(own[0]).version == 4
    times = [datetime.fromisoformat(text) for text in (own[3], forked[15], own[15])]
    assert [(time - times[0]).days for time in times] == [0, 2, 4]
    assert times[0] == datetime.fromtimestamp(1_000_000, UTC)


def test_each_run_and_each_message_has_its_own(store):
    """Two runs, and two messages of one run, share no id; a source of random numbers is of its place."""
    seen = []

    @workflow(name="ids", checkpoint_storage=store)
    async def ids(text: str, ctx: FunctionalContext) -> str:
        source = ctx.random()
        assert isinstance(source, random.Random)
        seen.extend([ctx.uuid(), ctx.uuid(), source.random(), ctx.random().random()])
        return text

    async def scenario():
        first = await ids.run("a", run_id="r")
        await ids.run("b", checkpoint=first)
        await ids.run("a", run_id="s")

    run_virtually(scenario())
    assert len(set(seen)) == 12
