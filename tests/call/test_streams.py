"""Streams: reading, and answering while the turn runs."""

import asyncio
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, handler
from rehydrate.errors import (
    AlreadyAnsweredError,
    AnswerTypeError,
    RunFailedError,
    StreamStateError,
    UnknownRequestError,
)
from rehydrate.model.events import Emitted, OutputYielded, RequestOpened, StatusChanged, TurnStarted
from tests.call.desk import Fault, Gate, Note, desk, panel

run = asyncio.run


async def until(stream, kind):
    """Read a stream up to an event of a kind and return it."""
    async for event in stream:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the stream ended without {kind.__name__}")


# reading ---------------------------------------------------------------------------------------------------------


def test_the_last_event_comes_first_then_the_iteration_ends(world, anywhere):
    """The status is the last event; afterwards the iterator stays at its end, and the result is there."""

    async def scenario():
        stream = desk(world, anywhere).run(Note("a"), stream=True)
        events = [event async for event in stream]
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return events, await stream.result(), await stream.result()

    events, first, second = run(scenario())
    assert (type(events[0]), type(events[-1])) == (TurnStarted, StatusChanged)
    assert events[-1].status is Status.IDLE
    assert first.outputs == second.outputs == ["1: a"]


def test_a_failed_run_ends_the_iteration_and_its_result_raises(world, anywhere):
    """Iterating ends with the status `FAILED` and no exception; `result()` raises as a call does."""
    world.faults.add("clerk a")

    async def scenario():
        stream = desk(world, anywhere, depth=2).run(Note("a"), stream=True)
        events = [event async for event in stream]
        with pytest.raises(RunFailedError) as failed:
            await stream.result()
        return events, failed.value

    events, error = run(scenario())
    assert events[-1].status is error.result.status is Status.FAILED
    assert isinstance(error.__cause__, Fault)


def test_result_reads_the_rest_away(world, anywhere):
    """After one event `result()` waits for the end; no reader is needed for what is left."""

    async def scenario():
        stream = desk(world, anywhere).run(Note("a"), stream=True)
        await anext(stream)
        return await stream.result()

    assert run(scenario()).outputs == ["1: a"]


class Flood(Executor):
    """Yields many outputs in many supersteps and tells of its progress."""

    handled = 0

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        Flood.handled += 1
        for _ in range(100):
            ctx.emit("progress")
            ctx.yield_output(number)
        if number:
            ctx.send_message(number - 1)


def flood(store):
    """Make a loop of thirty supersteps with a hundred outputs and live events each."""
    node = Flood("flood")
    return WorkflowBuilder(name="flood", start_executor=node, checkpoint_storage=store).add_edge(node, node).build()


@pytest.mark.parametrize("read", [0, 1, 2000])
def test_a_stream_larger_than_its_buffer_ends_without_a_reader(anywhere, read):
    """However little was read, `result()` lets the run end with all its outputs."""

    async def scenario():
        stream = flood(anywhere).run(29, stream=True)
        for _ in range(read):
            await anext(stream)
        return await stream.result()

    assert len(run(scenario()).outputs) == 3000


def test_a_slow_reader_loses_no_committed_event(anywhere):
    """All committed events arrive in order without gap, however often the reader lets others run."""

    async def scenario():
        committed = []
        async for event in flood(anywhere).run(29, stream=True):
            if not event.live:
                committed.append(event)
            await asyncio.sleep(0)
        return committed

    committed = run(scenario())
    assert [event.sequence for event in committed] == list(range(1, len(committed) + 1))
    assert sum(isinstance(event, OutputYielded) for event in committed) == 3000


def test_a_run_waits_for_a_reader_that_does_not_read():
    """With a full buffer the run goes no further until something is read, however long that takes."""

    async def scenario():
        Flood.handled = 0
        stream = flood(None).run(29, stream=True)
        await anext(stream)
        for _ in range(2000):
            await asyncio.sleep(0)
        waiting = Flood.handled
        await stream.result()
        return waiting, Flood.handled

    waiting, handled = run(scenario())
    assert waiting < 15
    assert handled == 30


