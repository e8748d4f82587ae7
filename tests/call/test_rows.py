"""The eight rows of the table: what message, checkpoint and answers mean together, with and without a store."""

import asyncio
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, handler
from rehydrate.errors import (
    AlreadyAnsweredError,
    ForeignCheckpointError,
    ForeignRequestError,
    RunExistsError,
    RunFailedError,
    UnknownRequestError,
)
from rehydrate.model.events import RequestOpened, StatusChanged, TurnStarted
from tests.call.desk import Note, World, desk, team
from tests.call.stores import everything

run = asyncio.run


def opened(events):
    """The texts of the questions that were surfaced."""
    return [event.data.text for event in events if isinstance(event, RequestOpened)]


# Row 1: a message ------------------------------------------------------------------------------------------------


def test_row_1_a_message_alone_is_a_new_run_each_time(world, anywhere):
    """Two calls with one message are two runs, whatever the workflow has done before."""
    workflow = desk(world, anywhere)
    first, second = (run(workflow.run(Note("a"))) for _ in range(2))
    assert first.run_id != second.run_id
    assert (first.outputs, second.outputs) == (["1: a"], ["1: a"])
    assert (first.turn, second.turn) == (1, 1)


def test_row_1_a_run_id_names_the_run(world, anywhere):
    """The run gets the id that the call names; its checkpoint, result and events carry it."""
    result = run(desk(world, anywhere).run(Note("a"), run_id="inbox 7"))
    assert result.run_id == result.checkpoint.run_id == "inbox 7"
    assert {event.run_id for event in result.events} == {"inbox 7"}


@pytest.mark.parametrize("text", ["a", "b"])
def test_row_1_a_run_id_that_exists_is_refused(world, store, text):
    """A new run under an id that exists is `RunExistsError`, with the same message and with another."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    before = run(everything(store))
    with pytest.raises(RunExistsError) as error:
        run(workflow.run(Note(text), run_id="r"))
    assert (error.value.run_id, error.value.head) == ("r", first.checkpoint_id)
    assert world.diary == ["intake a", "clerk a"]
    assert run(everything(store)) == before


def test_row_1_a_run_of_another_workflow_has_the_id(world, store):
    """Run ids are unique per store, whatever workflow a run belongs to."""
    run(desk(world, store).run(Note("a"), run_id="r"))
    with pytest.raises(RunExistsError):
        run(desk(world, store, name="shop").run(Note("a"), run_id="r"))


@pytest.mark.parametrize("message", [0, "", False])
def test_row_1_a_message_that_counts_as_false_is_a_message(anywhere, message):
    """Only `None` is no message."""

    class Echo(Executor):
        @handler
        async def on_any(self, message: int | str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output(repr(message))

    workflow = WorkflowBuilder(name="echo", start_executor=Echo("echo"), checkpoint_storage=anywhere).build()
    assert run(workflow.run(message)).outputs == [repr(message)]


# Row 2: a checkpoint ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_row_2_what_was_unfinished_is_continued(world, anywhere, depth):
    """A checkpoint alone continues the turn: what is finished does not run again, and the turn keeps its number."""
    workflow = team(world, anywhere, depth=depth)
    world.faults.add("right a")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("a"), run_id="r"))
    world.faults.clear()
    world.diary.clear()
    result = run(workflow.run(checkpoint=failed.value.result))
    assert result.outputs == ["left a + right a"]
    assert world.diary == ["right a", "join 2"]
    assert (result.status, result.turn) == (Status.IDLE, 1)
    assert [event.continuation for event in result.events if isinstance(event, TurnStarted)] == [True]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_row_2_an_open_request_is_surfaced_once_and_nothing_is_committed(world, anywhere, depth):
    """With nothing to do the open request is told once, and the result has the same checkpoint id."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()
    world.diary.clear()
    again = run(workflow.run(checkpoint=paused))
    assert opened(again.events) == ["a?"]
    assert again.pending_requests == paused.pending_requests
    assert again.checkpoint_id == paused.checkpoint_id
    assert again.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert world.diary == []
    assert (run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()) == before


