"""Calls at the same moment, and calls that are cancelled while a commit is on its way."""

import asyncio
import gc

import pytest

from rehydrate import Status, WorkflowRunResult
from rehydrate.errors import (
    AlreadyAnsweredError,
    RunBusyError,
    RunExistsError,
    StaleCheckpointError,
    TurnInProgressError,
)
from tests.call.desk import Gate, Note, desk
from tests.call.stores import everything, rest

run = asyncio.run


#: What a call may say that came too late: the run is being executed, has gone on, exists, or has the answer.
TOO_LATE = (RunBusyError, StaleCheckpointError, RunExistsError, AlreadyAnsweredError)


async def all_at_once(calls):
    """Make calls at the same moment; return the results and the errors of those that got none."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    results = [item for item in found if isinstance(item, WorkflowRunResult)]
    errors = [item for item in found if not isinstance(item, WorkflowRunResult)]
    return results, errors


async def read_all(stream):
    """Read a stream to its end."""
    return [event async for event in stream]


@pytest.mark.parametrize("depth", [1, 3])
def test_of_ten_messages_on_one_checkpoint_one_runs(world, store, depth):
    """Ten calls resume one pause at once: one goes on, the others get an error before anything of theirs ran."""
    workflow = desk(world, store, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    world.diary.clear()

    async def scenario():
        calls = [workflow.run(Note(f"b{n}"), checkpoint=paused, responses=answers) for n in range(10)]
        return await all_at_once(calls)

    (winner,), errors = run(scenario())
    assert (len(errors), {isinstance(error, TOO_LATE) for error in errors}) == (9, {True})
    text = winner.outputs[1].removeprefix("2: ")
    assert winner.outputs == ["1: a? yes", f"2: {text}"]
    assert sorted(world.diary) == ["clerk a? yes", f"clerk {text}", f"intake {text}"]
    assert run(workflow.run(Note("c"), checkpoint=winner)).outputs == ["3: c"]


def test_of_ten_new_runs_under_one_id_one_runs(world, store):
    """Ten first messages for one run id at once make one run."""
    workflow = desk(world, store)

    async def scenario():
        return await all_at_once([workflow.run(Note(f"a{n}"), run_id="r") for n in range(10)])

    (winner,), errors = run(scenario())
    text = winner.outputs[0].removeprefix("1: ")
    assert {isinstance(error, TOO_LATE) for error in errors} == {True}
    assert world.diary == [f"intake {text}", f"clerk {text}"]


def test_of_two_clicks_at_once_one_is_taken(world, store):
    """Two answers for one request at the same moment: one is taken, and the handler runs once."""
    workflow = desk(world, store, depth=2)
    request = run(workflow.run(Note("a?"), run_id="r")).pending_requests[0]

    async def scenario():
        return await all_at_once([workflow.run(responses=[request.answer(value)]) for value in (True, False)])

    (winner,), (error,) = run(scenario())
    assert isinstance(error, TOO_LATE)
    assert winner.outputs in (["1: a? yes"], ["1: a? no"])
    assert len([entry for entry in world.diary if entry.startswith("clerk a? ")]) == 1


def test_of_ten_equal_calls_one_runs_and_the_others_say_that_it_is_in_progress(world, store):
    """Whoever loses the claim to the very same call is told so, and not to bring the message again at the head."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))

    async def scenario():
        return await all_at_once([workflow.run(Note("b"), checkpoint=first) for _ in range(10)])

    (winner,), errors = run(scenario())
    assert {type(error) for error in errors} <= {TurnInProgressError, StaleCheckpointError}
    assert (winner.outputs, world.diary.count("clerk b")) == (["2: b"], 1)


#: Two calls on run `r`, which asked `a?`: the first waits at its claim while the second claims the run.
CLAIMS = {
    "another message": (Note("b"), Note("c"), {"checkpoint": True}, RunBusyError, "2: c"),
    "another message at the head": (
        Note("b"),
        Note("c"),
        {"checkpoint": "latest", "run_id": "r"},
        RunBusyError,
        "2: c",
    ),
    "the same call": (Note("c"), Note("c"), {"checkpoint": True}, TurnInProgressError, "2: c"),
    "the same answers": (None, None, {"responses": True}, TurnInProgressError, "1: a? yes"),
    "the same first message": (Note("c"), Note("c"), {"run_id": "new"}, TurnInProgressError, "1: c"),
}


