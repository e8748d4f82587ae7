"""The six of the one call: what `run(message, checkpoint=...)` promises, each under a name that says so."""

import asyncio

import pytest

from rehydrate import RunStream, Status, WorkflowCheckpoint, WorkflowRunResult
from rehydrate.model.events import Event, StatusChanged, SuperstepStarted, TurnStarted
from tests.call.desk import Note, World, desk, solo
from tests.call.process import in_new_process
from tests.call.stores import everything

run = asyncio.run


def shape(events: list[Event]) -> list[tuple[object, ...]]:
    """What stays the same of the committed events when the run has another id."""
    return [
        (type(e).__name__, e.path, e.executor_id, e.superstep, e.activation, e.sequence) for e in events if not e.live
    ]


async def read(stream: RunStream) -> tuple[list[Event], WorkflowRunResult]:
    """Read a stream to its end."""
    return [event async for event in stream], await stream.result()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_1_checkpoint_and_new_input_are_accepted_in_one_call(world, anywhere, depth):
    """One call restores a paused run, takes an answer and a new message, and returns one response with both outputs."""
    workflow = desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a?"), run_id="r"))
    answer = first.pending_requests[0].answer(True)
    second = run(workflow.run(Note("b"), checkpoint=first, responses=[answer]))
    assert second.outputs == ["1: a? yes", "2: b"]
    assert (second.run_id, second.turn, second.status) == ("r", 2, Status.IDLE)
    assert second.pending_requests == ()
    assert sorted(world.diary) == ["clerk a?", "clerk a? yes", "clerk b", "intake a?", "intake b"]


def test_1_answer_and_new_message_are_one_commit(world, store):
    """The first checkpoint of the turn holds the answer taken and the message, before anything has run."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a?"), run_id="r"))
    store.saves_left = 1
    world.diary.clear()
    with pytest.raises(Exception, match="no space left"):
        run(workflow.run(Note("b"), checkpoint=first, responses=[first.pending_requests[0].answer(True)]))
    store.saves_left = None
    newest, before, *_ = run(store.history("r"))
    assert before.checkpoint_id == first.checkpoint_id
    assert (newest.turn, newest.pending, newest.status) == (2, 0, Status.RUNNING)
    taken_up = run(workflow.run(checkpoint=newest.checkpoint_id))
    assert taken_up.outputs == ["1: a? yes", "2: b"]


def test_2_restoration_comes_before_the_input_is_processed(world, anywhere):
    """Objects that never saw the run restore it from bytes, and the handler of the new message sees what it held."""
    first = run(desk(World(), anywhere).run(Note("a?,b"), run_id="r"))
    kept = WorkflowCheckpoint.from_bytes(first.checkpoint.to_bytes())
    second = run(desk(world, anywhere).run(Note("c"), checkpoint=kept, on_pending="keep"))
    assert second.outputs == ["2: c"]
    assert dict(second.checkpoint.state) == {"heard": 2, "seen": ["a?,b", "c"]}
    assert [request.data.text for request in second.pending_requests] == ["a?"]
    assert world.diary == ["intake c", "clerk c"]


def test_2_the_caller_sees_one_lifecycle(world, anywhere):
    """One started event comes first, one status last, the numbers go on, and nothing of the hydration is visible."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first))
    kinds = [type(event) for event in second.events]
    assert (kinds[0], kinds[-1]) == (TurnStarted, StatusChanged)
    assert (kinds.count(TurnStarted), kinds.count(StatusChanged)) == (1, 1)
    assert [e.superstep for e in second.events if isinstance(e, SuperstepStarted)] == [3, 4]
    committed = [event.sequence for event in (*first.events, *second.events) if not event.live]
    assert committed == list(range(1, len(committed) + 1))


@pytest.mark.parametrize("depth", [1, 3])
def test_3_two_steps_give_the_same_result_as_one_call(world, anywhere, depth):
    """Restoring first and sending the message with what came back ends as the one call does."""
    workflow = desk(world, anywhere, depth=depth)
    paused = [run(workflow.run(Note("a?"), run_id=run_id)) for run_id in ("one", "two")]
    answers = [{before.pending_requests[0].request_id: True} for before in paused]
    one = run(workflow.run(Note("b"), checkpoint=paused[0], responses=answers[0]))
    restored = run(workflow.run(checkpoint=paused[1]))
    assert restored.checkpoint_id == paused[1].checkpoint_id
    two = run(workflow.run(Note("b"), checkpoint=restored, responses=answers[1]))
    assert one.outputs == two.outputs == ["1: a? yes", "2: b"]
    assert (one.status, one.turn) == (two.status, two.turn) == (Status.IDLE, 2)
    assert one.checkpoint.state == two.checkpoint.state
    assert shape(one.events) == shape(two.events)


def test_4_streaming_gives_the_events_and_the_result_of_the_call(world, anywhere):
    """The same input as a call and as a stream gives the same committed events in order and the same result."""
    workflow = desk(world, anywhere, depth=2)
    paused = [run(workflow.run(Note("a?"), run_id=run_id)) for run_id in ("one", "two")]
    answers = [{before.pending_requests[0].request_id: True} for before in paused]
    called = run(workflow.run(Note("b?"), checkpoint=paused[0], responses=answers[0]))

    async def streamed() -> tuple[list[Event], WorkflowRunResult]:
        return await read(workflow.run(Note("b?"), checkpoint=paused[1], responses=answers[1], stream=True))

    events, result = run(streamed())
    assert called.outputs == result.outputs == ["1: a? yes"]
    assert shape(list(called.events)) == shape(events)
    assert called.status is result.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert [r.data for r in called.pending_requests] == [r.data for r in result.pending_requests]
    assert isinstance(events[-1], StatusChanged)


def test_4_a_stream_starts_nothing_before_its_first_await(world, store):
    """Making a stream or a coroutine and dropping it leaves no trace."""

    async def scenario() -> None:
        workflow = desk(world, store)
        workflow.run(Note("a"), run_id="r", stream=True)
        workflow.run(Note("a"), run_id="r").close()
        await asyncio.sleep(0)

    run(scenario())
    assert world.diary == []
    assert run(everything(store)) == []


@pytest.mark.parametrize("depth", [1, 2])
def test_6_answers_come_before_the_message(world, anywhere, depth):
    """At one executor the answer is handled before the message of the same call."""
    workflow = solo(world, anywhere) if depth == 1 else desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a?"), run_id="r"))
    world.diary.clear()
    run(workflow.run(Note("b"), checkpoint=first, responses=[first.pending_requests[0].answer(False)]))
    clerk = [entry for entry in world.diary if entry.startswith("clerk")]
    assert clerk == ["clerk a? no", "clerk b"]


def test_6_the_documented_example_runs_over_two_processes(tmp_path):
    """The example of the first page: a claim pauses; days later another process answers and brings a new claim."""
    module = "tests.call.documented_example"
    assert in_new_process(tmp_path, module, "first") == {"status": "IDLE_WITH_PENDING_REQUESTS", "outputs": []}
    assert in_new_process(tmp_path, module, "second") == {"status": "IDLE", "outputs": ["c-1: paid", "c-2: paid"]}
