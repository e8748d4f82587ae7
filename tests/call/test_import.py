"""Checkpoint objects in calls with a store: taken as their id, imported, foreign or stale."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, Status, WorkflowCheckpoint
from rehydrate.errors import ForeignCheckpointError, StaleCheckpointError
from tests.call.desk import Note, desk, team
from tests.call.stops import cancelled, failed, interrupted
from tests.call.stores import everything

run = asyncio.run


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", [None, Note("b")])
def test_a_run_that_the_store_does_not_know_is_imported_under_its_id(world, store, depth, message):
    """The claim writes all of it; from then on the run goes on in this store by its id, with the same request ids."""
    elsewhere = desk(world, InMemoryCheckpointStorage(), depth=depth)
    paused = run(elsewhere.run(Note("a?,c?"), run_id="r"))
    kept = WorkflowCheckpoint.from_bytes(paused.checkpoint.to_bytes())
    first, second = paused.pending_requests
    workflow = desk(world, store, depth=depth)
    result = run(workflow.run(message, checkpoint=kept, responses=[first.answer(True)]))
    assert result.outputs == (["1: a? yes"] if message is None else ["1: a? yes", "2: b"])
    assert (result.run_id, [r.request_id for r in result.pending_requests]) == ("r", [second.request_id])
    assert run(store.head("r")).header.checkpoint_id == result.checkpoint_id
    last = run(workflow.run(responses=[second.answer(True)]))
    assert (last.outputs, last.status) == (["1: c? yes"], Status.IDLE)


def test_an_import_leaves_the_other_store_alone(world, store):
    """The run that was imported goes on here; where it came from it stands as it was and can go on, too."""
    other = InMemoryCheckpointStorage()
    elsewhere = desk(world, other)
    first = run(elsewhere.run(Note("a"), run_id="r"))
    before = run(everything(other))
    here = run(desk(world, store).run(Note("b"), checkpoint=first))
    assert run(everything(other)) == before
    there = run(elsewhere.run(Note("c"), checkpoint=first))
    assert (here.outputs, there.outputs) == (["2: b"], ["2: c"])


@pytest.mark.parametrize("depth", [1, 3])
def test_unfinished_work_is_imported_with_what_finished(world, store, depth):
    """An object of a failed run is continued in the new store; what had finished does not run again."""
    stopped = failed(world, team(world, depth=depth), "right a", Note("a"), run_id="r")
    world.diary.clear()
    result = run(team(world, store, depth=depth).run(checkpoint=stopped))
    assert (result.outputs, world.diary) == (["left a + right a"], ["right a", "join 2"])
    assert run(store.head("r")).header.status is Status.IDLE


@pytest.mark.parametrize("stop", [failed, cancelled])
def test_an_import_that_stopped_is_continued_by_the_same_call(world, store, stop):
    """The same call with the same object is that turn, although the store knows the run by now."""
    paused = run(desk(world).run(Note("a?"), run_id="r"))
    workflow = desk(world, store)
    call = {"checkpoint": paused, "responses": [paused.pending_requests[0].answer(True)]}
    stopped = stop(world, workflow, "clerk b", Note("b"), **call)
    result = run(workflow.run(Note("b"), **call))
    assert (result.outputs, result.turn) == (["1: a? yes", "2: b"], stopped.turn)
    assert world.diary.count("clerk a? yes") == 1


def test_an_interrupted_import_is_continued_by_the_same_call(world, store):
    """The claim that imported was saved and nothing else; the same call goes on."""
    first = run(desk(world).run(Note("a"), run_id="r"))
    workflow = desk(world, store)
    interrupted(store, 1, workflow, Note("b"), checkpoint=first)
    assert run(workflow.run(Note("b"), checkpoint=first)).outputs == ["2: b"]


def test_an_import_with_a_key_happens_once(world, store):
    """The imported turn is found by its key and given back."""
    first = run(desk(world).run(Note("a"), run_id="r"))
    workflow = desk(world, store)
    done = run(workflow.run(Note("b"), checkpoint=first, idempotency_key="k"))
    again = run(workflow.run(Note("b"), checkpoint=first, idempotency_key="k"))
    assert (again.outputs, again.replayed, again.checkpoint_id) == (["2: b"], True, done.checkpoint_id)


@pytest.mark.parametrize("message", [None, Note("b")])
def test_a_known_run_without_that_checkpoint_is_foreign(world, store, message):
    """Another run of the same id is in the store: the object is not its, and nothing is overwritten."""
    workflow = desk(world, store)
    run(workflow.run(Note("here"), run_id="r"))
    stranger = run(desk(world).run(Note("a"), run_id="r"))
    before = run(everything(store))
    world.diary.clear()
    with pytest.raises(ForeignCheckpointError) as error:
        run(workflow.run(message, checkpoint=stranger))
    assert error.value.checkpoint_id == stranger.checkpoint_id
    assert world.diary == []
    assert run(everything(store)) == before
    copy = run(workflow.run(Note("b"), checkpoint=stranger, fork=True, run_id="copy"))
    assert (copy.run_id, copy.outputs) == ("copy", ["2: b"])


def test_an_object_of_the_store_counts_as_its_id(world, store):
    """The head's object goes on; what it holds is loaded from the store, where it is checked."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    kept = WorkflowCheckpoint.from_bytes(first.checkpoint.to_bytes())
    assert run(workflow.run(Note("b"), checkpoint=kept)).outputs == ["2: b"]