@pytest.mark.parametrize("late_at", ["its claim", "its load"])
@pytest.mark.parametrize("name", CLAIMS)
def test_who_loses_the_claim_is_told_who_has_the_run(world, store, name, late_at):
    """Both found the run free; the one whose claim comes second gets the error of a call that came after."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    first, second, told, expected, output = CLAIMS[name]
    arguments = {key: value for key, value in told.items() if value is not True}
    if told.get("checkpoint") is True:
        arguments["checkpoint"] = paused
    if told.get("responses") is True:
        arguments["responses"] = [paused.pending_requests[0].answer(True)]

    async def scenario():
        gate = Gate()
        if late_at == "its load" and name != "the same first message":
            store.load_gate = gate
        else:
            store.gated_commit, store.gate_place, store.commit_gate = 1, "before", gate
        late = asyncio.create_task(workflow.run(first, **arguments))
        await gate.entered.wait()
        held = world.gates["clerk a? yes" if second is None else "clerk c"] = Gate()
        running = asyncio.create_task(workflow.run(second, **arguments))
        await held.entered.wait()
        gate.opened.set()
        with pytest.raises(expected) as error:
            await late
        held.opened.set()
        return type(error.value), await running

    found, result = run(scenario())
    assert found is expected
    assert result.outputs == [output]
    assert not any("b" in entry for entry in world.diary)
    assert len(world.diary) == len(set(world.diary))


def test_who_loses_the_claim_at_the_head_goes_on_after_the_turn_that_won(world, store):
    """With `"latest"` and the other turn ended, the message is simply the next turn."""
    workflow = desk(world, store)
    run(workflow.run(Note("a"), run_id="r"))

    async def scenario():
        store.gated_commit, store.gate_place, store.commit_gate = 1, "before", Gate()
        late = asyncio.create_task(workflow.run(Note("c"), checkpoint="latest", run_id="r"))
        await store.commit_gate.entered.wait()
        won = await workflow.run(Note("b"), checkpoint="latest", run_id="r")
        store.commit_gate.opened.set()
        return won, await late

    won, late = run(scenario())
    assert (won.outputs, late.outputs, late.turn) == (["2: b"], ["3: c"], 3)


@pytest.mark.parametrize("commit", [1, 2, 3])
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_cancelled_call_waits_for_the_commit_on_its_way(world, store, commit, place, stream):
    """That commit is waited for, then `CANCELLED` is saved and nobody owns the run; a claim may also leave nothing."""
    workflow = desk(world, store)

    async def scenario():
        gate = store.commit_gate = Gate()
        store.gated_commit, store.gate_place = commit, place
        made = workflow.run(Note("a"), run_id="r", stream=stream)
        running = asyncio.create_task(made.result() if stream else made)
        await gate.entered.wait()
        running.cancel()
        await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await store.head("r")

    head = run(scenario())
    if head is None:
        assert (commit, place, world.diary) == (1, "before", [])
        return
    assert head.owner is None
    if commit < 3:
        assert head.header.status is Status.CANCELLED
    again = {"checkpoint": "latest"} if commit == 3 else {"message": Note("a")}
    assert run(workflow.run(run_id="r", **again)).outputs == ["1: a"]


@pytest.mark.parametrize("commit", [1, 2])
def test_a_stream_that_is_dropped_while_a_commit_is_on_its_way_is_cancelled(world, store, commit):
    """The reader gives up and lets the stream go while its claim, or a barrier's commit, is on its way."""
    workflow = desk(world, store)

    async def scenario():
        gate = store.commit_gate = Gate()
        store.gated_commit, store.gate_place = commit, "after"
        stream = workflow.run(Note("a"), run_id="r", stream=True)
        reading = asyncio.create_task(read_all(stream))
        del stream
        await gate.entered.wait()
        reading.cancel()
        await asyncio.wait([reading])
        del reading
        gc.collect()
        gate.opened.set()
        return await rest(store, "r")

    head = run(scenario())
    assert (head.header.status, head.owner) == (Status.CANCELLED, None)
    assert "clerk a" not in world.diary
    assert run(workflow.run(Note("a"), run_id="r")).outputs == ["1: a"]


def test_a_cancelled_call_that_had_saved_nothing_has_changed_nothing(world, store):
    """Cancelled before its claim was on its way: nothing is stored and nothing ran."""
    workflow = desk(world, store)

    async def scenario():
        running = asyncio.create_task(workflow.run(Note("a"), run_id="r"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(scenario())
    assert run(everything(store)) == []
    assert world.diary == []
