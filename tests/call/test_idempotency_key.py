"""`idempotency_key`: a turn happens once, and whoever asks again with the key gets what it gave."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, Status, WorkflowRunResult
from rehydrate.errors import IdempotencyKeyError, RehydrateError, RunFailedError, TurnInProgressError
from rehydrate.model.events import OutputYielded, RequestOpened, StatusChanged, TurnStarted
from tests.call.desk import Gate, Note, desk
from tests.call.stops import cancelled, failed, interrupted
from tests.call.stores import everything

run = asyncio.run


def check_replayed(again: WorkflowRunResult, first: WorkflowRunResult) -> None:
    """Check that a result is the recorded one of an earlier call."""
    assert (again.replayed, first.replayed) == (True, False)
    assert (again.outputs, again.status, again.turn) == (first.outputs, first.status, first.turn)
    assert (again.run_id, again.checkpoint_id) == (first.run_id, first.checkpoint_id)
    assert again.pending_requests == first.pending_requests


@pytest.mark.promise("P5", "duplicates one after the other")
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("row", ["1", "3", "4", "5", "4, latest", "5, latest", "7"])
def test_a_turn_that_ended_well_is_replayed(world, store, depth, row):
    """The same call with the same key gives equal outputs, requests and status, runs nothing and stores nothing."""
    workflow = desk(world, store, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    arguments = {
        "message": Note("b,c?") if row[0] in "145" else None,
        "checkpoint": None if row in "17" else "latest" if "latest" in row else paused,
        "run_id": "r" if "latest" in row else None,
        "responses": [paused.pending_requests[0].answer(True)] if row[0] in "357" else None,
        "idempotency_key": "k",
    }
    first = run(workflow.run(**arguments))
    before, diary = run(everything(store)), list(world.diary)
    check_replayed(run(workflow.run(**arguments)), first)
    assert world.diary == diary
    assert run(everything(store)) == before


@pytest.mark.promise("P5", "duplicates one after the other")
def test_a_turn_is_replayed_after_later_turns(world, store):
    """Two turns later the key still gives the first turn's outputs and its open requests."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a?,x"), run_id="r", idempotency_key="k"))
    answer = first.pending_requests[0].answer(True)
    second = run(workflow.run(Note("b"), checkpoint=first, responses=[answer], idempotency_key="k2"))
    third = run(workflow.run(Note("c"), checkpoint=second))
    check_replayed(run(workflow.run(Note("a?,x"), run_id="r", idempotency_key="k")), first)
    check_replayed(run(workflow.run(Note("b"), checkpoint=first, responses=[answer], idempotency_key="k2")), second)
    assert run(store.head("r")).header.checkpoint_id == third.checkpoint_id


def test_a_replay_as_a_stream(world, store):
    """A stream tells started, outputs, open requests and status of the recorded turn; its result says `replayed`."""
    workflow = desk(world, store, depth=2)
    first = run(workflow.run(Note("a,b?,c"), run_id="r", idempotency_key="k"))

    async def streamed():
        stream = workflow.run(Note("a,b?,c"), run_id="r", idempotency_key="k", stream=True)
        return [event async for event in stream], await stream.result()

    events, again = run(streamed())
    check_replayed(again, first)
    assert [type(event) for event in events] == [
        TurnStarted, OutputYielded, OutputYielded, RequestOpened, StatusChanged,
    ]  # fmt: skip
    assert [event.data for event in events[1:3]] == ["1: a", "1: c"]
    assert (events[3].request_id, events[3].path) == (first.pending_requests[0].request_id, "inner#1")
    assert events[4].status is Status.IDLE_WITH_PENDING_REQUESTS
    assert world.diary == ["intake a,b?,c", "clerk a,b?,c"]


@pytest.mark.promise("P5", "duplicates after a failure or a cancellation")
@pytest.mark.parametrize("stop", [failed, cancelled])
@pytest.mark.parametrize("run_id", [None, "new"])
def test_a_turn_that_did_not_end_well_is_continued(world, store, stop, run_id):
    """After a failure or a cancellation the key leads to the same run and turn; once it ended well it is replayed."""
    workflow = desk(world, store)
    call = {"run_id": run_id, "idempotency_key": "k"}
    stopped = stop(world, workflow, "clerk b", Note("b"), **call)
    result = run(workflow.run(Note("b"), **call))
    assert (result.run_id, result.turn, result.outputs) == (stopped.run_id, 1, ["1: b"])
    assert world.diary.count("intake b") == 1
    check_replayed(run(workflow.run(Note("b"), **call)), result)


