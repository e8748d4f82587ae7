"""Events: which there are, when they come, and how they are numbered (section 3.11)."""

import asyncio
from typing import Never

import msgspec
import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler
from rehydrate.errors import SaveFailedError
from rehydrate.model.events import (
    Emitted,
    Event,
    InvocationStarted,
    OutputYielded,
    RequestOpened,
    RequestsKept,
    ScopeEnded,
    ScopeStarted,
    StatusChanged,
    SuperstepCompleted,
    SuperstepStarted,
    TurnStarted,
)
from tests.cases.flows import adder, asking_child, three, three_children
from tests.cases.kit import answers, bounded, failed, run, streamed


def committed(events):
    return [event for event in events if not event.live]


def numbers(events):
    return [event.sequence for event in committed(events)]


def test_committed_events_are_numbered_without_gap_over_turns(place):
    """Section 3.11: numbers go on over turns and store objects, none twice, none left out."""
    workflow = asking_child([])
    first = run(workflow, "x", run_id="r", checkpoint_storage=place.store)
    second = run(workflow, "y", checkpoint=first, on_pending="keep", checkpoint_storage=place.reopen())
    third = run(workflow, checkpoint=second, responses=answers(second, "1", "2"), checkpoint_storage=place.reopen())
    found = [*numbers(first.events), *numbers(second.events), *numbers(third.events)]
    assert found == list(range(1, len(found) + 1))
    assert place.head("r").events == len(found)


def test_committed_events_are_numbered_without_gap_over_a_failure(place):
    """Section 3.11: the failed turn and its continuation share one row of numbers."""
    error = failed(three([], broken={"two"}), 1, run_id="r", checkpoint_storage=place.store)
    result = run(three([]), checkpoint=error.result, checkpoint_storage=place.reopen())
    found = [*numbers(error.result.events), *numbers(result.events)]
    assert found == list(range(1, len(found) + 1))


def test_committed_events_are_numbered_without_gap_in_a_stream_without_a_store():
    """Section 3.11: the same where nothing is stored."""
    events = asyncio.run(streamed(three([]), 1))
    assert numbers(events) == list(range(1, len(numbers(events)) + 1))


def test_a_call_that_finds_nothing_to_do_gives_no_new_numbers(place):
    """Section 5: each open request is surfaced once, under the number of the last committed event."""
    first = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)
    again = run(asking_child([]), checkpoint=first, checkpoint_storage=place.store)
    assert {event.sequence for event in again.events} == {numbers(first.events)[-1]}
    assert [type(event) for event in again.events] == [TurnStarted, RequestOpened, StatusChanged]
    assert place.head("r").checkpoint_id == first.checkpoint_id


def test_live_events_carry_the_last_committed_number(place):
    """Section 3.11: what is streamed at once has `live=True` and no number of its own."""
    events = asyncio.run(streamed(talking(), 3, checkpoint_storage=place.store))
    last = 0
    for event in events:
        if event.live:
            assert isinstance(event, Emitted | InvocationStarted)
            assert event.sequence == last
        else:
            assert event.sequence == last + 1
            last = event.sequence
    assert [event.data for event in events if isinstance(event, Emitted)] == [0, 1, 2]


def talking():
    @executor(id="talker")
    async def talker(count: int, ctx: WorkflowContext[Never, str]) -> None:
        for number in range(count):
            await ctx.emit(number)
        await ctx.yield_output("done")

    return WorkflowBuilder("talk", talker).build()


