"""The runner: what a workflow's call is made of, used in two steps."""

import asyncio

import pytest

from rehydrate import Runner, Status, WorkflowCheckpoint
from rehydrate.errors import (
    ForeignCheckpointError,
    GraphChangedError,
    RunFailedError,
    StaleCheckpointError,
    WorkflowCheckpointException,
)
from tests.call.desk import Note, World, desk, team
from tests.call.stops import failed
from tests.call.stores import everything

run = asyncio.run


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", [None, Note("b")])
def test_restoring_an_object_and_running_equals_the_one_call(world, anywhere, depth, message):
    """Two steps over bytes give the outputs, status and state of the one call."""
    workflow = desk(world, anywhere, depth=depth)
    paused = [run(workflow.run(Note("a?"), run_id=run_id)) for run_id in ("one", "two")]
    answers = [[before.pending_requests[0].answer(True)] for before in paused]
    one = run(workflow.run(message, checkpoint=paused[0], responses=answers[0]))
    runner = Runner(desk(World(), anywhere, depth=depth))
    assert runner.resumed is False

    async def two_steps():
        await runner.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(paused[1].checkpoint.to_bytes()))
        return await runner.run(message, responses=answers[1])

    two = run(two_steps())
    assert runner.resumed is True
    assert one.outputs == two.outputs == (["1: a? yes"] if message is None else ["1: a? yes", "2: b"])
    assert (one.status, one.turn, one.checkpoint.state) == (two.status, two.turn, two.checkpoint.state)
    assert two.run_id == "two"


def test_a_runner_goes_on_from_its_last_turn(world, anywhere):
    """One runner drives one run, a turn at a time, without being told where it stands."""
    runner = Runner(desk(world, anywhere))
    results = [run(runner.run(Note(text))) for text in "abc"]
    assert [result.outputs for result in results] == [["1: a"], ["2: b"], ["3: c"]]
    assert len({result.run_id for result in results}) == 1


def test_a_runner_uses_the_store_it_is_given(world, store):
    """`Runner(workflow, store)` saves in that store."""
    runner = Runner(desk(world), store)
    result = run(runner.run(Note("a"), run_id="r"))
    assert run(store.head("r")).header.checkpoint_id == result.checkpoint_id


def test_a_restore_that_fails_leaves_the_runner_as_it_was(world, anywhere):
    """Another graph's and another workflow's object are refused; the runner goes on with the run that it held."""
    workflow = desk(world, anywhere)
    runner = Runner(workflow)
    run(runner.run(Note("a")))
    others = {
        GraphChangedError: desk(world, depth=2),
        ForeignCheckpointError: team(world),
    }
    for error, other in others.items():
        stranger = run(other.run(Note("x"), run_id="stranger")).checkpoint
        with pytest.raises(error) as found:
            run(runner.restore_from_checkpoint_object(stranger))
        assert isinstance(found.value, WorkflowCheckpointException)
    assert runner.resumed is False
    assert run(runner.run(Note("b"))).outputs == ["2: b"]


def test_a_restore_clears_what_was_there(world, anywhere):
    """A runner that held one run stands where the object is, with nothing of the other."""
    workflow = desk(world, anywhere, depth=2)
    runner = Runner(workflow)
    run(runner.run(Note("mine?"), run_id="mine"))
    other = run(workflow.run(Note("other"), run_id="other"))
    run(runner.restore_from_checkpoint_object(other.checkpoint))
    result = run(runner.run(Note("b")))
    assert (result.run_id, result.outputs, result.pending_requests) == ("other", ["2: b"], ())


def test_a_restored_runner_continues_unfinished_work(world, anywhere):
    """Restoring a failed run and running without input continues it; what had finished does not run again."""
    workflow = team(world, anywhere, depth=2)
    stopped = failed(world, workflow, "right a", Note("a"), run_id="r")
    world.diary.clear()
    runner = Runner(workflow)

    async def two_steps():
        await runner.restore_from_checkpoint_object(stopped.checkpoint)
        return await runner.run()

    assert run(two_steps()).outputs == ["left a + right a"]
    assert world.diary == ["right a", "join 2"]


def test_restoring_executes_and_stores_nothing(world, store):
    """The restore alone is a step in memory: no executor runs, no byte changes, and the object stays as it is."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before, bytes_before = run(everything(store)), paused.checkpoint.to_bytes()
    world.diary.clear()
    run(Runner(workflow).restore_from_checkpoint_object(paused.checkpoint))
    assert world.diary == []
    assert run(everything(store)) == before
    assert paused.checkpoint.to_bytes() == bytes_before


def test_a_restored_runner_is_stale_where_the_run_went_on(world, store):
    """The object is checked against the head when the runner runs, not before."""
    workflow = desk(world, store)
    older = run(workflow.run(Note("a"), run_id="r"))
    run(workflow.run(Note("b"), checkpoint=older))
    runner = Runner(workflow)
    run(runner.restore_from_checkpoint_object(older.checkpoint))
    with pytest.raises(StaleCheckpointError):
        run(runner.run(Note("c")))


def test_a_runner_that_failed_goes_on(world, anywhere):
    """After `RunFailedError` the runner stands at the failure and continues it."""
    runner = Runner(desk(world, anywhere))
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError):
        run(runner.run(Note("a"), run_id="r"))
    world.faults.clear()
    result = run(runner.run())
    assert (result.outputs, result.status) == (["1: a"], Status.IDLE)