def test_a_call_that_is_not_streamed_does_not_wait_for_a_reader(anywhere):
    """The same run as a call: all committed events are in the result."""
    result = run(flood(anywhere).run(29))
    assert sum(isinstance(event, OutputYielded) for event in result.events) == len(result.outputs) == 3000


def test_live_events_come_at_once_and_are_not_stored(store):
    """What a handler emits is read while it waits, marked live with the last committed number."""

    class Waiting(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.emit({"half": "done"})
            await gates[0].wait()
            ctx.yield_output(text)

    gates = []
    workflow = WorkflowBuilder(name="waiting", start_executor=Waiting("w"), checkpoint_storage=store).build()

    async def scenario():
        gates.append(Gate())
        stream = workflow.run("a", stream=True, run_id="r")
        emitted = await until(stream, Emitted)
        gates[0].opened.set()
        return emitted, [event async for event in stream]

    emitted, rest = run(scenario())
    assert (emitted.data, emitted.live, emitted.executor_id) == ({"half": "done"}, True, "w")
    assert rest[0].sequence == emitted.sequence + 1


# answering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 3])
def test_a_running_turn_takes_answers_through_its_stream(world, anywhere, depth):
    """While a branch still works the question of another is answered; it is the same turn, and the join has both."""
    workflow = panel(world, anywhere, depth=depth)

    async def scenario():
        gate = world.gates["helper a?"] = Gate()
        stream = workflow.run(Note("a?"), run_id="r", stream=True)
        asked = await until(stream, RequestOpened)
        await stream.answer({asked.request_id: True})
        gate.opened.set()
        return await stream.result()

    result = run(scenario())
    assert (result.outputs, result.turn, result.status) == (["0: a? yes + helper a?"], 1, Status.IDLE)
    assert world.diary.count("clerk a? yes") == 1


def test_a_wrong_answer_to_a_running_turn_changes_nothing(world, anywhere):
    """Unknown, wrongly typed and repeated answers are errors of their own; the turn goes on and takes the right one."""
    workflow = panel(world, anywhere)

    async def scenario():
        gate = world.gates["helper a?"] = Gate()
        stream = workflow.run(Note("a?"), run_id="r", stream=True)
        asked = (await until(stream, RequestOpened)).request_id
        with pytest.raises(UnknownRequestError):
            await stream.answer({asked: True, "f" * 32: True})
        with pytest.raises(AnswerTypeError):
            await stream.answer({asked: "yes"})
        await stream.answer({asked: True})
        with pytest.raises(AlreadyAnsweredError):
            await stream.answer({asked: False})
        gate.opened.set()
        return await stream.result()

    assert run(scenario()).outputs == ["0: a? yes + helper a?"]


def test_an_answer_through_the_stream_is_saved_when_it_returns(world, store):
    """Once `answer` has returned a crash loses it no more: the head has the receipt, and the run goes on from it."""
    workflow = panel(world, store)

    async def scenario():
        world.gates["helper a?"] = Gate()
        stream = workflow.run(Note("a?"), run_id="r", stream=True)
        asked = (await until(stream, RequestOpened)).request_id
        await stream.answer({asked: True})
        pending = (await store.head("r")).header.pending
        return pending, await stream.cancel()

    pending, result = run(scenario())
    world.gates.clear()
    assert (pending, result.status) == (0, Status.CANCELLED)
    assert run(workflow.run(checkpoint=result)).outputs == ["0: a? yes + helper a?"]


def test_after_its_end_a_stream_takes_no_answers(world, anywhere):
    """The error names `run`, which takes them."""
    workflow = desk(world, anywhere)

    async def scenario():
        stream = workflow.run(Note("a?"), stream=True)
        result = await stream.result()
        answer = result.pending_requests[0].answer(True)
        with pytest.raises(StreamStateError, match="run"):
            await stream.answer([answer])
        return await workflow.run(checkpoint=result, responses=[answer])

    assert run(scenario()).outputs == ["1: a? yes"]