def test_what_is_emitted_is_not_kept(place):
    """Section 2: progress is streamed and not kept: no record and no later call has it."""

    @executor(id="talker")
    async def talker(text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.emit("only-for-listeners")
        await ctx.yield_output("done")

    workflow = WorkflowBuilder("talk", talker).build()
    heard = asyncio.run(streamed(workflow, "x", run_id="r", checkpoint_storage=place.store))
    assert [event.data for event in heard if isinstance(event, Emitted)] == ["only-for-listeners"]
    puts = [put.data for commit in place.store.commits for put in commit.puts]
    assert not any(b"only-for-listeners" in data for data in puts)
    latest = {"run_id": "r", "checkpoint": "latest", "checkpoint_storage": place.store}
    again = asyncio.run(streamed(workflow, **latest))
    assert not any(isinstance(event, Emitted) for event in again)


@pytest.mark.parametrize("durability", ["superstep", "turn"])
def test_a_committed_event_is_published_after_its_commit(place, durability):
    """Section 3.11: whoever reads an event knows that the commit which reports it is done, under every durability."""

    async def read():
        given = {"run_id": "r", "checkpoint_storage": place.store, "durability": durability}
        stream = three_children([]).run("A", stream=True, **given)
        return [(event.sequence, place.store.commits[-1].header.events) async for event in stream if not event.live]

    pairs = bounded(read())
    assert [sequence for sequence, _ in pairs] == list(range(1, len(pairs) + 1))
    assert all(sequence <= saved for sequence, saved in pairs)
    assert len(pairs) == place.head("r").events == len(run(three_children([]), "A", durability="off").events)


def test_what_was_never_saved_was_never_told(place):
    """Section 3.11: with `durability="turn"` a lost turn has told its claim and what was live; numbers go on there."""
    place.store.fails_from = 2

    async def read():
        stream = talking().run(2, run_id="r", stream=True, checkpoint_storage=place.store, durability="turn")
        events = [await anext(stream) for _ in range(5)]
        with pytest.raises(SaveFailedError):
            await anext(stream)
        return events

    lost = bounded(read())
    assert [type(event) for event in lost] == [TurnStarted, SuperstepStarted, InvocationStarted, Emitted, Emitted]
    place.store.fails_from = None
    result = run(talking(), 2, run_id="r", checkpoint_storage=place.reopen(), durability="turn")
    assert [*numbers(lost), *numbers(result.events)] == [1, 2, 3, 4, 5, 6]


def test_an_answer_through_the_stream_brings_out_what_was_held_back(place):
    """Sections 3.11 and 5: with `durability="turn"` an answer is saved when it is given, and so is all before it."""

    async def read():
        gate = asyncio.Event()
        given = {"run_id": "r", "checkpoint_storage": place.store, "durability": "turn"}
        first = await three_children([]).run("A", **given)
        stream = three_children([], gate=gate).run(
            "B", checkpoint=first, on_pending="keep", stream=True, checkpoint_storage=place.store, durability="turn"
        )
        before = [await anext(stream)]
        while not (isinstance(before[-1], InvocationStarted) and before[-1].executor_id == "work"):
            before.append(await anext(stream))
        await stream.answer(answers(first, "now"))
        asked = await anext(stream)
        while not isinstance(asked, RequestOpened):
            asked = await anext(stream)
        saved = place.store.commits[-1].header
        gate.set()
        return before, asked, saved, await stream.result()

    before, asked, saved, result = bounded(read())
    assert not any(isinstance(event, SuperstepCompleted) for event in before)
    assert (asked.path, saved.status) == ("asks#2", Status.RUNNING)
    assert asked.sequence <= saved.events
    assert result.outputs == ["A asked: now", "B risked", "B worked"]


def test_events_say_where_they_come_from(place):
    """Section 3.11: all carry run id, path, executor id, superstep and activation; nested ones are in the stream."""
    store = place.store
    events = asyncio.run(streamed(asking_child([]), "x", run_id="r", checkpoint_storage=store))
    first = run(asking_child([]), run_id="r", checkpoint="latest", checkpoint_storage=store)
    given = answers(first, "y")
    events += asyncio.run(streamed(asking_child([]), checkpoint=first, responses=given, checkpoint_storage=store))
    assert {event.run_id for event in events} == {"r"}
    (asked,) = [event for event in events if isinstance(event, RequestOpened)]
    assert (asked.path, asked.executor_id, asked.superstep, asked.activation) == ("ask#1", "asker", 1, 1)
    assert (asked.data, asked.response_type) == ("x", "str")
    assert asked.request_id == first.pending_requests[0].request_id
    (yielded,) = [event for event in events if isinstance(event, OutputYielded)]
    assert (yielded.path, yielded.executor_id, yielded.superstep, yielded.data) == ("", "told", 3, "X=Y")
    handled = [(e.path, e.executor_id, e.activation) for e in events if isinstance(e, InvocationStarted)]
    assert handled == [("ask#1", "asker", 1), ("ask#1", "asker", 2), ("ask#1", "last", 1), ("", "told", 1)]


def test_events_of_what_was_recorded_before_say_the_same(place):
    """Section 3.11: a request that is surfaced again, and an output given back, name what they named at first."""
    given = {"checkpoint_storage": place.store, "idempotency_key": "k"}
    first = run(asking_child([]), "x", **given)
    again = run(asking_child([]), checkpoint=first, checkpoint_storage=place.store)
    told, repeated = (
        [msgspec.structs.replace(event, sequence=0) for event in result.events if isinstance(event, RequestOpened)]
        for result in (first, again)
    )
    assert told == repeated
    outputs = [
        [msgspec.structs.replace(event, sequence=0) for event in result.events if isinstance(event, OutputYielded)]
        for result in (run(adder_flow(), 1, **given), run(adder_flow(), 1, **given))
    ]
    assert outputs[0] == outputs[1]
    assert [(event.executor_id, event.superstep, event.activation) for event in outputs[0]] == [("adds", 1, 1)]


def test_what_comes_out_of_a_scope_names_the_node_and_the_scope(place):
    """Section 3.11: a scope's events, and an output that it gives out, name the node that runs it and its number."""
    result = run(three_children([]), "A", checkpoint_storage=place.store)
    found = {
        (type(event).__name__, event.path, event.executor_id, event.superstep, event.activation)
        for event in result.events
    }
    assert {
        ("ScopeStarted", "long#1", "long", 2, 1),
        ("ScopeEnded", "long#1", "long", 2, 1),
        ("OutputYielded", "", "long", 2, 1),
        ("RequestOpened", "asks#1", "question", 1, 1),
    } <= found


def test_a_turn_begins_and_ends_once(place):
    """Section 5: the caller sees one started event and one final status, also on a restore with input."""
    first = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)
    second = run(
        asking_child([]), "y", checkpoint=first, responses=answers(first, "z"), checkpoint_storage=place.reopen()
    )
    for result, turn in ((first, 1), (second, 2)):
        started = [event for event in result.events if isinstance(event, TurnStarted)]
        ended = [event for event in result.events if isinstance(event, StatusChanged)]
        assert [(event.turn, event.continuation) for event in started] == [(turn, False)]
        assert [event.status for event in ended] == [Status.IDLE_WITH_PENDING_REQUESTS]
        assert (result.events[0], result.events[-1]) == (started[0], ended[0])


