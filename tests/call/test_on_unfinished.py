"""A new message that finds unfinished work: finish, discard, reject, at every depth, however the work was left."""

import asyncio

import pytest

from rehydrate import Status
from rehydrate.errors import AlreadyAnsweredError, RunFailedError, UnfinishedWorkError
from rehydrate.model.events import WorkDiscarded
from tests.call.desk import Note, desk, panel, team, uneven
from tests.call.stops import cancelled, failed, interrupted
from tests.call.stores import everything

run = asyncio.run


def discarded(result):
    """What each event of dropped work names."""
    return [event.what for event in result.events if isinstance(event, WorkDiscarded)]


# finish ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [failed, cancelled])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("given", [{}, {"on_unfinished": "finish"}])
def test_finish_completes_the_superstep_and_delivers_the_message_in_the_next(world, anywhere, depth, stop, given):
    """The rest of the superstep runs, what was finished does not run again, and then the message is handled."""
    workflow = team(world, anywhere, depth=depth)
    stopped = stop(world, workflow, "right a", Note("a"), run_id="r")
    world.diary.clear()
    result = run(workflow.run(Note("b"), checkpoint=stopped, **given))
    assert result.outputs == ["left a + right a", "left b + right b"]
    assert (result.turn, result.status) == (2, Status.IDLE)
    assert sorted(world.diary) == ["join 2", "join 2", "left b", "right a", "right b", "split b"]
    assert world.diary.index("right a") < world.diary.index("split b")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_finish_goes_on_from_a_lost_process(world, store, depth):
    """A turn of which only the claim was saved is completed before the new message is handled; `"latest"` finds it."""
    workflow = desk(world, store, depth=depth)
    interrupted(store, 1, workflow, Note("a"), run_id="r")
    result = run(workflow.run(Note("b"), checkpoint="latest", run_id="r"))
    assert (result.outputs, result.turn) == (["1: a", "2: b"], 2)


def test_finish_goes_on_from_a_reached_limit(world, anywhere):
    """A new turn has fresh counters, so a run that had reached its limit completes the superstep and goes on."""
    short = desk(world, anywhere, max_supersteps=1)
    stopped = run(short.run(Note("a"), run_id="r"))
    assert stopped.status is Status.LIMIT_REACHED
    result = run(desk(world, anywhere, max_supersteps=3).run(Note("b"), checkpoint=stopped))
    assert (result.outputs, result.status) == (["1: a", "2: b"], Status.IDLE)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_message_waits_while_the_superstep_before_it_still_fails(world, anywhere, depth):
    """Where the work fails again the message is not lost: a continuation finishes the work and then handles it."""
    workflow = team(world, anywhere, depth=depth)
    stopped = failed(world, workflow, "right a", Note("a"), run_id="r")
    again = failed(world, workflow, "right a", Note("b"), checkpoint=stopped)
    assert again.turn == 2
    assert "split b" not in world.diary
    result = run(workflow.run(checkpoint=again))
    assert (result.outputs, result.turn) == (["left a + right a", "left b + right b"], 2)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(("policy", "outputs"), [
    ("finish", ["left a + right a", "left b + right b", "left c + right c"]), ("discard", ["left c + right c"]),
])  # fmt: skip
def test_a_message_that_still_waits_is_finished_or_dropped_with_the_rest(world, anywhere, depth, policy, outputs):
    """A third message finds the failed superstep and the second message behind it: both policies mean both."""
    workflow = team(world, anywhere, depth=depth)
    stopped = failed(world, workflow, "right a", Note("a"), run_id="r")
    again = failed(world, workflow, "right a", Note("b"), checkpoint=stopped)
    result = run(workflow.run(Note("c"), checkpoint=again, on_unfinished=policy))
    assert (result.outputs, result.turn, result.status) == (outputs, 3, Status.IDLE)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_answers_alone_finish_what_was_left(world, anywhere, depth):
    """Without a message the rest of the superstep runs too, and the answer is handled."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    result = run(workflow.run(checkpoint=stopped, responses=[paused.pending_requests[0].answer(True)]))
    assert sorted(result.outputs) == ["1: a? yes", "2: b"]
    assert (result.turn, result.status) == (3, Status.IDLE)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("pending", ["keep", "cancel"])
def test_finish_in_a_scope_that_has_a_failed_answer_and_an_open_request(world, anywhere, depth, pending):
    """The failed answer is handled, and the other question of the same scope is kept or withdrawn."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    stopped = failed(world, workflow, "clerk a? yes", checkpoint=paused, responses=[first.answer(True)])
    result = run(workflow.run(Note("c"), checkpoint=stopped, on_pending=pending))
    assert result.outputs == ["1: a? yes", "2: c"]
    assert [r.request_id for r in result.pending_requests] == ([second.request_id] if pending == "keep" else [])