def test_row_2_open_requests_are_surfaced_once_while_work_is_continued(world, anywhere):
    """A continuation that has work to do tells each still open request exactly once, too, and never an answered one."""
    workflow = desk(world, anywhere, depth=2)
    first = run(workflow.run(Note("a?"), run_id="r"))
    second = run(workflow.run(Note("b?"), checkpoint=first, responses=[first.pending_requests[0].answer(True)]))
    world.faults.add("clerk c?")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("c?"), checkpoint=second, on_pending="keep"))
    world.faults.clear()
    result = run(workflow.run(checkpoint=failed.value.result))
    assert sorted(opened(result.events)) == ["b?", "c?"]
    assert sorted(request.data.text for request in result.pending_requests) == ["b?", "c?"]


def test_row_2_of_a_finished_run_is_finished(world, anywhere):
    """The newest checkpoint of a finished run runs nothing; its outputs and status are there."""
    workflow = desk(world, anywhere)
    finished = run(workflow.run(Note("a"), run_id="r"))
    again = run(workflow.run(checkpoint=finished))
    assert (again.outputs, again.status) == (["1: a"], Status.IDLE)
    assert again.checkpoint_id == finished.checkpoint_id
    assert world.diary == ["intake a", "clerk a"]
    assert [type(event) for event in again.events] == [TurnStarted, StatusChanged]


# Row 3: a checkpoint and answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("as_mapping", [True, False])
def test_row_3_answers_are_taken_and_the_run_goes_on(world, anywhere, depth, as_mapping):
    """Answers as a list or as a mapping make a new turn; only what they led to is among its outputs."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?,c"), run_id="r"))
    yes, no = paused.pending_requests
    responses = {no.request_id: False, yes.request_id: True} if as_mapping else [no.answer(False), yes.answer(True)]
    result = run(workflow.run(checkpoint=paused, responses=responses))
    assert paused.outputs == ["1: c"]
    assert result.outputs == ["1: a? yes", "1: b? no"]
    assert (result.turn, result.status, result.pending_requests) == (2, Status.IDLE, ())


@pytest.mark.parametrize("depth", [1, 3])
def test_row_3_what_was_not_answered_stays_open(world, anywhere, depth):
    """One of two answers is enough to go on; the other request stays open under its id."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    result = run(workflow.run(checkpoint=paused, responses=[second.answer(True)]))
    assert result.outputs == ["1: b? yes"]
    assert [request.request_id for request in result.pending_requests] == [first.request_id]
    last = run(workflow.run(checkpoint=result, responses=[first.answer(True)]))
    assert (last.outputs, last.status, last.turn) == (["1: a? yes"], Status.IDLE, 3)


# Rows 4 and 5: a message and a checkpoint, without and with answers ------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_row_4_a_message_is_a_new_turn_of_the_run(world, anywhere, depth):
    """The message goes to the start executor of the restored run; earlier outputs are not given again."""
    workflow = desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first))
    assert (first.outputs, second.outputs) == (["1: a"], ["2: b"])
    assert (second.turn, second.run_id, second.status) == (2, "r", Status.IDLE)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_row_5_answers_and_message_in_one_call(world, anywhere, depth):
    """One call answers one of two questions and brings a message; the other question stays open."""
    workflow = desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a?,b?"), run_id="r"))
    left, taken = first.pending_requests
    second = run(workflow.run(Note("c"), checkpoint=first, responses=[taken.answer(True)], on_pending="keep"))
    assert second.outputs == ["1: b? yes", "2: c"]
    assert [request.request_id for request in second.pending_requests] == [left.request_id]


# Rows 6 and 8: what has no meaning -------------------------------------------------------------------------------


