"""Live events: copies that nobody shares, dropped and counted where a reader is slow, and the same whoever reads."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Never

import pytest

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, executor, handler
from rehydrate.errors import NotStorableError, RunFailedError, StreamStateError
from rehydrate.model.events import Emitted, EventsDropped, InvocationStarted, OutputYielded, StatusChanged
from tests.call.desk import Gate

run = asyncio.run


async def read(stream):
    return [event async for event in stream]


@dataclass
class Progress:
    """A class that no handler names and nobody has registered."""

    done: int
    notes: list[str] = field(default_factory=list)


def talker(tell, store=None):
    """Make one executor that does what it is told with its context and then yields `done`."""

    @executor(id="talker")
    async def talk(text: str, ctx: WorkflowContext[Never, object]) -> None:
        await tell(ctx)
        ctx.yield_output("done")

    return WorkflowBuilder(name="talk", start_executor=talk, checkpoint_storage=store).build()


# what is emitted -------------------------------------------------------------------------------------------------


def test_a_reader_shares_nothing_with_the_handler(anywhere):
    """What either of them changes later, the other does not see; the class needs no registration."""
    mine = Progress(1, ["started"])
    gate = []

    async def tell(ctx):
        ctx.emit(mine)
        mine.notes.append("changed by the handler")
        await gate[0].wait()

    async def scenario():
        gate.append(Gate())
        async for event in talker(tell, anywhere).run("a", stream=True):
            if isinstance(event, Emitted):
                theirs = event.data
                seen = Progress(theirs.done, [*theirs.notes])
                theirs.notes.append("changed by the reader")
                gate[0].opened.set()
        return seen, theirs

    seen, theirs = run(scenario())
    assert seen == Progress(1, ["started"])
    assert type(theirs) is Progress
    assert mine.notes == ["started", "changed by the handler"]


def test_emitting_a_class_does_not_make_it_storable(anywhere):
    """The registry of what is stored stays closed: the same value is refused as an output afterwards."""

    async def tell(ctx):
        ctx.emit([Progress(1)])
        ctx.yield_output(Progress(2))

    with pytest.raises(RunFailedError) as failed:
        run(talker(tell, anywhere).run("a"))
    assert isinstance(failed.value.__cause__, NotStorableError)
    assert "an output" in str(failed.value.__cause__)


@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_copied_is_refused_at_the_line(anywhere, stream):
    """Whether anybody reads makes no difference: a lock is refused, and the error names what it was to be."""
    refused = []

    async def tell(ctx):
        try:
            ctx.emit({"lock": threading.Lock()})
        except NotStorableError as error:
            refused.append(str(error))

    async def scenario():
        workflow = talker(tell, anywhere)
        return await (workflow.run("a", stream=True).result() if stream else workflow.run("a"))

    assert run(scenario()).outputs == ["done"]
    assert len(refused) == 1
    assert "what is emitted" in refused[0]
    assert "lock" in refused[0]


def test_two_classes_of_one_name_are_told_apart_by_an_error(anywhere):
    """A second class of a name that is taken is refused at the line and not taken for the first one."""

    def other():
        @dataclass
        class Progress:
            other: str

        Progress.__qualname__ = "Progress"
        return Progress("x")

    async def tell(ctx):
        ctx.emit(Progress(1))
        ctx.emit(other())

    with pytest.raises(RunFailedError, match="Progress"):
        run(talker(tell, anywhere).run("a"))


def test_a_plain_handler_emits_from_its_thread(anywhere):
    """What a thread emits comes in its order, copied, before the events of the commit that ends its superstep."""

    class Thread(Executor):
        @handler
        def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            for number in range(50):
                ctx.emit(Progress(number))
            ctx.yield_output("done")

    workflow = WorkflowBuilder(name="thread", start_executor=Thread("t"), checkpoint_storage=anywhere).build()
    events = run(read(workflow.run("a", stream=True)))
    emitted = [event for event in events if isinstance(event, Emitted)]
    assert [event.data for event in emitted] == [Progress(number) for number in range(50)]
    (output,) = [event for event in events if isinstance(event, OutputYielded)]
    assert events.index(emitted[-1]) < events.index(output)
    assert {(e.run_id, e.path, e.executor_id, e.superstep, e.activation, e.live) for e in emitted} == {
        (output.run_id, "", "t", 1, 1, True)
    }


# readers that are slow, or two -----------------------------------------------------------------------------------


def test_dropped_live_events_are_counted_and_told_in_their_place(anywhere):
    """Of 3,000 the first 1,024 less what stood before them come; the number of the others is told before the end."""

    async def tell(ctx):
        for number in range(3000):
            ctx.emit(number)

    async def scenario():
        stream = talker(tell, anywhere).run("a", stream=True)
        assert stream.dropped == 0
        first = await anext(stream)
        events = [first, *await read(stream)]
        return events, stream.dropped

    events, dropped = run(scenario())
    emitted = [event.data for event in events if isinstance(event, Emitted)]
    assert emitted == list(range(len(emitted)))
    assert len(emitted) + dropped == 3000
    (told,) = [event for event in events if isinstance(event, EventsDropped)]
    assert (told.count, told.live) == (dropped, True)
    place = events.index(told)
    assert events[place - 1].data == emitted[-1]
    assert told.sequence == events[place - 1].sequence == events[place + 1].sequence - 1
    assert isinstance(events[-1], StatusChanged)
    committed = [event.sequence for event in events if not event.live]
    assert committed == list(range(1, len(committed) + 1))


def test_a_second_reader_of_a_stream_is_refused(anywhere):
    """Two tasks that wait for one stream would each get a part: the second is told so, the first reads on."""
    gate = []

    async def tell(ctx):
        await gate[0].wait()

    async def scenario():
        gate.append(Gate())
        stream = talker(tell, anywhere).run("a", stream=True)
        first = asyncio.create_task(read(stream))
        await gate[0].entered.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        with pytest.raises(StreamStateError, match="another task"):
            await anext(stream)
        gate[0].opened.set()
        return await first

    assert isinstance(run(scenario())[-1], StatusChanged)


def test_a_call_that_is_not_streamed_has_no_live_events(anywhere):
    """`result.events` holds committed events only."""

    async def tell(ctx):
        ctx.emit("unheard")

    events = run(talker(tell, anywhere).run("a")).events
    assert events
    assert not any(isinstance(event, Emitted | InvocationStarted) or event.live for event in events)
