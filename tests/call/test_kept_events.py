"""Events that a store keeps: read back as they were told, from a number on, and on from there while the run goes on."""

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, executor, handler
from rehydrate.errors import (
    EventsNotKeptError,
    ForeignCheckpointError,
    NoStoreError,
    RunNotFoundError,
    StreamStateError,
    WrongCallError,
)
from rehydrate.model.events import Emitted, EventsDropped, InvocationStarted, OutputYielded, StatusChanged, TurnStarted
from tests.call.desk import Gate, Note, desk
from tests.call.process import crash_in_new_process
from tests.call.stops import interrupted
from tests.call.stores import BreakableMemory, BreakableSqlite

run = asyncio.run


class Noting:
    """A store that notes the commits that it took."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.commits = []

    async def commit(self, commit):
        await super().commit(commit)
        self.commits.append(commit)


class Memory(Noting, BreakableMemory):
    pass


class Sqlite(Noting, BreakableSqlite):
    pass


class Stores:
    """Makes stores on one place; in memory it is one object, which is told whether it keeps events each time."""

    def __init__(self, kind, path):
        self.kind, self.path = kind, path
        self.memory = Memory()
        self.made = [self.memory]

    def __call__(self, *, keep_events=True):
        if self.kind == "memory":
            self.memory._keeps_events = keep_events
            return self.memory
        self.made.append(Sqlite(self.path, keep_events=keep_events))
        return self.made[-1]


@pytest.fixture(params=["memory", "sqlite"])
def stores(request, tmp_path):
    """Both stores that hold bytes."""
    made = Stores(request.param, tmp_path / "runs.db")
    yield made
    for store in made.made:
        asyncio.run(store.close())


async def read(events):
    return [event async for event in events]


def told(workflow, run_id="r", **options):
    """Read all events of a run from its store."""
    return run(read(workflow.events(run_id, **options)))


def committed(events):
    return [event for event in events if not event.live]


# what is kept ----------------------------------------------------------------------------------------------------


def test_what_was_told_can_be_read_again(world, stores):
    """Three turns of a nested run, as a stream, as a call and with a failure, by another store object: all the same."""
    workflow = desk(world, stores(), depth=3)

    async def first():
        return await read(workflow.run(Note("a?"), run_id="r", stream=True))

    seen = run(first())
    paused = run(workflow.run(checkpoint="latest", run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=paused, responses=[paused.pending_requests[0].answer(True)]))
    world.faults.add("clerk c")
    with contextlib.suppress(Exception):
        run(workflow.run(Note("c"), checkpoint=second))
    world.faults.clear()
    third = run(workflow.run(checkpoint="latest", run_id="r"))
    kept = told(desk(world, stores(), depth=3))
    assert kept[: len(committed(seen))] == committed(seen)
    assert [event for event in kept if event.sequence in {e.sequence for e in second.events}] == list(second.events)
    assert kept[-len(third.events) :] == list(third.events)
    assert [event.sequence for event in kept] == list(range(1, len(kept) + 1))
    assert [event.data for event in kept if isinstance(event, OutputYielded)] == ["1: a? yes", "2: b", "3: c"]
    assert sum(type(event).__name__ == "InvocationFailed" for event in kept) == 1


@pytest.mark.parametrize("after", [0, 1, 7, 11])
def test_reading_goes_on_from_a_number(world, stores, after):
    """A reader that has N events gets all from N + 1 on, and none twice."""
    workflow = desk(world, stores(), depth=2)
    run(workflow.run(Note("a"), run_id="r"))
    everything = told(workflow)
    assert len(everything) == 11
    assert told(workflow, after=after) == everything[after:]
    session = workflow.session(run_id="r")
    assert run(read(session.events(after=after))) == everything[after:]


def test_more_events_than_a_page_are_read_without_gap(stores):
    """Two thousand outputs come in order."""

    @executor(id="many")
    async def many(count: int, ctx: WorkflowContext[Never, int]) -> None:
        for number in range(count):
            ctx.yield_output(number)

    workflow = WorkflowBuilder(name="many", start_executor=many, checkpoint_storage=stores()).build()
    run(workflow.run(2000, run_id="r"))
    kept = told(workflow)
    assert [event.data for event in kept if isinstance(event, OutputYielded)] == list(range(2000))
    assert [event.sequence for event in kept] == list(range(1, len(kept) + 1))


def test_a_store_that_keeps_none_is_given_none(world, stores):
    """Without `keep_events` no commit carries any, so that a save costs nothing more."""
    store = stores(keep_events=False)
    run(desk(world, store).run(Note("a"), run_id="r"))
    assert [commit.events for commit in store.commits] == [()] * 3
    kept = stores()
    run(desk(world, kept).run(Note("b"), checkpoint="latest", run_id="r"))
    assert [len(commit.events) for commit in kept.commits[-3:]] == [2, 2, 3]


def test_a_process_that_is_lost_leaves_no_gap(world, stores):
    """Events of a lost process are those of its commits; the continuation's have the next numbers."""
    store = stores()
    workflow = desk(world, store)
    interrupted(store, 2, workflow, Note("a"), run_id="r")
    before = told(workflow)
    result = run(workflow.run(Note("a"), run_id="r"))
    kept = told(workflow)
    assert kept == [*before, *result.events]
    assert [event.sequence for event in kept] == list(range(1, len(kept) + 1))
    assert [event.turn for event in kept if isinstance(event, TurnStarted)] == [1, 1]


