"""`fork=True`: a copy of a run under a new id, from its head or from an earlier checkpoint."""

import asyncio
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, handler, response_handler
from rehydrate.errors import (
    AlreadyAnsweredError,
    CheckpointNotFoundError,
    ForeignRequestError,
    GraphChangedError,
    PendingRequestsError,
    RunExistsError,
    RunFailedError,
    UnknownRequestError,
)
from rehydrate.model.events import RequestOpened
from tests.call.desk import Note, Query, desk, team
from tests.call.stops import failed, interrupted
from tests.call.stores import everything

run = asyncio.run


async def of_run(store, run_id):
    """Return what a store holds of one run."""
    return [await store.load(header.checkpoint_id) for header in await store.history(run_id)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_fork_of_the_head_goes_its_own_way(world, anywhere, depth):
    """Source and copy go on independently under two ids; neither sees the other's turns."""
    workflow = desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a"), run_id="r"))
    copy = run(workflow.run(Note("b"), checkpoint=first, fork=True, run_id="copy"))
    source = run(workflow.run(Note("c"), checkpoint=first))
    again = run(workflow.run(Note("d"), checkpoint=copy))
    assert [(r.run_id, r.outputs) for r in (copy, source, again)] == [
        ("copy", ["2: b"]), ("r", ["2: c"]), ("copy", ["3: d"]),
    ]  # fmt: skip


def test_a_fork_leaves_its_source_as_it_was(world, store):
    """Not a byte of the source changes, whatever the copy does."""
    workflow = desk(world, store, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(of_run(store, "r"))
    answers = [paused.pending_requests[0].answer(True)]
    run(workflow.run(Note("b"), checkpoint=paused, responses=answers, fork=True, run_id="copy"))
    assert run(of_run(store, "r")) == before
    assert [row.run_id for row in run(store.runs())] == ["copy", "r"]


def test_a_fork_of_an_earlier_checkpoint(world, store):
    """Every checkpoint can be forked; the copy goes on from there and knows nothing of what came after."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first))
    copy = run(workflow.run(Note("c"), checkpoint=first.checkpoint_id, fork=True, run_id="copy"))
    assert (copy.outputs, copy.turn, dict(copy.checkpoint.state)["seen"]) == (["2: c"], 2, ["a", "c"])
    assert run(store.head("r")).header.checkpoint_id == second.checkpoint_id


def test_a_fork_of_every_checkpoint_of_a_turn_reaches_its_end(world, store):
    """Forks of all checkpoints, those in the middle of a turn too, end with the outputs of the source."""
    workflow = team(world, store, depth=2)
    done = run(workflow.run(Note("a"), run_id="r"))
    history = run(store.history("r"))
    assert len(history) > 3
    copies = [run(workflow.run(checkpoint=header.checkpoint_id, fork=True)) for header in history]
    assert {tuple(copy.outputs) for copy in copies} == {tuple(done.outputs)} == {("left a + right a",)}
    assert len({copy.run_id for copy in copies}) == len(history)


def test_a_fork_of_the_latest(world, store):
    """Beside `"latest"` the run id is the source's; the copy gets an id of its own."""
    workflow = desk(world, store)
    run(workflow.run(Note("a"), run_id="r"))
    copies = [run(workflow.run(Note("b"), checkpoint="latest", run_id="r", fork=True)) for _ in range(2)]
    assert [copy.outputs for copy in copies] == [["2: b"], ["2: b"]]
    assert len({"r", *(copy.run_id for copy in copies)}) == 3


def test_a_fork_without_a_run_id_gets_one(world, anywhere):
    """Each such call is a new copy with a random id."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a"), run_id="r"))
    copies = [run(workflow.run(Note("b"), checkpoint=first, fork=True)) for _ in range(2)]
    assert len({"r", *(copy.run_id for copy in copies)}) == 3


def test_a_fork_under_an_id_that_exists_is_refused(world, store):
    """The new id must be free, the source's own included; nothing is copied."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    run(workflow.run(Note("x"), run_id="other"))
    before = run(everything(store))
    for run_id in ("r", "other"):
        with pytest.raises(RunExistsError):
            run(workflow.run(Note("b"), checkpoint=first, fork=True, run_id=run_id))
    assert run(everything(store)) == before


# Requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", [None, Note("b")])
def test_the_call_that_forks_answers_by_the_old_ids(world, anywhere, depth, message):
    """Old ids are taken by the forking call; the question stays open in the source and can be answered there."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    request = paused.pending_requests[0]
    yes = run(workflow.run(message, checkpoint=paused, responses=[request.answer(True)], fork=True, run_id="copy"))
    no = run(workflow.run(checkpoint=paused, responses=[request.answer(False)]))
    assert yes.outputs == (["1: a? yes"] if message is None else ["1: a? yes", "2: b"])
    assert (no.outputs, no.run_id, yes.pending_requests, no.pending_requests) == (["1: a? no"], "r", (), ())


@pytest.mark.parametrize("depth", [1, 3])
def test_a_fork_asks_under_new_ids(world, store, depth):
    """What stays open has the same place and data and a new id; the old id is another run's afterwards."""
    workflow = desk(world, store, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    copy = run(workflow.run(Note("b"), checkpoint=paused, fork=True, run_id="copy", on_pending="keep"))
    (old,), (new,) = paused.pending_requests, copy.pending_requests
    assert (new.path, new.executor_id, new.data) == (old.path, old.executor_id, old.data)
    assert new.request_id != old.request_id
    with pytest.raises(ForeignRequestError):
        run(workflow.run(checkpoint=copy, responses=[old.answer(True)]))
    assert run(workflow.run(responses=[new.answer(True)])).run_id == "copy"
    assert run(workflow.run(responses=[old.answer(False)])).run_id == "r"


def test_a_fork_without_input_surfaces_its_requests(world, anywhere):
    """A bare fork of a paused run is a run of its own, paused at the same question under its new id, told once."""
    workflow = desk(world, anywhere, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    copy = run(workflow.run(checkpoint=paused, fork=True, run_id="copy"))
    told = [event.request_id for event in copy.events if isinstance(event, RequestOpened)]
    assert (copy.run_id, copy.status) == ("copy", Status.IDLE_WITH_PENDING_REQUESTS)
    assert told == [copy.pending_requests[0].request_id] != [paused.pending_requests[0].request_id]
    assert world.diary == ["intake a?", "clerk a?"]
    if anywhere:
        assert run(anywhere.head("copy")).header.checkpoint_id == copy.checkpoint_id
    answer = copy.pending_requests[0].answer(True)
    assert run(workflow.run(checkpoint=copy, responses=[answer])).outputs == ["1: a? yes"]


def test_a_bare_fork_of_a_finished_run_is_finished(world, store):
    """The copy holds what the source held: its outputs are there and nothing runs."""
    workflow = desk(world, store)
    done = run(workflow.run(Note("a"), run_id="r"))
    copy = run(workflow.run(checkpoint=done, fork=True, run_id="copy"))
    assert (copy.outputs, copy.status) == (["1: a"], Status.IDLE)
    assert run(workflow.run(checkpoint="latest", run_id="copy")).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a"]


def test_a_fork_of_a_fork(world, store):
    """Answers of the first copy are answered in the second; ids differ in all three."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    one = run(workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)], fork=True))
    left = one.pending_requests[0]
    two = run(workflow.run(checkpoint=one, responses=[left.answer(True)], fork=True))
    assert (one.outputs, two.outputs) == (["1: a? yes"], ["1: b? yes"])
    assert len({r.run_id for r in (paused, one, two)}) == 3
    assert run(workflow.run(responses=[left.answer(False)])).outputs == ["1: b? no"]


def test_what_was_answered_before_a_fork_is_answered_in_it(world, store):
    """A fork of a later checkpoint refuses the old id as answered; a fork of the earlier one takes it."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answer = paused.pending_requests[0].answer(True)
    later = run(workflow.run(checkpoint=paused, responses=[answer]))
    with pytest.raises(AlreadyAnsweredError):
        run(workflow.run(checkpoint=later, responses=[answer], fork=True))
    assert run(workflow.run(checkpoint=paused, responses=[answer], fork=True)).outputs == ["1: a? yes"]


# What else is its own --------------------------------------------------------------------------------------------


class Payer(Executor):
    """Yields the key that it would hand to a bank."""

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(Query(note.text), response_type=bool)

    @response_handler
    async def on_answer(self, query: Query, yes: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(ctx.effect_key)


def test_effect_keys_differ_between_source_and_copy(anywhere):
    """The same invocation has another `effect_key` in the copy, so an outside system sees two effects."""
    workflow = WorkflowBuilder(name="pay", start_executor=Payer("payer"), checkpoint_storage=anywhere).build()
    paused = run(workflow.run(Note("a"), run_id="r"))
    answers = [paused.pending_requests[0].answer(True)]
    copy = run(workflow.run(checkpoint=paused, responses=answers, fork=True, run_id="copy"))
    source = run(workflow.run(checkpoint=paused, responses=answers))
    assert len({copy.output, source.output}) == 2


@pytest.mark.parametrize("message", [None, Note("b")])
def test_keys_are_not_copied(world, store, message):
    """The key of the source's turn still leads to the source, and the copy goes on without it."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r", idempotency_key="k"))
    copy = run(workflow.run(message, checkpoint=first, fork=True, run_id="copy"))
    again = run(workflow.run(Note("a"), run_id="r", idempotency_key="k"))
    assert (copy.run_id, again.run_id, again.replayed, again.outputs) == ("copy", "r", True, ["1: a"])
    assert run(workflow.run(Note("c"), checkpoint=copy)).run_id == "copy"


def test_keys_of_an_unfinished_turn_are_not_copied(world, store):
    """A fork of a failed keyed turn finishes it in the copy; the key still leads to the failed turn of the source."""
    workflow = desk(world, store)
    stopped = failed(world, workflow, "clerk a", Note("a"), run_id="r", idempotency_key="k")
    copy = run(workflow.run(checkpoint=stopped, fork=True, run_id="copy"))
    source = run(workflow.run(Note("a"), run_id="r", idempotency_key="k"))
    assert [(r.run_id, r.outputs, r.replayed) for r in (copy, source)] == [
        ("copy", ["1: a"], False), ("r", ["1: a"], False),
    ]  # fmt: skip


def test_a_fork_with_a_key_happens_once(world, store):
    """Its run id comes from the key; the same call again gives the recorded result of the copy."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    call = {"checkpoint": first, "fork": True, "idempotency_key": "k"}
    copy = run(workflow.run(Note("b"), **call))
    again = run(workflow.run(Note("b"), **call))
    assert (again.run_id, again.checkpoint_id, again.replayed) == (copy.run_id, copy.checkpoint_id, True)
    assert world.diary.count("intake b") == 1


# Unfinished work -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_finished_invocations_of_an_unfinished_superstep_are_taken_over(world, anywhere, depth):
    """The copy runs only what had not finished; the source, continued later, does the same."""
    workflow = team(world, anywhere, depth=depth)
    stopped = failed(world, workflow, "right a", Note("a"), run_id="r")
    world.diary.clear()
    copy = run(workflow.run(checkpoint=stopped, fork=True, run_id="copy"))
    source = run(workflow.run(checkpoint=stopped))
    assert copy.outputs == source.outputs == ["left a + right a"]
    assert (copy.run_id, source.run_id) == ("copy", "r")
    assert world.diary == ["right a", "join 2"] * 2


def test_a_fork_with_a_message_finishes_or_discards_in_the_copy(world, anywhere):
    """The policies hold in the copy; the source keeps its unfinished work."""
    workflow = team(world, anywhere)
    stopped = failed(world, workflow, "right a", Note("a"), run_id="r")
    finished = run(workflow.run(Note("b"), checkpoint=stopped, fork=True))
    dropped = run(workflow.run(Note("b"), checkpoint=stopped, fork=True, on_unfinished="discard"))
    assert finished.outputs == ["left a + right a", "left b + right b"]
    assert dropped.outputs == ["left b + right b"]
    assert run(workflow.run(checkpoint=stopped)).outputs == ["left a + right a"]


def test_a_fork_that_stopped_is_continued_by_the_same_call(world, store):
    """Failed or interrupted, the fork with a run id is the same copy when it is called again."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    call = {"checkpoint": first, "fork": True, "run_id": "copy"}
    stopped = failed(world, workflow, "clerk b", Note("b"), **call)
    result = run(workflow.run(Note("b"), **call))
    assert (result.run_id, result.turn, result.outputs) == ("copy", stopped.turn, ["2: b"])
    with pytest.raises(RunExistsError):
        run(workflow.run(Note("b"), **call))
    interrupted(store, 1, workflow, Note("b"), **{**call, "run_id": "copy 2"})
    assert run(workflow.run(Note("b"), **{**call, "run_id": "copy 2"})).outputs == ["2: b"]


def test_a_fork_that_fails_leaves_the_source_alone(world, store):
    """The copy's failure is in the copy's run; the source goes on from its head."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    world.faults.add("clerk b")
    with pytest.raises(RunFailedError) as error:
        run(workflow.run(Note("b"), checkpoint=first, fork=True, run_id="copy"))
    assert error.value.run_id == "copy"
    assert run(workflow.run(Note("c"), checkpoint=first)).outputs == ["2: c"]


def test_a_wrong_fork_copies_nothing(world, store):
    """A fork is checked as every call is, and nothing is stored where it is refused."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(everything(store))
    wrong = [
        (CheckpointNotFoundError, {"checkpoint": "f" * 32}),
        (UnknownRequestError, {"checkpoint": paused, "responses": {"f" * 32: True}}),
        (PendingRequestsError, {"checkpoint": paused, "on_pending": "reject"}),
    ]
    for error, arguments in wrong:
        with pytest.raises(error):
            run(workflow.run(Note("b"), fork=True, run_id="copy", **arguments))
    with pytest.raises(GraphChangedError):
        run(desk(world, store, version=2).run(Note("b"), checkpoint=paused, fork=True))
    assert run(everything(store)) == before
