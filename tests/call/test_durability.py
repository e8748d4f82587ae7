"""Durability modes: what is saved, what a lost process costs, and what a failed save does."""

import asyncio

import pytest

from rehydrate import Status
from rehydrate.errors import RunFailedError, SaveFailedError, StoreError
from rehydrate.model.events import InvocationStarted
from tests.call.desk import Note, desk
from tests.call.stops import interrupted
from tests.call.stores import everything

run = asyncio.run


def statuses(store, run_id="r"):
    """The statuses of a run's checkpoints, oldest first."""
    return [header.status.value for header in reversed(run(store.history(run_id)))]


@pytest.mark.parametrize("given", [{}, {"durability": "superstep"}])
def test_superstep_saves_the_claim_and_every_barrier(world, store, given):
    """The default: two supersteps of one invocation each cost a claim and two commits."""
    run(desk(world, store).run(Note("a"), run_id="r", **given))
    assert statuses(store) == ["RUNNING", "RUNNING", "IDLE"]


def test_turn_saves_claim_pause_and_end(world, store):
    """Two turns of several supersteps are four checkpoints: each turn's claim and how it came to rest."""
    workflow = desk(world, store, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r", durability="turn"))
    answers = [paused.pending_requests[0].answer(True)]
    result = run(workflow.run(Note("b"), checkpoint=paused, responses=answers, durability="turn"))
    assert result.outputs == ["1: a? yes", "2: b"]
    assert statuses(store) == ["RUNNING", "IDLE_WITH_PENDING_REQUESTS", "RUNNING", "IDLE"]


def test_turn_saves_a_failure_with_what_had_finished(world, store):
    """A turn that fails is saved where it failed, so a continuation does not run its finished supersteps again."""
    workflow = desk(world, store)
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("a"), run_id="r", durability="turn"))
    world.faults.clear()
    assert statuses(store) == ["RUNNING", "FAILED"]
    assert run(workflow.run(checkpoint=failed.value.result, durability="turn")).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a", "clerk a"]


def test_turn_costs_a_lost_process_the_whole_turn(world, store):
    """Between claim and end nothing was saved: the same call runs the turn from its claim and ends right."""
    workflow = desk(world, store)
    interrupted(store, 1, workflow, Note("a"), run_id="r", durability="turn")
    assert world.diary == ["intake a", "clerk a"]
    assert run(workflow.run(Note("a"), run_id="r")).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a"] * 2


def test_superstep_costs_a_lost_process_the_current_superstep(world, store):
    """What a barrier had saved does not run again."""
    workflow = desk(world, store)
    interrupted(store, 2, workflow, Note("a"), run_id="r")
    assert run(workflow.run(Note("a"), run_id="r")).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a", "clerk a"]


def test_off_saves_nothing_and_gives_the_checkpoint_object(world, store):
    """With a store nothing is stored; the result's checkpoint goes on, and is imported by a call that saves."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r", durability="off"))
    assert run(everything(store)) == []
    answers = [paused.pending_requests[0].answer(True)]
    result = run(workflow.run(Note("b"), checkpoint=paused, responses=answers))
    assert result.outputs == ["1: a? yes", "2: b"]
    assert run(store.head("r")).header.checkpoint_id == result.checkpoint_id


def test_durability_is_the_calls_not_the_runs(world, store):
    """Each call says anew how much it saves."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r", durability="turn"))
    second = run(workflow.run(Note("b"), checkpoint=first))
    run(workflow.run(Note("c"), checkpoint=second, durability="turn"))
    assert statuses(store) == ["RUNNING", "IDLE", "RUNNING", "RUNNING", "IDLE", "RUNNING", "IDLE"]


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_a_failed_save_fails_the_run_with_an_error_that_says_so(world, store, saves):
    """The call raises a store's error that names the run and the reason; no later executor ran."""
    workflow = desk(world, store)
    store.saves_left = saves
    with pytest.raises((StoreError, OSError), match="no space left") as error:
        run(workflow.run(Note("a"), run_id="r"))
    store.saves_left = None
    if saves:
        assert isinstance(error.value, SaveFailedError)
        assert error.value.run_id == "r"
    assert world.diary == [[], ["intake a"], ["intake a", "clerk a"]][saves]
    result = run(workflow.run(Note("a"), run_id="r"))
    assert (result.outputs, result.status) == (["1: a"], Status.IDLE)


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_a_failed_save_ends_a_stream_with_the_same_error(world, store, saves):
    """Iterating raises after the last event that was saved, and `result()` raises it too."""
    workflow = desk(world, store)
    store.saves_left = saves
    seen = []

    async def read_on(stream):
        while True:
            seen.append(await anext(stream))

    async def read():
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        with pytest.raises((StoreError, OSError), match="no space left"):
            await read_on(stream)
        with pytest.raises((StoreError, OSError), match="no space left"):
            await stream.result()

    run(read())
    assert [event.executor_id for event in seen if isinstance(event, InvocationStarted)] == ["intake", "clerk"][:saves]


def test_without_a_store_a_result_holds_the_run(world):
    """Nothing is saved anywhere, and a hundred turns go on from object to object."""
    workflow = desk(world)
    result = run(workflow.run(Note("0")))
    for number in range(1, 100):
        result = run(workflow.run(Note(str(number)), checkpoint=result))
    assert (result.outputs, result.turn) == (["100: 99"], 100)