def test_a_process_that_died_has_told_what_it_had_committed(world, tmp_path):
    """A process that kills itself keeps its events in the file; another one reads on and goes on."""
    store = Sqlite(tmp_path / "runs.db", keep_events=True)
    crash_in_new_process(tmp_path, text="a", run_id="r", crashes=["clerk a"], keep_events=True)
    workflow = desk(world, store)
    before = told(workflow)
    assert [type(event).__name__ for event in before] == [
        "TurnStarted",
        "SuperstepStarted",
        "SuperstepCompleted",
        "SuperstepStarted",
    ]
    result = run(workflow.run(Note("a"), run_id="r"))
    assert told(workflow, after=before[-1].sequence) == list(result.events)
    assert result.events[0].sequence == 5
    run(store.close())


def test_a_fork_starts_anew_and_a_deleted_run_leaves_none(world, stores):
    """A fork's numbers begin at 1 and its source's events stay with the source; a deleted run has no events."""
    store = stores()
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    forked = run(workflow.run(Note("b"), checkpoint=first, fork=True, run_id="f"))
    assert told(workflow, "f") == list(forked.events)
    assert forked.events[0].sequence == 1
    assert told(workflow) == list(first.events)
    run(store.delete("r"))
    assert run(store.events("r")) == []
    with pytest.raises(RunNotFoundError):
        told(workflow)
    assert told(workflow, "f") == list(forked.events)


# what is not kept ------------------------------------------------------------------------------------------------


def test_events_that_were_not_kept_are_an_error_that_names_them(world, stores):
    """A reader is never given a later event instead: of three turns the first and third were kept."""
    first = run(desk(world, stores()).run(Note("a"), run_id="r"))
    second = run(desk(world, stores(keep_events=False)).run(Note("b"), checkpoint=first))
    workflow = desk(world, stores())
    third = run(workflow.run(Note("c"), checkpoint=second))
    ends = [result.events[-1].sequence for result in (first, second, third)]
    seen = []

    async def read_all():
        async for event in workflow.events("r"):
            seen.append(event)  # noqa: PERF401  (what came before the error is looked at)

    with pytest.raises(EventsNotKeptError, match=r"keep_events=True") as error:
        run(read_all())
    assert seen == list(first.events)
    assert (error.value.run_id, error.value.first, error.value.last) == ("r", ends[0] + 1, ends[1])
    assert told(workflow, after=ends[1]) == list(third.events)


def test_a_store_that_keeps_none_says_so(world, stores):
    """The error names all events of the run; behind the last one there is nothing to miss."""
    workflow = desk(world, stores(keep_events=False))
    result = run(workflow.run(Note("a"), run_id="r"))
    last = result.events[-1].sequence
    with pytest.raises(EventsNotKeptError, match=f"events 1 to {last} of run 'r'"):
        told(workflow)
    assert told(workflow, after=last) == []


def test_wrong_calls_for_events_are_errors_of_their_own(world, stores):
    """No store, no run, another workflow's run, a number that is none or that the run has not come to."""
    workflow = desk(world, stores())
    result = run(workflow.run(Note("a"), run_id="r"))
    with pytest.raises(NoStoreError):
        desk(world).events("r")
    with pytest.raises(WrongCallError, match="checkpoint_storage"):
        desk(world).events("r", checkpoint_storage="runs.db")
    with pytest.raises(RunNotFoundError):
        told(workflow, "unknown")
    with pytest.raises(ForeignCheckpointError, match="'other'"):
        told(desk(world, stores(), name="other"))
    with pytest.raises(WrongCallError, match="after"):
        told(workflow, after=-1)
    with pytest.raises(WrongCallError, match=f"last event of run 'r' is number {result.events[-1].sequence}"):
        told(workflow, after=result.events[-1].sequence + 1)
    with pytest.raises(WrongCallError, match="no run yet"):
        workflow.session().events()


