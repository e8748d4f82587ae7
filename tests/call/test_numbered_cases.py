"""Cases 13, 15 to 20, 31 and 53: situations in which systems of this kind have failed their users."""

import asyncio

import pytest

from rehydrate import SqliteCheckpointStorage, Status, WorkflowBuilder, WorkflowContext, executor
from rehydrate.errors import (
    AlreadyAnsweredError,
    AnswerTypeError,
    CheckpointNotFoundError,
    ForeignRequestError,
    MessageTypeError,
    PendingRequestsError,
    UnknownRequestError,
)
from rehydrate.model.events import OutputYielded, RequestOpened, StatusChanged, TurnStarted
from tests.call.desk import Note, World, desk, panel, team
from tests.call.process import call_in_new_process
from tests.call.stops import failed
from tests.call.stores import everything

run = asyncio.run


# 13 --------------------------------------------------------------------------------------------------------------


def test_case_13_turn_2_is_one_call_and_one_response(world, store):
    """A checkpoint id and a message: one call, one response, and nothing of the hydration is visible in it."""
    workflow = desk(world, store, depth=2)
    first = run(workflow.run(Note("a,x?"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=first.checkpoint_id, on_pending="keep"))
    assert second.outputs == ["2: b"]
    events = second.events
    assert [event.data for event in events if isinstance(event, OutputYielded)] == ["2: b"]
    assert [event for event in events if isinstance(event, RequestOpened)] == []
    assert [type(event) for event in (events[0], events[-1])] == [TurnStarted, StatusChanged]
    assert (events[0].turn, events[0].continuation) == (2, False)


def test_case_13_a_bad_checkpoint_means_that_the_message_was_not_processed(world, store):
    """The error comes back, nothing ran, the store is as it was, and the good checkpoint takes the message."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    before = run(everything(store))
    with pytest.raises(CheckpointNotFoundError):
        run(workflow.run(Note("b"), checkpoint="0" * 32))
    assert world.diary == ["intake a", "clerk a"]
    assert run(everything(store)) == before
    assert run(workflow.run(Note("b"), checkpoint=first.checkpoint_id)).outputs == ["2: b"]


def test_case_13_turn_2_in_a_fresh_process(world, tmp_path):
    """The second turn arrives in a process that never saw the first; the third here again."""
    store = SqliteCheckpointStorage(tmp_path / "runs.db")
    workflow = desk(world, store, depth=3)
    first = run(workflow.run(Note("a?"), run_id="r"))
    request = first.pending_requests[0].request_id
    second = call_in_new_process(tmp_path, depth=3, text="b", checkpoint=first.checkpoint_id, responses={request: True})
    assert (second["outputs"], second["turn"]) == (["1: a? yes", "2: b"], 2)
    third = run(workflow.run(Note("c"), checkpoint=second["checkpoint"]))
    assert (third.outputs, third.turn) == (["3: c"], 3)
    run(store.close())


# 15 --------------------------------------------------------------------------------------------------------------


def test_case_15_a_hundred_turns_of_six_supersteps_under_a_limit_of_ten(anywhere):
    """Counters and run arguments are fresh after the restore, so the limit never adds up over the turns."""

    def link(name):
        @executor(id=name)
        async def step(text: str, ctx: WorkflowContext) -> str:
            return f"{text}.{ctx.run_args}"

        return step

    chain = [link(f"s{number}") for number in range(6)]
    builder = WorkflowBuilder(name="six", start_executor=chain[0], checkpoint_storage=anywhere, max_supersteps=10)
    workflow = builder.add_chain(chain).build()
    result = run(workflow.run("0", run_args=0))
    for number in range(1, 100):
        result = run(workflow.run(str(number), checkpoint=result, run_args=number))
        assert (result.status, result.outputs) == (Status.IDLE, [f"{number}" + f".{number}" * 6])
    assert result.turn == 100


# 16 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("policy", ["keep", "cancel", "reject"])
def test_case_16_a_paused_child_and_plain_new_input(world, anywhere, depth, policy):
    """By policy the question stays, is withdrawn, or the call is refused; the child never starts over."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    call = workflow.run(Note("b"), checkpoint=paused, on_pending=policy)
    if policy == "reject":
        with pytest.raises(PendingRequestsError):
            run(call)
        assert world.diary == ["intake a?", "clerk a?"]
        result = paused
    else:
        result = run(call)
        assert result.outputs == ["2: b"]
        assert world.diary == ["intake a?", "clerk a?", "intake b", "clerk b"]
    assert [request.data.text for request in result.pending_requests] == ([] if policy == "cancel" else ["a?"])
    assert world.diary.count("clerk a?") == 1
    if policy != "cancel":
        answered = run(workflow.run(checkpoint=result, responses=[paused.pending_requests[0].answer(True)]))
        assert answered.outputs == ["1: a? yes"]


def test_case_16_a_join_above_the_paused_child_does_not_double(world, anywhere):
    """Two inputs, one of them still waiting: after the answer the join has fired once for each, with its own pair."""
    workflow = panel(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    second = run(workflow.run(Note("b"), checkpoint=paused, on_pending="keep"))
    last = run(workflow.run(checkpoint=second, responses=[paused.pending_requests[0].answer(True)]))
    assert (second.outputs, last.outputs) == (["0: b + helper b"], ["0: a? yes + helper a?"])


# 17 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", [None, True])
def test_case_17_an_id_that_does_not_exist_leaves_the_head_untouched(world, store, responses):
    """An unknown checkpoint with an input is an error; the run beside it, named or not, stays where it was."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(everything(store))
    answers = [paused.pending_requests[0].answer(True)] if responses else None
    for run_id in (None, "r"):
        with pytest.raises(CheckpointNotFoundError):
            run(workflow.run(Note("b"), checkpoint="0" * 32, run_id=run_id, responses=answers))
    with pytest.raises(CheckpointNotFoundError):
        run(workflow.run(Note("b"), checkpoint="latest", run_id="no such run", responses=answers))
    assert run(everything(store)) == before
    assert [row.run_id for row in run(store.runs())] == ["r"]


# 18 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_case_18_a_double_click_while_another_question_is_open(world, store, depth):
    """The second click is "already answered", whichever checkpoint it names; the other question stays open."""
    workflow = desk(world, store, depth=depth)
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    clicked, other = paused.pending_requests
    click = [clicked.answer(True)]
    first = run(workflow.run(checkpoint=paused, responses=click))
    for arguments in (
        {"checkpoint": paused},
        {"checkpoint": first},
        {"checkpoint": "latest", "run_id": "r"},
        {"run_id": "r"},
        {},
    ):
        with pytest.raises(AlreadyAnsweredError) as error:
            run(workflow.run(responses=click, **arguments))
        assert error.value.request_id == clicked.request_id
    assert world.diary.count("clerk a? yes") == 1
    assert [request.request_id for request in first.pending_requests] == [other.request_id]
    assert run(workflow.run(responses=[other.answer(True)])).outputs == ["1: b? yes"]


def test_case_18_a_double_click_in_another_process(world, tmp_path):
    """The second click arrives in a fresh process: already answered there, too."""
    store = SqliteCheckpointStorage(tmp_path / "runs.db")
    paused = run(desk(world, store, depth=2).run(Note("a?,b?"), run_id="r"))
    clicked, other = (request.request_id for request in paused.pending_requests)
    first = run(desk(World(), store, depth=2).run(responses={clicked: True}))
    told = call_in_new_process(tmp_path, depth=2, responses={clicked: True})
    assert (told["error"], told["diary"]) == ("AlreadyAnsweredError", [])
    assert run(store.head("r")).header.checkpoint_id == first.checkpoint_id
    assert [request.request_id for request in first.pending_requests] == [other]
    run(store.close())


# 19 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("message", [None, Note("c")])
def test_case_19_a_wrong_answer_beside_a_good_one_consumes_nothing(world, anywhere, depth, message):
    """A wrong type, an unknown id or another run's beside a good answer: none is taken; the good one still can be."""
    workflow = desk(world, anywhere, depth=depth)
    stranger = run(workflow.run(Note("s?"), run_id="s")).pending_requests[0].request_id
    paused = run(workflow.run(Note("a?,b?"), run_id="r"))
    good, bad = (request.request_id for request in paused.pending_requests)
    before = run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()
    world.diary.clear()
    for responses, error in (
        ({good: True, bad: "yes"}, AnswerTypeError),
        ({good: True, bad: None}, AnswerTypeError),
        ({good: True, bad: 1}, AnswerTypeError),
        ({good: True, "0" * 32: True}, UnknownRequestError),
        ({good: True, stranger: True}, ForeignRequestError if anywhere else UnknownRequestError),
    ):
        with pytest.raises(error):
            run(workflow.run(message, checkpoint=paused, responses=responses))
    assert world.diary == []
    assert (run(everything(anywhere)) if anywhere else paused.checkpoint.to_bytes()) == before
    result = run(workflow.run(message, checkpoint=paused, responses={good: True, bad: False}))
    assert result.outputs == ["1: a? yes", "1: b? no"] + ([] if message is None else ["2: c"])


# 20 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_case_20_the_turn_fails_after_the_answer_was_taken(world, store, depth):
    """The same call can be repeated until it succeeds: no answer is lost, and no finished effect repeated."""
    workflow = desk(world, store, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    call = {"checkpoint": paused.checkpoint_id, "responses": [paused.pending_requests[0].answer(True)]}
    for _ in range(3):
        stopped = failed(world, workflow, "clerk b", Note("b"), **call)
        assert (stopped.outputs, stopped.pending_requests) == (["1: a? yes"], ())
    result = run(workflow.run(Note("b"), **call))
    assert (result.outputs, result.turn) == (["1: a? yes", "2: b"], 2)
    counts = {entry: world.diary.count(entry) for entry in ("clerk a? yes", "intake b", "clerk b")}
    assert counts == {"clerk a? yes": 1, "intake b": 1, "clerk b": 4}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_case_20_the_handler_of_the_answer_fails(world, anywhere, depth):
    """The answer stays in flight: a continuation gives it to its handler again, by which it is handled once."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    stopped = failed(
        world, workflow, "clerk a? yes", checkpoint=paused, responses=[paused.pending_requests[0].answer(True)]
    )
    assert (stopped.pending_requests, stopped.outputs) == ((), [])
    assert run(workflow.run(checkpoint=stopped)).outputs == ["1: a? yes"]


# 31 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_case_31_the_newest_checkpoint_of_a_finished_run(world, store, depth):
    """Nothing runs or is stored, and the outputs are there: by id, by `"latest"`, as a stream, any number of times."""
    workflow = desk(world, store, depth=depth)
    done = run(workflow.run(Note("a,b"), run_id="r"))
    before = run(everything(store))
    world.diary.clear()
    for arguments in (
        {"checkpoint": done.checkpoint_id},
        {"checkpoint": "latest", "run_id": "r"},
        {"checkpoint": done},
    ):
        again = run(workflow.run(**arguments))
        assert (again.outputs, again.status, again.checkpoint_id) == (["1: a", "1: b"], Status.IDLE, done.checkpoint_id)

    async def streamed():
        return await workflow.run(checkpoint=done, stream=True).result()

    assert run(streamed()).outputs == ["1: a", "1: b"]
    assert world.diary == []
    assert run(everything(store)) == before


def test_case_31_in_a_fresh_process(world, tmp_path):
    """A fresh process sees the finished run with its outputs and runs nothing."""
    store = SqliteCheckpointStorage(tmp_path / "runs.db")
    done = run(desk(world, store).run(Note("a"), run_id="r"))
    told = call_in_new_process(tmp_path, checkpoint="latest", run_id="r")
    assert (told["outputs"], told["status"], told["diary"]) == (["1: a"], "IDLE", [])
    assert told["checkpoint"] == done.checkpoint_id
    run(store.close())


# 53 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("message", ["text", 7, {"text": "a"}, ["a"], object()])
def test_case_53_a_message_that_the_start_executor_does_not_take(world, store, depth, message):
    """It is refused before anything is saved, as a first message and as a later one; the error names both types."""
    workflow = desk(world, store, depth=depth)
    with pytest.raises(MessageTypeError, match="intake") as error:
        run(workflow.run(message, run_id="r"))
    assert (error.value.given, error.value.takes) == (type(message).__name__, ("Note",))
    assert run(everything(store)) == []
    first = run(workflow.run(Note("a"), run_id="r"))
    before = run(everything(store))
    with pytest.raises(MessageTypeError):
        run(workflow.run(message, checkpoint=first))
    assert run(everything(store)) == before
    assert world.diary == ["intake a", "clerk a"]


@pytest.mark.parametrize("depth", [2, 3])
def test_case_53_a_sub_workflow_as_the_start_takes_what_its_start_takes(world, anywhere, depth):
    """The innermost start executor decides where sub-workflows stand at the start."""
    workflow = team(world, anywhere, depth=depth)
    with pytest.raises(MessageTypeError) as error:
        run(workflow.run("text"))
    assert error.value.takes == ("Note",)
    assert run(workflow.run(Note("a"))).outputs == ["left a + right a"]