def test_row_6_a_message_and_answers_need_a_checkpoint(world, anywhere):
    """Without a checkpoint a message with answers is a `ValueError` that says to name it, or `"latest"`."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    with pytest.raises(ValueError, match=r"checkpoint.*\"latest\""):
        run(workflow.run(Note("b"), run_id="r", responses=[paused.pending_requests[0].answer(True)]))
    assert world.diary == ["intake a?", "clerk a?"]


@pytest.mark.parametrize("arguments", [{}, {"run_id": "r"}, {"run_args": 1}])
def test_row_8_nothing_given_lists_the_choices(world, anywhere, arguments):
    """Neither message nor checkpoint nor answers is a `ValueError` that lists what can be given."""
    with pytest.raises(ValueError, match="message") as error:
        run(desk(world, anywhere).run(**arguments))
    assert all(word in str(error.value) for word in ("new run", "checkpoint=", "responses=", "new turn"))


# Row 7: answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("run_id", [None, "r"])
def test_row_7_answers_find_their_run(world, store, depth, run_id):
    """Answers alone are taken at the head of the run that the call names, or that their request ids lead to."""
    workflow = desk(world, store, depth=depth)
    run(workflow.run(Note("x?"), run_id="other"))
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    answers = [request.answer(True) for request in paused.pending_requests]
    result = run(workflow.run(responses=answers, run_id=run_id))
    assert (result.run_id, result.outputs) == ("r", ["1: a? yes", "1: b? yes"])


def test_row_7_goes_on_at_the_head(world, store):
    """The answer is taken where the run stands now, not where the question was asked."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep"))
    result = run(workflow.run(responses=[paused.pending_requests[0].answer(True)]))
    assert (result.turn, result.outputs, result.checkpoint.state["heard"]) == (3, ["1: a? yes"], 2)


def test_row_7_takes_the_policies_as_row_3_does(world, store):
    """At its head, the other open requests are withdrawn where the call says so."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    result = run(workflow.run(responses=[paused.pending_requests[1].answer(True)], on_pending="cancel"))
    assert (result.outputs, result.pending_requests) == (["1: b? yes"], ())


def test_row_7_refuses_answers_of_two_runs(world, store):
    """Answers that belong to two runs are an error that names both, and none of them is taken."""
    workflow = desk(world, store)
    paused = [run(workflow.run(Note("a?"), run_id=run_id)) for run_id in ("one", "two")]
    before = run(everything(store))
    with pytest.raises(ValueError, match=r"'one'.*'two'"):
        run(workflow.run(responses=[before.pending_requests[0].answer(True) for before in paused]))
    assert run(everything(store)) == before


def test_row_7_refuses_what_it_cannot_find(world, store):
    """An unknown request, an answered one, another run's and another workflow's each have an error of their own."""
    workflow = desk(world, store)
    answered = run(workflow.run(Note("a?"), run_id="r")).pending_requests[0].answer(True)
    run(workflow.run(responses=[answered]))
    shop = run(desk(world, store, name="shop").run(Note("s?"), run_id="s")).pending_requests[0].answer(True)
    before = run(everything(store))
    world.diary.clear()
    wrong = [
        (UnknownRequestError, {"responses": {"f" * 32: True}}),
        (UnknownRequestError, {"responses": {"f" * 32: True}, "run_id": "r"}),
        (AlreadyAnsweredError, {"responses": [answered]}),
        (AlreadyAnsweredError, {"responses": [answered], "run_id": "r"}),
        (ForeignRequestError, {"responses": [shop], "run_id": "r"}),
        (ForeignCheckpointError, {"responses": [shop]}),
    ]
    for error, arguments in wrong:
        with pytest.raises(error):
            run(workflow.run(**arguments))
    assert world.diary == []
    assert run(everything(store)) == before


def test_row_7_needs_a_store():
    """Without a store no run can be found; the error says where one is given."""
    with pytest.raises(ValueError, match="checkpoint_storage"):
        run(desk(World()).run(responses={"f" * 32: True}))
