"""Arguments that do not go together, and the ways in which a checkpoint can be named."""

import asyncio

import pytest

from rehydrate.errors import ForeignCheckpointError, RunFailedError, WrongCallError
from tests.call.desk import Note, desk
from tests.call.stores import everything

run = asyncio.run

#: What each way to name a checkpoint gives for a result.
NAMED = {
    "an id": lambda result: {"checkpoint": result.checkpoint_id},
    "a checkpoint": lambda result: {"checkpoint": result.checkpoint},
    "a result": lambda result: {"checkpoint": result},
    "the latest": lambda result: {"checkpoint": "latest", "run_id": result.run_id},
    "an id and its run": lambda result: {"checkpoint": result.checkpoint_id, "run_id": result.run_id},
    "a result and its run": lambda result: {"checkpoint": result, "run_id": result.run_id},
}


@pytest.mark.parametrize("name", NAMED)
def test_every_way_to_name_a_checkpoint_means_the_same(world, store, name):
    """An id, a checkpoint, a result and `"latest"` lead to the same run at the same place."""
    workflow = desk(world, store, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answer = paused.pending_requests[0].answer(True)
    result = run(workflow.run(Note("b"), responses=[answer], **NAMED[name](paused)))
    assert (result.run_id, result.turn, result.outputs) == ("r", 2, ["1: a? yes", "2: b"])


@pytest.mark.parametrize("name", NAMED)
def test_resume_is_run_with_its_intent_in_the_name(world, store, name):
    """`resume` takes the checkpoint first and is the same operation, as a call and as a stream."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    named = NAMED[name](first)
    second = run(workflow.resume(named.pop("checkpoint"), Note("b"), **named))
    assert (second.run_id, second.outputs) == ("r", ["2: b"])

    async def streamed():
        return await workflow.resume(second, Note("c"), stream=True).result()

    assert run(streamed()).outputs == ["3: c"]


def test_resuming_nothing_is_refused(world, anywhere):
    """`resume` without a checkpoint is an error; it does not start a new run in its place."""
    with pytest.raises((TypeError, ValueError), match="checkpoint"):
        run(desk(world, anywhere).resume(None, Note("a")))
    assert world.diary == []


def test_a_failed_result_stands_for_its_checkpoint(world, anywhere):
    """The result that a failed run carries is a result like others: it names the checkpoint to go on from."""
    workflow = desk(world, anywhere)
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("a"), run_id="r"))
    world.faults.clear()
    assert run(workflow.run(checkpoint=failed.value.result)).outputs == ["1: a"]


def test_latest_is_the_head_at_the_moment_of_the_call(world, store):
    """Each call with `"latest"` goes on from the newest checkpoint."""
    workflow = desk(world, store)
    run(workflow.run(Note("a"), run_id="r"))
    outputs = [run(workflow.run(Note(text), checkpoint="latest", run_id="r")).outputs for text in "bcd"]
    assert outputs == [["2: b"], ["3: c"], ["4: d"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"checkpoint": "latest"}, "run_id"),
        ({"checkpoint": "latest", "fork": True}, "run_id"),
        ({"fork": True}, "checkpoint"),
        ({"run_id": ""}, "id"),
        ({"run_id": "a#b"}, "id"),
        ({"run_id": "a\nb"}, "id"),
        ({"run_id": "x" * 201}, "id"),
        ({"idempotency_key": ""}, "key"),
        ({"on_pending": "drop"}, "'keep', 'cancel', 'reject'"),
        ({"on_unfinished": "keep"}, "'finish', 'discard', 'reject'"),
        ({"durability": "weak"}, "'superstep', 'turn', 'off'"),
        ({"idempotency_key": "k", "durability": "off"}, "idempotency_key"),
    ],
)
def test_arguments_that_mean_nothing_together_are_a_value_error(world, store, arguments, says):
    """Such a call is a `ValueError` that names what to do, and nothing is stored."""
    with pytest.raises(ValueError, match=says):
        run(desk(world, store).run(Note("a"), **arguments))
    assert world.diary == []
    assert run(everything(store)) == []


@pytest.mark.parametrize("policy", [{"on_pending": "cancel"}, {"on_pending": "reject"}, {"on_unfinished": "discard"},
                                    {"on_unfinished": "reject"}])  # fmt: skip
@pytest.mark.parametrize("row", ["a message", "a checkpoint"])
def test_rows_that_find_nothing_to_decide_refuse_a_policy(world, anywhere, policy, row):
    """A new run and a bare continuation take only the default policies; any other is a `ValueError`."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    world.diary.clear()
    message, arguments = (Note("b"), {}) if row == "a message" else (None, {"checkpoint": paused})
    with pytest.raises(ValueError, match=next(iter(policy))):
        run(workflow.run(message, **arguments, **policy))
    assert world.diary == []
    kept = run(workflow.run(message, **arguments, on_pending="keep", on_unfinished="finish"))
    assert len(kept.pending_requests) == (0 if row == "a message" else 1)


def test_a_run_id_beside_a_checkpoint_must_be_its_run(world, anywhere):
    """A checkpoint of one run with the id of another is an error that names both."""
    workflow = desk(world, anywhere)
    first = run(workflow.run(Note("a"), run_id="r"))
    with pytest.raises(ForeignCheckpointError, match=r"'r'.*'other'"):
        run(workflow.run(Note("b"), checkpoint=first, run_id="other"))
    assert run(workflow.run(Note("b"), checkpoint=first, run_id="r")).outputs == ["2: b"]


@pytest.mark.parametrize("arguments", [{"checkpoint": "f" * 32}, {"checkpoint": "latest", "run_id": "r"},
                                       {"idempotency_key": "k"}])  # fmt: skip
def test_what_needs_a_store_says_so(world, arguments):
    """A checkpoint by id or `"latest"` and a key need a store; the error says where one is given."""
    with pytest.raises(ValueError, match="checkpoint_storage"):
        run(desk(world).run(Note("a"), **arguments))
    assert world.diary == []


def test_the_store_of_the_call_comes_before_the_workflows(world, store):
    """`checkpoint_storage=` of a call is used instead of the workflow's, for this call only."""
    workflow = desk(world)
    first = run(workflow.run(Note("a"), run_id="r", checkpoint_storage=store))
    assert run(store.head("r")).header.checkpoint_id == first.checkpoint_id
    with pytest.raises(ValueError, match="checkpoint_storage"):
        run(workflow.run(Note("b"), checkpoint=first.checkpoint_id))


@pytest.mark.parametrize("stream", [True, False])
def test_an_argument_that_does_not_exist_is_refused(world, stream):
    """A misspelt argument is a `TypeError` as on any function; it is not ignored."""
    with pytest.raises(TypeError, match="chekpoint"):
        desk(world).run(Note("a"), stream=stream, chekpoint="latest")


@pytest.mark.parametrize("checkpoint", [7, object(), ["f" * 32], b"latest"])
def test_a_checkpoint_of_another_kind_is_refused(world, store, checkpoint):
    """What is neither id, checkpoint nor result is an error that says what can be given."""
    with pytest.raises((TypeError, ValueError), match="checkpoint"):
        run(desk(world, store).run(Note("a"), checkpoint=checkpoint))
    assert world.diary == []


@pytest.mark.parametrize("responses", [True, 7, "yes", ["yes"], [("f" * 32, True)], {7: True}])
def test_responses_of_another_kind_are_refused(world, store, responses):
    """What is neither a list of answers nor a mapping of request ids is an error that says what can be given."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(everything(store))
    with pytest.raises((TypeError, ValueError), match="responses"):
        run(workflow.run(checkpoint=paused, responses=responses))
    assert run(everything(store)) == before


def test_one_request_answered_twice_in_one_call_is_refused(world, anywhere):
    """Two answers for one request are an error; none is taken."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    request = paused.pending_requests[0]
    with pytest.raises(ValueError, match="twice"):
        run(workflow.run(checkpoint=paused, responses=[request.answer(True), request.answer(False)]))
    assert run(workflow.run(checkpoint=paused, responses=[request.answer(True)])).outputs == ["1: a? yes"]


class Begun:
    """A store that somebody has begun to write, with all but two of its calls."""

    async def commit(self, commit: object) -> None:
        raise AssertionError("it is refused before")

    def __getattr__(self, name: str) -> object:
        if name in {"read", "keeps_events"}:
            raise AttributeError(name)
        return self.commit


def test_a_store_that_lacks_calls_is_refused_with_their_names(world):
    """Whoever writes a store hears which calls are missing; the workflow is not begun."""
    with pytest.raises(WrongCallError, match=r"is a Begun, which lacks keeps_events, read\. Add what is missing"):
        run(desk(world).run(Note("a"), checkpoint_storage=Begun()))
    assert world.diary == []


def test_a_store_may_hand_on_its_calls_without_naming_them(world, store):
    """A store around a store that has `__getattr__` and a `commit` of its own is one, on every Python."""

    class Counted:
        commits = 0

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def commit(self, commit: object) -> None:
            await store.commit(commit)
            self.commits += 1

    around = Counted()
    assert run(desk(world).run(Note("a"), checkpoint_storage=around)).outputs == ["1: a"]
    assert around.commits > 1