@pytest.mark.parametrize("depth", [2, 3])
def test_finish_goes_on_in_a_child_at_its_limit(world, anywhere, depth):
    """A limit that was reached inside a child starts anew with the message, and both messages are handled."""
    short = team(world, anywhere, depth=depth, max_supersteps=1)
    stopped = run(short.run(Note("a"), run_id="r"))
    assert stopped.status is Status.LIMIT_REACHED
    result = run(team(world, anywhere, depth=depth).run(Note("b"), checkpoint=stopped))
    assert result.outputs == ["left a + right a", "left b + right b"]


def test_outputs_of_an_interrupted_turn_stay_and_come_first(world, store):
    """No call has had the outputs of a turn whose process was lost, so the next turn gives them with its own."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    interrupted(store, 2, workflow, Note("b"), checkpoint=paused, responses=answers)
    result = run(workflow.run(Note("c"), checkpoint="latest", run_id="r"))
    assert result.outputs == ["1: a? yes", "2: b", "3: c"]


def test_outputs_of_a_failed_turn_are_not_given_again(world, anywhere):
    """The failed call had its outputs in its error, so the next turn gives only what came since."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, responses=answers)
    result = run(workflow.run(Note("c"), checkpoint=stopped))
    assert (stopped.outputs, result.outputs) == (["1: a? yes"], ["2: b", "3: c"])


# discard ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [failed, cancelled])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_discard_drops_the_superstep_with_its_finished_invocations(world, anywhere, depth, stop):
    """Nothing of the unfinished superstep is seen again, not even what had finished; one event names all of it."""
    workflow = team(world, anywhere, depth=depth)
    stopped = stop(world, workflow, "right a", Note("a"), run_id="r")
    world.diary.clear()
    result = run(workflow.run(Note("b"), checkpoint=stopped, on_unfinished="discard"))
    assert result.outputs == ["left b + right b"]
    assert sorted(world.diary) == ["join 2", "left b", "right b", "split b"]
    assert result.status is Status.IDLE
    (what,) = discarded(result)
    inside = "inner#1/" * (depth - 1)
    assert {f"{inside}left#1", f"{inside}right#1"} <= set(what)
    assert run(workflow.run(checkpoint=result)).checkpoint_id == result.checkpoint_id


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_discard_keeps_committed_state(world, anywhere, depth):
    """Case 57: what a barrier had committed before the failure stays; the conversation goes on with the next note."""
    workflow = desk(world, anywhere, depth=depth)
    stopped = failed(world, workflow, "clerk a", Note("a"), run_id="r")
    result = run(workflow.run(Note("b"), checkpoint=stopped, on_unfinished="discard"))
    assert result.outputs == ["2: b"]
    assert world.diary.count("clerk a") == 1