def test_the_events_of_a_scope_stand_in_order(place):
    """Section 3.11: a scope begins, its supersteps begin and are completed by turns, and it ends."""
    first = run(asking_child([]), "x", checkpoint_storage=place.store)
    second = run(asking_child([]), checkpoint=first, responses=answers(first, "y"), checkpoint_storage=place.store)
    inner = [e for e in committed([*first.events, *second.events]) if e.path == "ask#1"]
    assert [(type(event), event.superstep) for event in inner if not isinstance(event, ScopeStarted | ScopeEnded)] == [
        (SuperstepStarted, 1),
        (RequestOpened, 1),
        (SuperstepCompleted, 1),
        (SuperstepStarted, 2),
        (SuperstepCompleted, 2),
        (SuperstepStarted, 3),
        (SuperstepCompleted, 3),
    ]
    assert isinstance(inner[0], ScopeStarted)
    assert isinstance(inner[-1], ScopeEnded)


def test_a_message_that_leaves_requests_open_says_so(place):
    """Section 2: without `on_pending` the kept requests are named in an event."""
    first = run(asking_child([]), "x", checkpoint_storage=place.store)
    second = run(asking_child([]), "y", checkpoint=first, checkpoint_storage=place.store)
    kept = [event for event in second.events if isinstance(event, RequestsKept)]
    assert [event.request_ids for event in kept] == [(first.pending_requests[0].request_id,)]