@pytest.mark.parametrize("name", ["an id", "a checkpoint", "a result", "a copy from bytes"])
@pytest.mark.parametrize("message", [None, Note("c")])
def test_what_is_not_the_head_is_stale(world, store, name, message):
    """An older checkpoint is `StaleCheckpointError` in each form, takeover or not; the error names the head."""
    workflow = desk(world, store)
    older = run(workflow.run(Note("a"), run_id="r"))
    head = run(workflow.run(Note("b"), checkpoint=older))
    named = {
        "an id": older.checkpoint_id,
        "a checkpoint": older.checkpoint,
        "a result": older,
        "a copy from bytes": WorkflowCheckpoint.from_bytes(older.checkpoint.to_bytes()),
    }
    with pytest.raises(StaleCheckpointError):
        run(workflow.run(message, checkpoint=named[name], takeover=True))
    with pytest.raises(StaleCheckpointError) as error:
        run(workflow.run(message, checkpoint=named[name]))
    assert (error.value.run_id, error.value.checkpoint_id) == ("r", older.checkpoint_id)
    assert error.value.head == head.checkpoint_id
    assert "fork=True" in str(error.value)


def test_without_a_store_nothing_is_stale(world):
    """Each call goes on from the object independently; the object serves any number of calls, at once too."""
    workflow = desk(world, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [[paused.pending_requests[0].answer(value)] for value in (True, False)]

    async def both():
        return await asyncio.gather(*(workflow.run(checkpoint=paused, responses=answer) for answer in answers))

    yes, no = run(both())
    assert (yes.outputs, no.outputs) == (["1: a? yes"], ["1: a? no"])
    assert len({paused.checkpoint_id, yes.checkpoint_id, no.checkpoint_id}) == 3
    assert run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep")).outputs == ["2: b"]


def test_results_of_a_run_without_a_store_can_be_moved_into_one(world, store):
    """Ten turns without a store, the eleventh with one: the run is there with all it held."""
    workflow = desk(world)
    result = run(workflow.run(Note("0"), run_id="r"))
    for number in range(1, 10):
        result = run(workflow.run(Note(str(number)), checkpoint=result))
    last = run(workflow.run(Note("10"), checkpoint=result, checkpoint_storage=store))
    assert (last.outputs, last.turn, dict(last.checkpoint.state)["heard"]) == (["11: 10"], 11, 11)
    kept = run(desk(world, store).run(Note("11"), checkpoint="latest", run_id="r"))
    assert dict(kept.checkpoint.state)["seen"] == [str(number) for number in range(12)]