def test_an_interrupted_turn_is_continued(world, store):
    """A turn of which only the claim was saved is found by its key and gone on with."""
    workflow = desk(world, store)
    run_id = interrupted(store, 1, workflow, Note("b"), idempotency_key="k")
    result = run(workflow.run(Note("b"), idempotency_key="k"))
    assert (result.run_id, result.outputs, result.replayed) == (run_id, ["1: b"], False)
    check_replayed(run(workflow.run(Note("b"), idempotency_key="k")), result)


def test_a_continued_turn_is_replayed_as_it_ended(world, store):
    """A keyed turn that failed and was continued without the key is replayed with what the continuation gave."""
    workflow = desk(world, store)
    stopped = failed(world, workflow, "clerk b", Note("b"), idempotency_key="k")
    continued = run(workflow.run(checkpoint=stopped))
    run(workflow.run(Note("c"), checkpoint=continued))
    again = run(workflow.run(Note("b"), idempotency_key="k"))
    assert (again.outputs, again.replayed, again.checkpoint_id) == (["1: b"], True, continued.checkpoint_id)


def test_a_failed_turn_that_was_dropped_is_replayed_as_failed(world, store):
    """A keyed turn failed and a later turn dropped its work: asking again raises the recorded failure."""
    workflow = desk(world, store)
    stopped = failed(world, workflow, "clerk b", Note("b"), run_id="r", idempotency_key="k")
    head = run(workflow.run(Note("c"), checkpoint=stopped, on_unfinished="discard"))
    world.diary.clear()
    with pytest.raises(RunFailedError, match="clerk") as again:
        run(workflow.run(Note("b"), run_id="r", idempotency_key="k"))
    assert (again.value.result.replayed, again.value.result.checkpoint_id) == (True, stopped.checkpoint_id)
    assert world.diary == []
    assert run(store.head("r")).header.checkpoint_id == head.checkpoint_id


@pytest.mark.promise("P5", "duplicates while the turn runs")
def test_a_turn_in_progress_is_not_run_twice(world, store):
    """While it runs the call with the key is `TurnInProgressError`, and the handler runs once."""
    workflow = desk(world, store)

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        running = asyncio.create_task(workflow.run(Note("a"), idempotency_key="k"))
        await gate.entered.wait()
        with pytest.raises(TurnInProgressError):
            await workflow.run(Note("a"), idempotency_key="k")
        gate.opened.set()
        return await running

    result = run(scenario())
    check_replayed(run(workflow.run(Note("a"), idempotency_key="k")), result)
    assert world.diary == ["intake a", "clerk a"]


@pytest.mark.promise("P5", "rounds in which tasks deliver one key at once")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_two_calls_at_once_run_once(world, store, checkpoint):
    """Of ten equal calls at the same moment one runs; the others give its result or say that it is in progress."""
    workflow = desk(world, store)
    base = run(workflow.run(Note("z"), run_id="r")) if checkpoint else None

    async def scenario():
        calls = [workflow.run(Note("a"), checkpoint=base, idempotency_key="k") for _ in range(10)]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = run(scenario())
    results = [item for item in found if isinstance(item, WorkflowRunResult)]
    assert all(isinstance(item, WorkflowRunResult | TurnInProgressError) for item in found)
    assert [result.replayed for result in results].count(False) == 1
    assert {tuple(result.outputs) for result in results} == {("2: a",) if checkpoint else ("1: a",)}
    assert (world.diary.count("intake a"), world.diary.count("clerk a")) == (1, 1)


@pytest.mark.parametrize("later_turn", [False, True])
def test_a_turn_that_ends_while_its_key_is_looked_up_is_replayed_as_it_ended(world, store, later_turn):
    """The second call finds the key of a running turn, which then ends and is followed: it gets what that gave."""
    workflow = desk(world, store)

    async def scenario():
        held = world.gates["clerk a"] = Gate()
        running = asyncio.create_task(workflow.run(Note("a"), run_id="r", idempotency_key="k"))
        await held.entered.wait()
        gate = store.turn_gate = Gate()
        again = asyncio.create_task(workflow.run(Note("a"), run_id="r", idempotency_key="k"))
        await gate.entered.wait()
        held.opened.set()
        first = await running
        if later_turn:
            await workflow.run(Note("b"), checkpoint=first)
        gate.opened.set()
        return first, await again

    first, again = run(scenario())
    check_replayed(again, first)
    assert again.outputs == ["1: a"]


