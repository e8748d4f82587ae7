"""Streams that are cancelled, left or dropped (case 39)."""

import asyncio
import gc

import pytest

from rehydrate import Status
from rehydrate.errors import SaveFailedError
from rehydrate.model.events import OutputYielded, StatusChanged, TurnStarted
from tests.call.desk import Gate, Note, desk
from tests.call.stores import rest

run = asyncio.run


@pytest.mark.parametrize("depth", [1, 3])
def test_cancel_stops_the_run_where_it_is(world, anywhere, depth):
    """`cancel()` returns how the run stands; nothing later runs, and the run goes on from there."""
    workflow = desk(world, anywhere, depth=depth)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        await anext(stream)
        await gate.entered.wait()
        result = await stream.cancel()
        return result, await stream.cancel()

    result, again = run(scenario())
    world.gates.clear()
    assert result.status is again.status is Status.CANCELLED
    assert result.checkpoint_id == again.checkpoint_id
    if anywhere:
        assert run(anywhere.head("r")).header.checkpoint_id == result.checkpoint_id
    assert run(workflow.run(checkpoint=result)).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a", "clerk a"]


def test_cancel_of_an_ended_run_changes_nothing(world, anywhere):
    """A run that has ended stays as it ended."""

    async def scenario():
        stream = desk(world, anywhere).run(Note("a"), stream=True)
        result = await stream.result()
        return result, await stream.cancel()

    result, again = run(scenario())
    assert (again.status, again.checkpoint_id) == (Status.IDLE, result.checkpoint_id)


def test_a_reader_sees_the_end_of_a_run_that_another_task_cancels(world, anywhere):
    """The iteration of one task gets the last event, and ends, when another task cancels the stream."""
    workflow = desk(world, anywhere)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        stream = workflow.run(Note("a"), stream=True)

        async def read():
            return [event async for event in stream]

        reading = asyncio.create_task(read())
        await gate.entered.wait()
        await stream.cancel()
        return await reading

    events = run(scenario())
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], StatusChanged)
    assert events[-1].status is Status.CANCELLED


def test_leaving_async_with_cancels_what_still_runs(world, store):
    """A body that leaves early, or raises, cancels the run; the exception goes on."""
    workflow = desk(world, store)

    async def scenario(run_id, error):
        gate = world.gates["clerk a"] = Gate()
        try:
            async with workflow.run(Note("a"), run_id=run_id, stream=True):
                await gate.entered.wait()
                if error:
                    raise error
        finally:
            world.gates.clear()
        return await store.head(run_id)

    assert run(scenario("left", None)).header.status is Status.CANCELLED
    with pytest.raises(LookupError, match="mine"):
        run(scenario("raised", LookupError("mine")))
    assert run(store.head("raised")).header.status is Status.CANCELLED


def test_leaving_async_with_after_the_end_changes_nothing(world, store):
    """A stream that was read to its end is left as it ended."""
    workflow = desk(world, store)

    async def scenario():
        async with workflow.run(Note("a"), run_id="r", stream=True) as stream:
            events = [event async for event in stream]
        return events, await stream.result()

    events, result = run(scenario())
    assert (events[-1].status, result.status) == (Status.IDLE, Status.IDLE)
    assert run(store.head("r")).header.status is Status.IDLE


def test_entering_async_with_raises_what_fails_before_the_claim(world, store):
    """A wrong call fails at the `async with` line, before the body."""
    workflow = desk(world, store)
    entered = []

    async def scenario():
        async with workflow.run(7, stream=True):
            entered.append("body")

    with pytest.raises(TypeError):
        run(scenario())
    assert entered == []


def test_giving_up_while_async_with_is_entered_cancels_the_run(world, store):
    """The claim on its way is waited for; nothing goes on behind a caller who never got into the body."""
    workflow = desk(world, store)
    world.gates["clerk a"] = Gate()
    store.gated_commit, store.commit_gate = 1, Gate()

    async def scenario():
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        entering = asyncio.create_task(stream.__aenter__())
        await store.commit_gate.entered.wait()
        entering.cancel()
        await asyncio.sleep(0)
        store.commit_gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await entering
        return await store.head("r"), stream

    assert run(scenario())[0].header.status is Status.CANCELLED


def test_case_39_a_dropped_stream_is_cancelled_and_a_new_run_is_clean(world, store):
    """`break`, drop, collect, start another run: the old one ends `CANCELLED` and does not touch the new."""
    workflow = desk(world, store)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        stream = workflow.run(Note("a"), run_id="old", stream=True)
        async for _ in stream:
            break
        await gate.entered.wait()
        del stream
        gc.collect()
        new = await workflow.run(Note("b"), run_id="new")
        return new, await rest(store, "old")

    new, old = run(scenario())
    world.gates.clear()
    assert (new.outputs, new.status) == (["1: b"], Status.IDLE)
    assert old.header.status is Status.CANCELLED
    assert run(workflow.run(checkpoint="latest", run_id="old")).outputs == ["1: a"]
    assert run(store.head("new")).header.checkpoint_id == new.checkpoint_id


def test_a_stream_whose_await_is_cancelled_goes_on_for_its_next_reader(world, anywhere):
    """A reader that gives up waiting for one event does not cancel the run; the stream can be read on."""
    workflow = desk(world, anywhere)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        stream = workflow.run(Note("a"), stream=True)
        await anext(stream)
        await gate.entered.wait()
        seen = []

        async def read():
            async for event in stream:
                seen.append(event)  # noqa: PERF401  (the list is read when this is cancelled)

        reading = asyncio.create_task(read())
        for _ in range(20):
            await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        gate.opened.set()
        rest = [event async for event in stream]
        return seen + rest

    events = run(scenario())
    assert [event.data for event in events if isinstance(event, OutputYielded)] == ["1: a"]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_cancelled_result_cancels_the_run(world, store, depth):
    """Cancelling the await of `result()` is cancelling the call: `CANCELLED` is saved, then `CancelledError` comes."""
    workflow = desk(world, store, depth=depth)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        waiting = asyncio.create_task(workflow.run(Note("a"), run_id="r", stream=True).result())
        await gate.entered.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await store.head("r")

    assert run(scenario()).header.status is Status.CANCELLED
    world.gates.clear()
    assert run(workflow.run(Note("a"), run_id="r")).outputs == ["1: a"]


def test_cancel_waits_five_seconds_for_its_store(world, store):
    """A store that does not take `CANCELLED` in time fails `cancel()`, `result()` and the reader with a store's error,
    none of which hangs or looks as if its own task had been cancelled; what is saved stays resumable."""
    workflow = desk(world, store)

    async def scenario():
        loop = asyncio.get_running_loop()
        clock, ahead = loop.time, [0.0]
        loop.time = lambda: clock() + ahead[0]
        gate = world.gates["clerk a"] = Gate()
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        await anext(stream)
        await gate.entered.wait()
        store.gated_commit, store.commit_gate = 1, Gate()

        async def read():
            return [event async for event in stream]

        waiting = [asyncio.create_task(work) for work in (stream.cancel(), stream.result(), read())]
        await store.commit_gate.entered.wait()
        assert not any(task.done() for task in waiting)
        ahead[0] = 6.0
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [(type(error), "within 5 seconds" in str(error)) for error in run(scenario())] == [
        (SaveFailedError, True)
    ] * 3
    world.gates.clear()
    assert run(workflow.run(checkpoint="latest", run_id="r")).outputs == ["1: a"]
