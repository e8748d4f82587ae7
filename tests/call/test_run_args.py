"""Run arguments: recorded with the turn, the same at every depth, kept or replaced by what the call is."""

import asyncio

import pytest

from rehydrate.errors import RunFailedError
from tests.call.envoys import Errand, Settings, Teller, nested
from tests.call.stops import interrupted

run = asyncio.run


def tellers(store, depth=3):
    """Make a teller at a depth."""
    return nested(Teller("teller"), store, depth)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_they_reach_every_depth_with_value_and_type(anywhere, depth):
    """What the call gave is read by the innermost executor, equal in value and type."""
    given = Settings("acme", ("a", "b"))
    result = run(tellers(anywhere, depth).run(Errand("a"), run_args=given))
    assert result.outputs == [f"a: {given}"]


def test_each_read_is_a_copy(anywhere):
    """A handler that changes what it got changes nothing, for itself neither; the caller's object stays as it is."""
    given = {"n": [1]}
    result = run(tellers(anywhere).run(Errand("a"), run_args=given))
    assert result.outputs == ["a: {'n': [1]}", "a: {'n': [1]}"]
    assert given == {"n": [1]}


def test_without_any_they_are_none(anywhere):
    """A call that gives none has none."""
    assert run(tellers(anywhere).run(Errand("a"))).outputs == ["a: None"]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(("given", "seen"), [(None, "'old'"), (Settings("new"), "Settings")])
def test_answers_alone_keep_them_unless_the_call_gives_some(anywhere, depth, given, seen):
    """A turn of answers reads the recorded ones, or those that it brings."""
    workflow = tellers(anywhere, depth)
    paused = run(workflow.run(Errand("a?"), run_args="old"))
    answers = [paused.pending_requests[0].answer(True)]
    result = run(workflow.run(checkpoint=paused, responses=answers, run_args=given))
    assert result.outputs == [f"a? answered: {'old' if given is None else given}"]
    assert seen in repr("old" if given is None else given)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("given", [None, "new"])
def test_with_a_message_they_are_those_of_the_call(anywhere, depth, answered, given):
    """A new message never reads an earlier turn's, not even where the call gives none, and neither do its answers."""
    workflow = tellers(anywhere, depth)
    paused = run(workflow.run(Errand("a?"), run_args="old"))
    answers = [paused.pending_requests[0].answer(True)] if answered else None
    result = run(workflow.run(Errand("b"), checkpoint=paused, responses=answers, run_args=given, on_pending="keep"))
    assert result.outputs == ([f"a? answered: {given}"] if answered else []) + [f"b: {given}"]


def test_an_answer_reads_those_of_the_newest_turn(anywhere):
    """A question of turn 1 that is answered after turn 2 reads what turn 2 recorded."""
    workflow = tellers(anywhere)
    paused = run(workflow.run(Errand("a?"), run_args="first"))
    second = run(workflow.run(Errand("b"), checkpoint=paused, run_args="second", on_pending="keep"))
    third = run(workflow.run(checkpoint=second, responses=[second.pending_requests[0].answer(True)]))
    assert third.outputs == ["a? answered: second"]


@pytest.mark.parametrize("given", [None, "new"])
def test_a_continuation_keeps_them_unless_the_call_gives_some(store, given):
    """What was interrupted goes on with the recorded ones, or with those of the call, which are recorded in turn."""
    workflow = tellers(store)
    run_id = interrupted(store, 1, workflow, Errand("a?"), run_args="old")
    continued = run(workflow.run(checkpoint="latest", run_id=run_id, run_args=given))
    expected = given or "old"
    assert continued.outputs == [f"a?: {expected}"]
    answered = run(workflow.run(checkpoint=continued, responses=[continued.pending_requests[0].answer(True)]))
    assert answered.outputs == [f"a? answered: {expected}"]


def test_the_same_call_again_keeps_its_own(store):
    """An interrupted turn that is called again reads what it was called with."""
    workflow = tellers(store)
    interrupted(store, 1, workflow, Errand("a"), run_id="r", run_args="mine")
    assert run(workflow.run(Errand("a"), run_id="r", run_args="mine")).outputs == ["a: mine"]


@pytest.mark.parametrize("given", [None, "new"])
def test_a_fork_keeps_them_as_its_row_does(anywhere, given):
    """A fork with answers alone reads the recorded ones, or those that it brings."""
    workflow = tellers(anywhere)
    paused = run(workflow.run(Errand("a?"), run_args="old"))
    answers = [paused.pending_requests[0].answer(True)]
    copy = run(workflow.run(checkpoint=paused, responses=answers, fork=True, run_args=given))
    assert copy.outputs == [f"a? answered: {given or 'old'}"]


@pytest.mark.parametrize("given", [0, "", False, {}, []])
def test_what_counts_as_false_is_given(anywhere, given):
    """Only `None` is none."""
    workflow = tellers(anywhere)
    paused = run(workflow.run(Errand("a?"), run_args="old"))
    answers = [paused.pending_requests[0].answer(True)]
    result = run(workflow.run(checkpoint=paused, responses=answers, run_args=given))
    assert result.outputs[0] == f"a? answered: {given}"


def test_they_are_there_in_a_failed_turn_that_is_continued(anywhere):
    """A failure keeps them for the continuation."""

    class Once(Teller):
        """Fails at its first errand."""

        failed = False

        def tell(self, what, ctx):
            if not type(self).failed:
                type(self).failed = True
                raise ValueError(what)
            super().tell(what, ctx)

    workflow = nested(Once("teller"), anywhere, 3)
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Errand("a"), run_args="kept"))
    assert run(workflow.run(checkpoint=failed.value.result)).outputs == ["a: kept"]
