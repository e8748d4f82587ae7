"""What is left of a turn that has ended, or that nobody waits for any more."""

import asyncio
import gc

import pytest

from rehydrate import Status, WorkflowBuilder, WorkflowExecutor, executor
from tests.call.desk import Gate, Note, desk
from tests.call.stores import rest


def test_a_turn_that_has_ended_leaves_nothing_to_the_cyclic_collector(world, anywhere):
    """Its state is freed with its result: a server must not hold megabytes until the collector comes by."""

    async def turn(workflow, note):
        await workflow.run(Note(note))

    async def scenario():
        workflow = desk(world, anywhere)
        await turn(workflow, "first")
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await turn(workflow, "second")
            gc.collect()
            return [type(found) for found in gc.garbage if type(found).__module__.startswith("rehydrate")]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()

    assert asyncio.run(scenario()) == []


def test_a_claim_that_is_saved_long_after_its_caller_was_cancelled_starts_nothing(world, store):
    """The caller waits five seconds for the store and no longer; what is saved later waits for the next call."""
    workflow = desk(world, store)

    async def scenario():
        loop = asyncio.get_running_loop()
        clock, ahead = loop.time, [0.0]
        loop.time = lambda: clock() + ahead[0]
        store.gated_commit, store.commit_gate = 1, Gate()
        call = asyncio.create_task(workflow.run(Note("a"), run_id="late"))
        await store.commit_gate.entered.wait()
        call.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not call.done()
        ahead[0] = 6.0
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await store.head("late") is None
        store.commit_gate.opened.set()
        for _ in range(2000):
            if await store.head("late") is not None:
                break
        for _ in range(100):
            await asyncio.sleep(0)
        head, before = await store.head("late"), list(world.diary)
        result = await workflow.run(checkpoint="latest", run_id="late")
        return head, before, result

    head, before, result = asyncio.run(scenario())
    assert (head.header.status, before) == (Status.RUNNING, [])
    assert (result.status, result.outputs, world.diary) == (Status.IDLE, ["1: a"], ["intake a", "clerk a"])


def test_a_claim_that_is_saved_while_its_cancelled_caller_waits_is_cancelled_as_a_run(world, store):
    """The run that began is stopped, saved as cancelled, and can be gone on with."""
    workflow = desk(world, store)

    async def scenario():
        store.gated_commit, store.commit_gate = 1, Gate()
        call = asyncio.create_task(workflow.run(Note("a"), run_id="late"))
        await store.commit_gate.entered.wait()
        call.cancel()
        await asyncio.sleep(0)
        store.commit_gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await rest(store, "late")

    head = asyncio.run(scenario())
    assert (head.header.status, head.owner) == (Status.CANCELLED, None)


@pytest.mark.parametrize("turns", range(8))
def test_a_run_without_a_store_ends_once_whatever_finishes_last(turns):
    """A branch that finishes just as what another one did is about to be passed on: there is one end and one header."""

    @executor(id="split")
    async def split(text: str) -> str:
        return text

    @executor(id="quick")
    async def quick(text: str) -> str:
        return text

    @executor(id="slow")
    async def slow(text: str) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        return text

    child = WorkflowBuilder("child", quick).build()
    builder = WorkflowBuilder("branches", split).add_fan_out_edges(split, [slow, WorkflowExecutor(child, "child")])
    result = asyncio.run(builder.build().run("a"))
    assert (result.status, result.outputs) == (Status.IDLE, ["a", "a"])
    assert result.checkpoint.header.seq == 0
    assert [event.sequence for event in result.events] == list(range(1, result.checkpoint.header.events + 1))
