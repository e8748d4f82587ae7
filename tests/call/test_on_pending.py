"""A new message that finds open requests: kept, withdrawn or refused, at every depth."""

import asyncio
import logging

import pytest

from rehydrate import Status
from rehydrate.errors import PendingRequestsError, RequestCancelledError
from rehydrate.model.events import RequestsCancelled, RequestsKept, ScopeEnded
from tests.call.desk import Note, desk, panel, solo, team, uneven
from tests.call.stops import failed
from tests.call.stores import everything

run = asyncio.run


def kept(result):
    """The ids that each event of kept requests names."""
    return [event.request_ids for event in result.events if isinstance(event, RequestsKept)]


def withdrawn(result):
    """The ids that each event of withdrawn requests names."""
    return [event.request_ids for event in result.events if isinstance(event, RequestsCancelled)]


def warnings(caplog):
    """The warnings that were logged."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# not given, keep -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_not_given_keeps_them_and_says_so_once(world, anywhere, depth, caplog):
    """The questions stay open; one event and one logged warning name them."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    assert warnings(caplog) == []
    result = run(workflow.run(Note("c"), checkpoint=paused))
    ids = tuple(request.request_id for request in paused.pending_requests)
    assert result.outputs == ["2: c"]
    assert result.pending_requests == paused.pending_requests
    assert result.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert kept(result) == [ids]
    (warning,) = warnings(caplog)
    assert all(request_id in warning for request_id in ids)
    assert {record.name.split(".")[0] for record in caplog.records} == {"rehydrate"}


def test_not_given_says_so_in_a_stream_too(world, anywhere, caplog):
    """A stream has the same one event, and the warning is logged once."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))

    async def streamed():
        return [event async for event in workflow.run(Note("b"), checkpoint=paused, stream=True)]

    found = [event.request_ids for event in run(streamed()) if isinstance(event, RequestsKept)]
    assert found == [(paused.pending_requests[0].request_id,)]
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("depth", [1, 3])
def test_not_given_names_only_what_this_call_does_not_answer(world, anywhere, depth, caplog):
    """A request that is answered in the same call is not among the kept ones."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    result = run(workflow.run(Note("c"), checkpoint=paused, responses=[first.answer(True)]))
    assert kept(result) == [(second.request_id,)]
    (warning,) = warnings(caplog)
    assert (second.request_id in warning, first.request_id in warning) == (True, False)


@pytest.mark.parametrize("depth", [1, 3])
def test_keep_given_says_nothing(world, anywhere, depth, caplog):
    """Whoever asks for it is not told."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep"))
    assert (result.outputs, result.pending_requests) == (["2: b"], paused.pending_requests)
    assert (kept(result), warnings(caplog)) == ([], [])


def test_nothing_is_said_where_there_is_nothing_to_say(world, anywhere, caplog):
    """All answered in the call, answers without a message, a continuation, no open request: no event, no warning."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    again = run(workflow.run(checkpoint=paused))
    answered = run(workflow.run(checkpoint=paused, responses=[first.answer(True)]))
    done = run(workflow.run(Note("c"), checkpoint=answered, responses=[second.answer(True)]))
    last = run(workflow.run(Note("d"), checkpoint=done))
    assert [kept(result) for result in (again, answered, done, last)] == [[], [], [], []]
    assert warnings(caplog) == []


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_kept_request_can_be_answered_later(world, anywhere, depth):
    """Two turns later the question still has its id, and the answer goes to whoever asked."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep"))
    third = run(workflow.run(Note("c?"), checkpoint=second, on_pending="keep"))
    assert [request.data.text for request in third.pending_requests] == ["a?", "c?"]
    answers = [request.answer(True) for request in third.pending_requests]
    assert run(workflow.run(checkpoint=third, responses=answers)).outputs == ["1: a? yes", "3: c? yes"]


# cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_cancel_withdraws_them_and_ends_their_scopes(world, anywhere, depth):
    """The questions are gone with one event; every scope that had nothing else to do has ended."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    result = run(workflow.run(Note("c"), checkpoint=paused, on_pending="cancel"))
    assert (result.outputs, result.pending_requests, result.status) == (["2: c"], (), Status.IDLE)
    assert withdrawn(result) == [tuple(request.request_id for request in paused.pending_requests)]
    ended = [event.path for event in result.events if isinstance(event, ScopeEnded)]
    of_the_first = ["inner#1", "inner#1/inner#1"][: depth - 1]
    assert {path for path in ended if path.startswith("inner#1")} == set(of_the_first)
    assert [entry for entry in world.diary if entry.startswith("clerk")] == ["clerk a?,b?", "clerk c"]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_withdrawn_request_cannot_be_answered(world, anywhere, depth):
    """A late answer is its own error and changes nothing."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="cancel"))
    with pytest.raises(RequestCancelledError) as error:
        run(workflow.run(checkpoint=result, responses=[paused.pending_requests[0].answer(True)]))
    assert error.value.request_id == paused.pending_requests[0].request_id
    assert run(workflow.run(checkpoint=result)).checkpoint_id == result.checkpoint_id


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", [None, Note("c")])
def test_cancel_leaves_this_calls_answers(world, anywhere, depth, message):
    """One question is answered, the other withdrawn, with a message and without."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    result = run(workflow.run(message, checkpoint=paused, responses=[first.answer(True)], on_pending="cancel"))
    assert result.outputs == (["1: a? yes"] if message is None else ["1: a? yes", "2: c"])
    assert (withdrawn(result), result.status) == ([(second.request_id,)], Status.IDLE)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_cancel_frees_a_join_in_the_scope_that_asked(world, anywhere, depth):
    """The join sees the withdrawn branch as skipped and fires with what it has, in a scope of any depth."""
    workflow = team(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a right?"), run_id="r"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="cancel"))
    assert result.outputs == ["left a right?", "left b + right b"]
    assert (result.status, result.pending_requests) == (Status.IDLE, ())


@pytest.mark.parametrize("depth", [2, 3])
def test_cancel_frees_a_join_above_the_child_that_asked(world, anywhere, depth):
    """A child that ends because its question was withdrawn is a skipped branch of its parent's join."""
    workflow = panel(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="cancel"))
    assert (result.outputs, result.status) == (["helper a?", "0: b + helper b"], Status.IDLE)