def test_discard_drops_what_a_lost_process_left(world, store):
    """A message that was claimed and never handled is dropped, too."""
    workflow = desk(world, store)
    interrupted(store, 1, workflow, Note("a"), run_id="r")
    world.diary.clear()
    result = run(workflow.run(Note("b"), checkpoint="latest", run_id="r", on_unfinished="discard"))
    assert (result.outputs, world.diary) == (["1: b"], ["intake b", "clerk b"])
    assert discarded(result) == [("intake#1",)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_discard_keeps_open_requests_and_their_scopes(world, anywhere, depth):
    """A question asked before stays open and can be answered, while the work that failed beside it is gone."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    third = run(workflow.run(Note("c"), checkpoint=stopped, on_unfinished="discard", on_pending="keep"))
    assert third.outputs == ["3: c"]
    assert [request.request_id for request in third.pending_requests] == [paused.pending_requests[0].request_id]
    last = run(workflow.run(checkpoint=third, responses=[third.pending_requests[0].answer(True)]))
    assert (last.outputs, last.status) == (["1: a? yes"], Status.IDLE)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_discard_in_a_scope_with_an_open_request_drops_only_the_work(world, anywhere, depth):
    """An answer that an earlier call brought and whose handler failed is dropped; the other question stays open."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    first, second = paused.pending_requests
    stopped = failed(world, workflow, "clerk a? yes", checkpoint=paused, responses=[first.answer(True)])
    third = run(workflow.run(Note("c"), checkpoint=stopped, on_unfinished="discard", on_pending="keep"))
    assert third.outputs == ["2: c"]
    assert [request.data.text for request in third.pending_requests] == ["b?"]
    with pytest.raises(AlreadyAnsweredError):
        run(workflow.run(checkpoint=third, responses=[first.answer(True)]))
    assert run(workflow.run(checkpoint=third, responses=[second.answer(True)])).outputs == ["1: b? yes"]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", [None, Note("c")])
def test_discard_keeps_the_answers_of_its_own_call(world, anywhere, depth, message):
    """An answer in the call that discards is taken and handled; the failed work is dropped."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    answers = [paused.pending_requests[0].answer(True)]
    result = run(workflow.run(message, checkpoint=stopped, responses=answers, on_unfinished="discard"))
    assert result.outputs == (["1: a? yes"] if message is None else ["1: a? yes", "3: c"])
    assert result.status is Status.IDLE
    assert world.diary.count("clerk b") == 1


def test_discard_drops_what_a_join_holds_of_a_dropped_trail(world, anywhere):
    """A half-filled join forgets the branch whose other half was dropped, so turns do not mix."""
    workflow = uneven(world, anywhere)
    stopped = failed(world, workflow, "late right a", Note("a"), run_id="r")
    result = run(workflow.run(Note("b"), checkpoint=stopped, on_unfinished="discard"))
    assert (result.outputs, result.status) == (["left b + right b"], Status.IDLE)


def test_discard_keeps_what_a_join_holds_of_a_trail_with_an_open_request(world, anywhere):
    """A half-filled join whose other half waits for an answer keeps its half, and fires with both after the answer."""
    workflow = uneven(world, anywhere)
    paused = run(workflow.run(Note("a right?"), run_id="r"))
    stopped = failed(world, workflow, "late right b", Note("b"), checkpoint=paused, on_pending="keep")
    third = run(workflow.run(Note("c"), checkpoint=stopped, on_unfinished="discard", on_pending="keep"))
    assert third.outputs == ["left c + right c"]
    last = run(workflow.run(checkpoint=third, responses=[paused.pending_requests[0].answer(True)]))
    assert last.outputs == ["left a right? + right a right? yes"]


@pytest.mark.parametrize("depth", [2, 3])
def test_discard_drops_a_child_and_the_branch_beside_it(world, anywhere, depth):
    """A child that fails beside a delivered branch: both are dropped, and the next message fills the join anew."""
    workflow = panel(world, anywhere, depth=depth)
    stopped = failed(world, workflow, "clerk a", Note("a"), run_id="r")
    result = run(workflow.run(Note("b"), checkpoint=stopped, on_unfinished="discard"))
    assert result.outputs == ["0: b + helper b"]


def test_discard_with_nothing_unfinished_tells_nothing(world, anywhere):
    """On an idle run the policy has nothing to drop, and no event says otherwise."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first, on_unfinished="discard"))
    assert (second.outputs, discarded(second)) == (["2: b"], [])


# reject ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("answers", [True, False])
def test_reject_names_where_work_is_left_and_changes_nothing(world, anywhere, depth, answers):
    """The call is refused with the paths of the unfinished scopes; the run is as it was and can be continued."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=paused, on_pending="keep")
    before = run(everything(anywhere)) if anywhere else stopped.checkpoint.to_bytes()
    world.diary.clear()
    responses = [paused.pending_requests[0].answer(True)] if answers else None
    with pytest.raises(UnfinishedWorkError, match="finish") as error:
        run(workflow.run(Note("c"), checkpoint=stopped, responses=responses, on_unfinished="reject"))
    assert "/".join(["inner#2", "inner#1"][: depth - 1]) in error.value.where
    assert world.diary == []
    assert (run(everything(anywhere)) if anywhere else stopped.checkpoint.to_bytes()) == before
    assert run(workflow.run(checkpoint=stopped)).outputs == ["2: b"]


def test_reject_takes_a_message_where_nothing_is_left(world, anywhere):
    """On an idle run, with open requests or without, the message is taken."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a?"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first, on_unfinished="reject", on_pending="keep"))
    assert second.outputs == ["2: b"]


def test_a_turn_that_failed_for_good_does_not_end_the_conversation(world, anywhere):
    """Turn 2 can never succeed; turn 3 drops it, and turns 3 and 4 run."""
    workflow = desk(world, anywhere, depth=2)
    first = run(workflow.run(Note("a"), run_id="r"))
    world.faults.add("clerk b")
    with pytest.raises(RunFailedError) as error:
        run(workflow.run(Note("b"), checkpoint=first))
    third = run(workflow.run(Note("c"), checkpoint=error.value.result, on_unfinished="discard"))
    fourth = run(workflow.run(Note("d"), checkpoint=third))
    assert (third.outputs, fourth.outputs, fourth.turn) == (["3: c"], ["4: d"], 4)