# a run that goes on ----------------------------------------------------------------------------------------------


class Waiting(Executor):
    """Says how far it is, waits at its gate and yields."""

    gates: list[Gate]

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.emit("before")
        await ctx.resources["gate"].wait()
        ctx.emit("after")
        ctx.yield_output(text)


def waiting(store):
    return WorkflowBuilder(name="waiting", start_executor=Waiting("w"), checkpoint_storage=store).build()


@pytest.mark.parametrize("stream", [False, True])
def test_a_reader_that_comes_late_gets_the_past_and_then_the_present(stores, stream):
    """While the run waits, what was committed is there at once; then live and committed events come to the end."""
    workflow = waiting(stores())

    async def scenario():
        gate = Gate()
        options = {"run_id": "r", "resources": {"gate": gate}}
        call = workflow.run("a", stream=True, **options).result() if stream else workflow.run("a", **options)
        running = asyncio.create_task(call)
        await gate.entered.wait()
        events = workflow.events("r")
        past = [await anext(events), await anext(events)]
        more = asyncio.create_task(anext(events))
        for _ in range(200):
            await asyncio.sleep(0)
        assert not more.done()
        gate.opened.set()
        present = [await more, *await read(events)]
        return past, present, (await running).status

    past, present, status = run(scenario())
    assert [type(event).__name__ for event in past] == ["TurnStarted", "SuperstepStarted"]
    assert [getattr(event, "data", None) for event in present][:2] == ["after", "a"]
    assert [(type(event), event.sequence, event.live) for event in present] == [
        (Emitted, 2, True),
        (OutputYielded, 3, False),
        (type(present[2]), 4, False),
        (StatusChanged, 5, False),
    ]
    assert status is present[-1].status is Status.IDLE
    assert {event.run_id for event in present} == {"r"}


def test_a_follower_needs_not_know_what_is_emitted(stores):
    """Another object of the workflow, as another module may have built it, follows the run and can open the copy."""

    @dataclass
    class Progress:
        done: int

    def built():
        @executor(id="tells")
        async def tells(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.resources["gate"].wait()
            ctx.emit(Progress(1))
            ctx.yield_output(text)

        return WorkflowBuilder(name="tells", start_executor=tells, checkpoint_storage=stores()).build()

    async def scenario():
        gate = Gate()
        running = asyncio.create_task(built().run("a", run_id="r", resources={"gate": gate}))
        await gate.entered.wait()
        events = built().events("r")
        first = [await anext(events), await anext(events)]
        more = asyncio.create_task(anext(events))
        for _ in range(200):
            await asyncio.sleep(0)
        gate.opened.set()
        await running
        return [*first, await more, *await read(events)]

    assert [event.data for event in run(scenario()) if isinstance(event, Emitted)] == [Progress(1)]


def test_live_events_stand_behind_the_committed_one_that_they_name(stores):
    """A follower that is pages behind gets what is told meanwhile in its place, after all that was committed before."""

    @executor(id="many")
    async def many(count: int, ctx: WorkflowContext[str, int]) -> None:
        for number in range(count):
            ctx.yield_output(number)
        ctx.send_message("go")

    waits = Waiting("w")
    builder = WorkflowBuilder(name="behind", start_executor=many, checkpoint_storage=stores())
    workflow = builder.add_edge(many, waits).build()

    async def scenario():
        gate = Gate()
        running = asyncio.create_task(workflow.run(250, run_id="r", resources={"gate": gate}))
        await gate.entered.wait()
        events = workflow.events("r")
        first = await anext(events)
        gate.opened.set()
        await running
        return [first, *await read(events)]

    last, found = 0, []
    for event in run(scenario()):
        found += [event.data] if event.live else []
        assert event.sequence == (last if event.live else last + 1)
        last = event.sequence
    assert (last, found) == (257, ["after"])


def test_a_stream_and_its_followers_are_told_the_same(world, stores):
    """Two followers get every committed event of the run that a third reads as a stream."""
    workflow = desk(world, stores(), depth=2)

    async def scenario():
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        first = await anext(stream)
        followers = [asyncio.create_task(read(workflow.events("r"))) for _ in range(2)]
        return [first, *await read(stream)], *await asyncio.gather(*followers)

    streamed, *followed = run(scenario())
    assert [committed(events) for events in followed] == [committed(streamed)] * 2


def test_a_follower_gets_answers_and_goes_on_into_the_end_of_the_turn(world, stores):
    """It ends where the run rests, and reads on from there in the next turn."""
    workflow = desk(world, stores())
    paused = run(workflow.run(Note("a?"), run_id="r"))
    first = told(workflow)
    assert first[-1].status is Status.IDLE_WITH_PENDING_REQUESTS
    run(workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)]))
    second = told(workflow, after=first[-1].sequence)
    assert [event.data for event in second if isinstance(event, OutputYielded)] == ["1: a? yes"]


