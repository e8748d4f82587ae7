"""The same call after its process has died, and calls on a run that another process drives (cases 55 and 56)."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import SqliteCheckpointStorage
from rehydrate.errors import RunBusyError, TurnInProgressError
from tests.call.desk import Note, World, desk
from tests.call.process import call_in_new_process, crash_in_new_process, hang_in_new_process

run = asyncio.run

#: Calls of each row on run `r`, which asked `a?`, as they are told to another process: the entry at which that process
#: ends, what the call gives in the end, and what still ran for it here.
CALLS = {
    "1": ({"text": "b", "run_id": "new"}, "intake b", ["1: b"], ["clerk b", "intake b"]),
    "3": ({"checkpoint": True, "responses": True}, "clerk a? yes", ["1: a? yes"], ["clerk a? yes"]),
    "4": (
        {"text": "b", "checkpoint": True, "on_pending": "keep"}, "intake b", ["2: b"], ["clerk b", "intake b"],
    ),
    "5": (
        {"text": "b", "checkpoint": True, "responses": True}, "clerk a? yes", ["1: a? yes", "2: b"],
        ["clerk a? yes", "clerk b", "intake b"],
    ),
    "5, later": (
        {"text": "b", "checkpoint": True, "responses": True}, "clerk b", ["1: a? yes", "2: b"], ["clerk b"],
    ),
    "5, latest": (
        {"text": "b", "checkpoint": "latest", "run_id": "r", "responses": True}, "clerk b", ["1: a? yes", "2: b"],
        ["clerk b"],
    ),
    "7": ({"responses": True}, "clerk a? yes", ["1: a? yes"], ["clerk a? yes"]),
}  # fmt: skip


def paused_run(folder: Path, world: World):
    """Start run `r`, which asks `a?` two levels down; the store stays open for the test."""
    workflow = desk(world, SqliteCheckpointStorage(folder / "runs.db"), depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    world.diary.clear()
    return workflow, paused


def told(arguments, paused):
    """Fill in the checkpoint's and the request's id."""
    filled = {"depth": 2, **arguments}
    if filled.get("checkpoint") is True:
        filled["checkpoint"] = paused.checkpoint_id
    if filled.get("responses") is True:
        filled["responses"] = {paused.pending_requests[0].request_id: True}
    return filled


def made_here(workflow, arguments):
    """Make the call that was told."""
    given = {name: value for name, value in arguments.items() if name not in {"depth", "text"}}
    return workflow.run(Note(arguments["text"]) if "text" in arguments else None, **given)


@pytest.mark.parametrize("row", CALLS)
def test_case_56_the_same_call_after_its_process_died_is_continued(world, tmp_path, row):
    """The process ends in a handler after the claim; the same call goes on at once, and answers are applied once."""
    workflow, paused = paused_run(tmp_path, world)
    arguments, entry, outputs, diary = CALLS[row]
    call = told(arguments, paused)
    crash_in_new_process(tmp_path, crashes=[entry], **call)
    result = run(made_here(workflow, call))
    assert result.outputs == outputs
    assert result.turn == (1 if row == "1" else 2)
    assert sorted(world.diary) == diary
    run(workflow.checkpoint_storage.close())


def test_case_55_a_run_of_a_living_process_is_not_stolen_and_goes_on_when_it_is_killed(world, tmp_path):
    """Other calls are `RunBusyError`, the same call `TurnInProgressError`; once the process is killed it goes on."""
    workflow, paused = paused_run(tmp_path, world)
    call = told(CALLS["5"][0], paused)
    other = hang_in_new_process(tmp_path, hangs=["clerk b"], **call)
    with pytest.raises(RunBusyError) as busy:
        run(workflow.run(Note("c"), checkpoint="latest", run_id="r"))
    assert not isinstance(busy.value, TurnInProgressError)
    with pytest.raises(TurnInProgressError):
        run(made_here(workflow, call))
    assert world.diary == []
    other.kill()
    other.communicate()
    result = run(made_here(workflow, call))
    assert (result.outputs, result.turn) == (["1: a? yes", "2: b"], 2)
    assert world.diary == ["clerk b"]
    run(workflow.checkpoint_storage.close())


def test_a_new_message_goes_on_at_once_after_a_process_was_killed(world, tmp_path):
    """`"latest"` with another message finishes what the dead process left and gives its outputs first."""
    workflow, paused = paused_run(tmp_path, world)
    crash_in_new_process(tmp_path, crashes=["clerk b"], **told(CALLS["5"][0], paused))
    result = run(workflow.run(Note("c"), checkpoint="latest", run_id="r"))
    assert (result.outputs, result.turn) == (["1: a? yes", "2: b", "3: c"], 3)
    run(workflow.checkpoint_storage.close())


def test_a_turn_with_a_key_is_replayed_in_another_process(world, tmp_path):
    """A call with a key that ended well here gives its recorded result there, and nothing runs."""
    workflow, paused = paused_run(tmp_path, world)
    call = told({**CALLS["5"][0], "text": "b?", "idempotency_key": "k"}, paused)
    here = run(made_here(workflow, call))
    there = call_in_new_process(tmp_path, **call)
    assert (there["outputs"], there["replayed"], there["diary"]) == (["1: a? yes"], True, [])
    assert (there["checkpoint"], there["status"]) == (here.checkpoint_id, "IDLE_WITH_PENDING_REQUESTS")
    assert [request[0] for request in there["requests"]] == [here.pending_requests[0].request_id]
    run(workflow.checkpoint_storage.close())


def test_a_first_call_with_a_key_survives_its_process(world, tmp_path):
    """A new run without a run id: the same call with its key finds the interrupted run instead of starting another."""
    folder = Path(tmp_path)
    crash_in_new_process(folder, crashes=["clerk a"], text="a", idempotency_key="k")
    store = SqliteCheckpointStorage(folder / "runs.db")
    (head,) = run(store.runs())
    result = run(desk(world, store).run(Note("a"), idempotency_key="k"))
    assert (result.run_id, result.outputs, result.replayed) == (head.run_id, ["1: a"], False)
    assert world.diary == ["clerk a"]
    run(store.close())


def test_a_fork_survives_its_process(world, tmp_path):
    """A fork with a run id whose process died is gone on with by the same call; the source is as it was."""
    workflow, paused = paused_run(tmp_path, world)
    call = told({**CALLS["5"][0], "fork": True, "run_id": "copy"}, paused)
    crash_in_new_process(tmp_path, crashes=["clerk b"], **call)
    result = run(made_here(workflow, call))
    assert (result.run_id, result.outputs) == ("copy", ["1: a? yes", "2: b"])
    assert world.diary == ["clerk b"]
    assert run(workflow.checkpoint_storage.head("r")).header.checkpoint_id == paused.checkpoint_id
    run(workflow.checkpoint_storage.close())