@pytest.mark.promise("P5", "another request with a used key")
def test_another_request_with_the_key_is_refused(world, store):
    """Another message, answers, run arguments, policy or checkpoint with a used key is an error that names it."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    call = {"message": Note("b"), "checkpoint": paused, "responses": answers, "idempotency_key": "k"}
    done = run(workflow.run(**call))
    before = run(everything(store))
    world.diary.clear()
    others = [
        {"message": Note("c")},
        {"message": None},
        {"responses": [paused.pending_requests[0].answer(False)]},
        {"responses": None},
        {"run_args": 1},
        {"on_pending": "cancel"},
        {"on_unfinished": "discard"},
        {"fork": True},
        {"checkpoint": done},
    ]
    for other in others:
        with pytest.raises(IdempotencyKeyError, match="'k'") as error:
            run(workflow.run(**{**call, **other}))
        assert error.value.run_id == "r"
    assert world.diary == []
    assert run(everything(store)) == before


def test_what_is_not_compared(world, store):
    """Streaming, takeover, resources and durability may differ between the call and its repetition."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), idempotency_key="k"))
    for other in ({"takeover": True}, {"resources": {"client": 1}}, {"durability": "turn"}):
        check_replayed(run(workflow.run(Note("a"), idempotency_key="k", **other)), first)


def test_a_key_gives_a_run_id(world, store):
    """A first call without a run id gets it from the key: the same in every store, another for another key."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), idempotency_key="k"))
    other_store = run(workflow.run(Note("a"), idempotency_key="k", checkpoint_storage=InMemoryCheckpointStorage()))
    other_key = run(workflow.run(Note("a"), idempotency_key="k2"))
    other_workflow = run(desk(world, store, name="shop").run(Note("a"), idempotency_key="k"))
    assert first.run_id == other_store.run_id
    assert len({first.run_id, other_key.run_id, other_workflow.run_id}) == 3
    assert (other_store.replayed, other_key.replayed, other_workflow.replayed) == (False, False, False)


def test_the_run_of_a_key_goes_on_without_it(world, store):
    """The run that a key made is a run like others: later calls go on with it by its id."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), idempotency_key="k"))
    second = run(workflow.run(Note("b"), checkpoint="latest", run_id=first.run_id))
    assert (second.outputs, second.run_id) == (["2: b"], first.run_id)


def test_a_refused_call_leaves_its_key_free(world, store):
    """A call that was refused before its claim has not used its key."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    with pytest.raises(RehydrateError):
        run(workflow.run(Note("b"), checkpoint=paused, on_pending="reject", idempotency_key="k"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep", idempotency_key="k"))
    assert (result.outputs, result.replayed) == (["2: b"], False)


def test_a_key_on_a_continuation_is_a_value_error(world, store):
    """A continuation brings no input and makes no turn, so a key has nothing to hold; it is not ignored."""
    workflow = desk(world, store)
    stopped = failed(world, workflow, "clerk a", Note("a"), run_id="r")
    with pytest.raises(ValueError, match="idempotency_key"):
        run(workflow.run(checkpoint=stopped, idempotency_key="k"))
    assert run(workflow.run(checkpoint=stopped)).outputs == ["1: a"]


def test_a_key_with_nothing_saved_is_a_value_error(world, store):
    """`durability="off"` cannot keep what a key promises."""
    with pytest.raises(ValueError, match="durability"):
        run(desk(world, store).run(Note("a"), idempotency_key="k", durability="off"))
    assert world.diary == []
    assert run(everything(store)) == []


@pytest.mark.parametrize("durability", ["superstep", "turn"])
def test_a_key_holds_with_each_durability_that_saves(world, store, durability):
    """Claims and ends are saved in both, so the turn is found again, failed and ended."""
    workflow = desk(world, store)
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError):
        run(workflow.run(Note("a"), idempotency_key="k", durability=durability))
    world.faults.clear()
    result = run(workflow.run(Note("a"), idempotency_key="k", durability=durability))
    check_replayed(run(workflow.run(Note("a"), idempotency_key="k", durability=durability)), result)
    assert (result.outputs, result.turn) == (["1: a"], 1)