def test_no_run_waits_for_a_slow_follower(stores):
    """The run ends though nobody reads on; live events are dropped and told, committed ones come from the store."""

    @executor(id="floods")
    async def floods(count: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.resources["gate"].wait()
        for number in range(count):
            ctx.emit(number)
            ctx.yield_output(number)

    workflow = WorkflowBuilder(name="floods", start_executor=floods, checkpoint_storage=stores()).build()

    async def scenario():
        gate = Gate()
        running = asyncio.create_task(workflow.run(3000, run_id="r", resources={"gate": gate}))
        await gate.entered.wait()
        events = workflow.events("r")
        first = [await anext(events), await anext(events)]
        third = asyncio.create_task(anext(events))
        for _ in range(200):
            await asyncio.sleep(0)
        gate.opened.set()
        await running
        return [*first, await third, *await read(events)], events.dropped

    events, dropped = run(scenario())
    emitted = [event.data for event in events if isinstance(event, Emitted)]
    assert [event.data for event in events if isinstance(event, OutputYielded)] == list(range(3000))
    assert emitted == list(range(len(emitted)))
    assert dropped == 3000 - len(emitted) > 0
    assert sum(event.count for event in events if isinstance(event, EventsDropped)) in {0, dropped}


def test_a_run_that_nobody_follows_any_more_makes_no_live_events(stores):
    """A follower that was let go costs the run nothing: its channel says that nobody hears it."""
    workflow = waiting(stores())
    heard = []

    class Asks(Waiting):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.resources["gate"].wait()
            for _ in range(2):
                heard.append(ctx._around.channel.heard)
                ctx.emit("x")

    workflow = WorkflowBuilder(name="waiting", start_executor=Asks("w"), checkpoint_storage=stores()).build()

    async def scenario():
        gate = Gate()
        running = asyncio.create_task(workflow.run("a", run_id="r", resources={"gate": gate}))
        await gate.entered.wait()
        events = workflow.events("r")
        for _ in range(2):
            await anext(events)
        more = asyncio.create_task(anext(events))
        for _ in range(200):
            await asyncio.sleep(0)
        more.cancel()
        await asyncio.wait([more])
        del events, more
        gate.opened.set()
        await running

    run(scenario())
    assert heard == [True, False]


def test_a_run_of_another_thread_can_be_followed(stores):
    """Its loop is another one; events, live ones too, come over, and the end is seen."""
    workflow = waiting(stores())
    begun, opened = threading.Event(), threading.Event()

    class Crossing:
        async def wait(self):
            begun.set()
            await asyncio.to_thread(opened.wait)

    def drive():
        asyncio.run(workflow.run("a", run_id="r", resources={"gate": Crossing()}))

    async def follow():
        events = workflow.events("r")
        found = [await anext(events), await anext(events)]
        more = asyncio.create_task(anext(events))
        await asyncio.to_thread(begun.wait)
        for _ in range(2000):
            await asyncio.sleep(0)
        opened.set()
        return [*found, await more, *await read(events)]

    thread = threading.Thread(target=drive)
    thread.start()
    begun.wait()
    events = run(follow())
    thread.join()
    assert [type(event) for event in committed(events)][-1] is StatusChanged
    assert [event.sequence for event in committed(events)] == [1, 2, 3, 4, 5]
    assert "after" in [event.data for event in events if isinstance(event, Emitted)]
    assert not any(isinstance(event, InvocationStarted) for event in events)


def test_a_second_reader_of_the_same_events_is_refused(stores):
    """Two tasks that read on at once would each get a part."""
    workflow = waiting(stores())

    async def scenario():
        gate = Gate()
        running = asyncio.create_task(workflow.run("a", run_id="r", resources={"gate": gate}))
        await gate.entered.wait()
        events = workflow.events("r")
        first = asyncio.create_task(read(events))
        for _ in range(200):
            await asyncio.sleep(0)
        with pytest.raises(StreamStateError, match="another task"):
            await anext(events)
        gate.opened.set()
        await running
        return await first

    assert isinstance(run(scenario())[-1], StatusChanged)