@pytest.mark.parametrize("depth", [2, 3])
def test_cancel_frees_a_join_without_any_delivery(world, anywhere, depth):
    """The parent gets a superstep although no message came: an answer ends one child, the policy ends the other."""
    workflow = panel(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a?"), run_id="r"))
    second = run(workflow.run(Note("b?"), checkpoint=first, on_pending="keep"))
    answer = first.pending_requests[0].answer(True)
    result = run(workflow.run(checkpoint=second, responses=[answer], on_pending="cancel"))
    assert sorted(result.outputs) == ["0: a? yes + helper a?", "helper b?"]
    assert (result.status, result.pending_requests) == (Status.IDLE, ())


def test_cancel_leaves_what_a_join_waits_for_elsewhere(world, anywhere):
    """Withdrawing the question that a join waited for fires it with one half; the next turn gives a full pair."""
    workflow = uneven(world, anywhere)
    paused = run(workflow.run(Note("a right?"), run_id="r"))
    result = run(workflow.run(Note("b"), checkpoint=paused, on_pending="cancel"))
    assert result.outputs == ["left a right?", "left b + right b"]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_cancel_beside_unfinished_work(world, anywhere, depth):
    """The question is withdrawn, the failed work is finished, and then the message is handled."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    result = run(workflow.run(Note("c"), checkpoint=stopped, on_pending="cancel"))
    assert (result.outputs, result.status, result.pending_requests) == (["2: b", "3: c"], Status.IDLE, ())


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_cancel_and_discard_together_leave_nothing(world, anywhere, depth):
    """Both policies in one call: questions and failed work are gone, and only the new message is handled."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    result = run(workflow.run(Note("c"), checkpoint=stopped, on_pending="cancel", on_unfinished="discard"))
    assert (result.outputs, result.status, result.pending_requests) == (["3: c"], Status.IDLE, ())
    if anywhere:
        assert run(anywhere.inspect(result.checkpoint_id)).next_executors == ()


def test_cancel_with_nothing_open_tells_nothing(world, anywhere):
    """Where no question is open there is no event."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first, on_pending="cancel"))
    assert (second.outputs, withdrawn(second)) == (["2: b"], [])


# reject ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("answers", [0, 1])
def test_reject_names_them_and_changes_nothing(world, anywhere, depth, answers):
    """The call is refused with the ids that it does not answer; the run is as it was."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    before = run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()
    world.diary.clear()
    responses = [request.answer(True) for request in paused.pending_requests[:answers]]
    with pytest.raises(PendingRequestsError, match="responses=") as error:
        run(workflow.run(Note("c"), checkpoint=paused, responses=responses, on_pending="reject"))
    assert error.value.requests == tuple(request.request_id for request in paused.pending_requests[answers:])
    assert world.diary == []
    assert (run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()) == before


@pytest.mark.parametrize("depth", [1, 3])
def test_reject_takes_a_call_that_leaves_none_open(world, anywhere, depth):
    """A call that answers all of them, and one that finds none, goes on."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    second = run(workflow.run(Note("b"), checkpoint=paused, responses=answers, on_pending="reject"))
    third = run(workflow.run(Note("c"), checkpoint=second, on_pending="reject"))
    assert (second.outputs, third.outputs) == (["1: a? yes", "2: b"], ["3: c"])


def test_reject_of_answers_alone_needs_all_of_them(world, anywhere):
    """Without a message the policy holds, too: an answer to one of two questions is refused."""
    workflow = solo(world, anywhere)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    with pytest.raises(PendingRequestsError):
        run(workflow.run(checkpoint=paused, responses=[first.answer(True)], on_pending="reject"))
    both = [first.answer(True), second.answer(False)]
    result = run(workflow.run(checkpoint=paused, responses=both, on_pending="reject"))
    assert result.outputs == ["0: a? yes", "0: b? no"]