@pytest.mark.parametrize("kind", Event.__args__)
def test_each_kind_of_event_is_a_frozen_class_of_its_own(kind):
    """Section 3.11: no event can be changed by its reader."""
    needed = {field.name: None for field in msgspec.structs.fields(kind) if field.required}
    event = kind(**needed)
    with pytest.raises(AttributeError):
        event.run_id = "other"


def test_a_slow_reader_of_many_events_gets_every_committed_one(place):
    """Section 3.11: a full stream makes committed events wait and drops live ones only; the run still ends."""

    class Floods(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[int, int]) -> None:
            for each in range(3000):
                await ctx.emit(each)
            for each in range(1500):
                await ctx.yield_output(each)
            if number:
                await ctx.send_message(number - 1)

    async def read():
        floods = Floods("floods")
        workflow = WorkflowBuilder("flood", floods).add_edge(floods, floods).build()
        events = []
        async for event in workflow.run(2, stream=True, checkpoint_storage=place.store):
            events.append(event)
            await asyncio.sleep(0)
        return events

    events = bounded(read())
    assert numbers(events) == list(range(1, len(numbers(events)) + 1))
    assert sum(isinstance(event, OutputYielded) for event in events) == 4500
    assert 0 < sum(isinstance(event, Emitted) for event in events) < 9000
    assert isinstance(events[-1], StatusChanged)


def test_events_of_scopes_that_run_side_by_side_keep_their_own_order(place):
    """Section 3: how scopes interleave may vary, the order inside each does not."""

    def built(order):
        finished = {number: asyncio.Event() for number in order}

        @executor(id="s")
        async def s(start: int, ctx: WorkflowContext[int]) -> None:
            for number in sorted(order):
                await ctx.send_message(number)

        @executor(id="first")
        async def first(number: int) -> int:
            for other in order[: order.index(number)]:
                await finished[other].wait()
            return number

        @executor(id="second")
        async def second(number: int) -> int:
            finished[number].set()
            return number

        child = WorkflowBuilder("child", first).add_edge(first, second).build()
        return WorkflowBuilder("parent", s).add_edge(s, WorkflowExecutor(child, id="child")).build()

    found = []
    for order in ((1, 2, 3), (3, 1, 2)):
        result = run(built(order), 0, checkpoint_storage=place.store)
        by_scope = {}
        for event in committed(result.events):
            by_scope.setdefault(event.path, []).append((type(event).__name__, event.executor_id, event.superstep))
        found.append((by_scope, result.outputs))
    assert found[0] == found[1]
    assert found[0][1] == [1, 2, 3]
    assert set(found[0][0]) == {"", "child#1", "child#2", "child#3"}


def test_a_stream_that_joins_nothing_ends_after_its_last_event(place):
    """Section 2: in a stream the last event comes first, then the iteration ends, and the result is there."""

    async def read():
        stream = adder_flow().run(1, stream=True, checkpoint_storage=place.store)
        events = [event async for event in stream]
        return events, await stream.result()

    events, result = asyncio.run(read())
    assert isinstance(events[-1], StatusChanged)
    assert (result.status, result.outputs) == (Status.IDLE, [2])


def adder_flow():
    return WorkflowBuilder("adds", adder("adds", 1, [])).build()
