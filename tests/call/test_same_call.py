"""The same call again: in progress, interrupted, failed, cancelled, at its limit, ended well; what is another call."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rehydrate import Status, WorkflowRunResult
from rehydrate.errors import (
    AlreadyAnsweredError,
    CommitConflictError,
    RunBusyError,
    RunExistsError,
    StaleCheckpointError,
    TurnInProgressError,
)
from tests.call.desk import Gate, Note, desk
from tests.call.stops import cancelled, failed, interrupted
from tests.call.stores import everything

run = asyncio.run


def answer_of(paused: WorkflowRunResult) -> dict[str, bool]:
    return {paused.pending_requests[0].request_id: True}


@dataclass(frozen=True)
class Call:
    """A call of one row on run `r`, which asked `a?`: the entry at which it stops and what it gives in the end."""

    message: Note | None
    arguments: Callable[[WorkflowRunResult], dict[str, object]]
    entry: str
    outputs: tuple[str, ...]
    #: The error of the same call after it has ended well; `None` where it is a new turn.
    afterwards: type[Exception] | None
    turn: int = 2


NEW, ANSWER = Note("b"), "clerk a? yes"
CALLS = {
    "1": Call(NEW, lambda p: {"run_id": "new"}, "clerk b", ("1: b",), RunExistsError, turn=1),
    "3": Call(
        None, lambda p: {"checkpoint": p, "responses": answer_of(p)}, ANSWER, ("1: a? yes",), AlreadyAnsweredError
    ),
    "3, latest": Call(
        None,
        lambda p: {"checkpoint": "latest", "run_id": "r", "responses": answer_of(p)},
        ANSWER,
        ("1: a? yes",),
        AlreadyAnsweredError,
    ),
    "4": Call(
        NEW, lambda p: {"checkpoint": p.checkpoint_id, "on_pending": "keep"}, "clerk b", ("2: b",), StaleCheckpointError
    ),
    "4, latest": Call(
        NEW, lambda p: {"checkpoint": "latest", "run_id": "r", "on_pending": "keep"}, "clerk b", ("2: b",), None
    ),
    "5": Call(
        NEW,
        lambda p: {"checkpoint": p, "responses": answer_of(p)},
        "clerk b",
        ("1: a? yes", "2: b"),
        AlreadyAnsweredError,
    ),
    "5, latest": Call(
        NEW,
        lambda p: {"checkpoint": "latest", "run_id": "r", "responses": answer_of(p)},
        "clerk b",
        ("1: a? yes", "2: b"),
        AlreadyAnsweredError,
    ),
    "7": Call(None, lambda p: {"responses": answer_of(p)}, ANSWER, ("1: a? yes",), AlreadyAnsweredError),
    "7, run": Call(
        None, lambda p: {"responses": answer_of(p), "run_id": "r"}, ANSWER, ("1: a? yes",), AlreadyAnsweredError
    ),
}


def check_afterwards(workflow, call: Call, arguments: dict[str, object]) -> None:
    """Make a call once more that has ended well: what the table says."""
    if call.afterwards is None:
        assert run(workflow.run(call.message, **arguments)).turn == call.turn + 1
        return
    with pytest.raises(call.afterwards):
        run(workflow.run(call.message, **arguments))


@pytest.mark.parametrize("stop", [failed, cancelled])
@pytest.mark.parametrize("row", CALLS)
def test_a_failed_or_cancelled_turn_is_continued(world, store, row, stop):
    """The same call goes on with that turn: nothing is applied twice, what finished does not run again."""
    workflow, call = desk(world, store), CALLS[row]
    paused = run(workflow.run(Note("a?"), run_id="r"))
    arguments = call.arguments(paused)
    world.diary.clear()
    stopped = stop(world, workflow, call.entry, call.message, **arguments)
    result = run(workflow.run(call.message, **arguments))
    assert (tuple(result.outputs), result.turn, result.status.value[:4]) == (call.outputs, stopped.turn, "IDLE")
    assert result.turn == call.turn
    assert {entry: world.diary.count(entry) for entry in set(world.diary)} == {
        entry: 2 if entry == call.entry else 1 for entry in set(world.diary)
    }
    check_afterwards(workflow, call, arguments)


@pytest.mark.parametrize("row", CALLS)
def test_an_interrupted_turn_is_continued(world, store, row):
    """A turn of which the claim was saved and nothing else is gone on with by the same call."""
    workflow, call = desk(world, store), CALLS[row]
    paused = run(workflow.run(Note("a?"), run_id="r"))
    arguments = call.arguments(paused)
    interrupted(store, 1, workflow, call.message, **arguments)
    result = run(workflow.run(call.message, **arguments))
    assert (tuple(result.outputs), result.turn) == (call.outputs, call.turn)
    check_afterwards(workflow, call, arguments)


@pytest.mark.parametrize("row", ["1", "4", "4, latest", "5"])
def test_a_turn_at_its_limit_is_continued_with_a_new_allowance(world, store, row):
    """The same call after `LIMIT_REACHED` starts the limit anew and keeps the turn."""
    call = CALLS[row]
    paused = run(desk(world, store).run(Note("a?"), run_id="r"))
    arguments = call.arguments(paused)
    short = desk(world, store, max_supersteps=1)
    first = run(short.run(call.message, **arguments))
    second = run(short.run(call.message, **arguments))
    assert (first.status, first.turn) == (Status.LIMIT_REACHED, call.turn)
    assert (tuple(second.outputs), second.turn) == (call.outputs, call.turn)
    assert second.status in (Status.IDLE, Status.IDLE_WITH_PENDING_REQUESTS)


@pytest.mark.parametrize("row", CALLS)
def test_a_turn_in_progress_is_not_taken(world, store, row):
    """While it runs the same call is `TurnInProgressError`, any other on the run `RunBusyError`; it ends well."""
    workflow, call = desk(world, store), CALLS[row]
    paused = run(workflow.run(Note("a?"), run_id="r"))
    arguments = call.arguments(paused)

    async def scenario() -> WorkflowRunResult:
        gate = world.gates[call.entry] = Gate()
        running = asyncio.create_task(workflow.run(call.message, **arguments))
        await gate.entered.wait()
        with pytest.raises(TurnInProgressError) as same:
            await workflow.run(call.message, **arguments)
        assert isinstance(same.value, RunBusyError)
        run_id = "new" if row == "1" else "r"
        for other in (
            {"checkpoint": "latest", "run_id": run_id},
            {"checkpoint": "latest", "run_id": run_id, "run_args": 1},
        ):
            with pytest.raises(RunBusyError) as busy:
                await workflow.run(Note("other"), **other)
            assert not isinstance(busy.value, TurnInProgressError)
        gate.opened.set()
        return await running

    result = run(scenario())
    assert tuple(result.outputs) == call.outputs
    assert not any("other" in entry for entry in world.diary)


@pytest.mark.parametrize("row", ["1", "5", "7"])
def test_takeover_does_not_wait(world, store, row):
    """With `takeover=True` the same call goes on with the turn; the one it was taken from can commit nothing more."""
    workflow, call = desk(world, store), CALLS[row]
    paused = run(workflow.run(Note("a?"), run_id="r"))
    arguments = call.arguments(paused)

    async def scenario() -> WorkflowRunResult:
        gate = world.gates[call.entry] = Gate()
        stalled = asyncio.create_task(workflow.run(call.message, **arguments))
        await gate.entered.wait()
        result = await workflow.run(call.message, **arguments, takeover=True)
        before = await everything(store)
        gate.opened.set()
        with pytest.raises(CommitConflictError):
            await stalled
        assert await everything(store) == before
        return result

    result = run(scenario())
    assert (tuple(result.outputs), result.turn) == (call.outputs, call.turn)


def test_takeover_of_another_turn_finishes_it_first(world, store):
    """A new message that takes a running turn over completes its superstep and is handled after it."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))

    async def scenario() -> WorkflowRunResult:
        gate = world.gates["clerk b"] = Gate()
        stalled = asyncio.create_task(workflow.run(Note("b"), checkpoint=first))
        await gate.entered.wait()
        result = await workflow.run(Note("c"), checkpoint="latest", run_id="r", takeover=True)
        gate.opened.set()
        with pytest.raises(CommitConflictError):
            await stalled
        return result

    assert run(scenario()).outputs == ["2: b", "3: c"]


@pytest.mark.parametrize(
    "other",
    [{"stream": True}, {"takeover": True}, {"resources": {"client": 1}}, {"durability": "turn"}],
    ids=lambda other: next(iter(other)),
)
def test_what_does_not_make_it_another_call(world, store, other):
    """Streaming, takeover, resources and durability are not part of what is compared."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    stopped = failed(world, workflow, "clerk b", Note("b"), checkpoint=first)

    async def again() -> WorkflowRunResult:
        made = workflow.run(Note("b"), checkpoint=first, **other)
        return await (made.result() if "stream" in other else made)

    result = run(again())
    assert (result.outputs, result.turn) == (["2: b"], stopped.turn)


@pytest.mark.parametrize(
    ("message", "other"),
    [
        ("b, otherwise", {}),
        ("b", {"run_args": 1}),
        ("b", {"on_pending": "cancel"}),
        ("b", {"on_unfinished": "discard"}),
    ],
)
def test_what_makes_it_another_call(world, store, message, other):
    """Another message, other run arguments or another policy on the old checkpoint is stale, not the same turn."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r"))
    failed(world, workflow, "clerk b", Note("b"), checkpoint=first)
    with pytest.raises(StaleCheckpointError):
        run(workflow.run(Note(message), checkpoint=first, **other))
    new_turn = run(workflow.run(Note(message), checkpoint="latest", run_id="r", **other))
    assert new_turn.turn == 3


def test_other_answers_make_it_another_call(world, store):
    """The failed turn took `True`; `False` for the same request is not that turn again, and not taken either."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    failed(world, workflow, "clerk a? yes", checkpoint=paused, responses=answer_of(paused))
    no = {paused.pending_requests[0].request_id: False}
    for arguments in ({"checkpoint": paused}, {"checkpoint": "latest", "run_id": "r"}, {}):
        with pytest.raises(AlreadyAnsweredError):
            run(workflow.run(responses=no, **arguments))
    assert run(workflow.run(checkpoint=paused, responses=answer_of(paused))).outputs == ["1: a? yes"]


def test_a_continuation_may_be_repeated_by_the_same_id(world, store):
    """A continuation that stopped moved the head; the checkpoint that it was called with still stands for it."""
    workflow = desk(world, store)
    stopped = failed(world, workflow, "clerk a", Note("a"), run_id="r")
    again = failed(world, workflow, "clerk a", checkpoint=stopped)
    assert again.checkpoint_id != stopped.checkpoint_id
    result = run(workflow.run(checkpoint=stopped))
    assert (result.outputs, result.turn) == (["1: a"], 1)
    with pytest.raises(StaleCheckpointError):
        run(workflow.run(checkpoint=stopped))


def test_the_first_call_stays_the_same_call_after_continuations(world, store):
    """A turn that was continued in between without input is still that of the call that began it."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    call = {"checkpoint": paused, "responses": answer_of(paused)}
    stopped = failed(world, workflow, "clerk b", Note("b"), **call)
    failed(world, workflow, "clerk b", checkpoint=stopped)
    result = run(workflow.run(Note("b"), **call))
    assert (result.outputs, result.turn) == (["1: a? yes", "2: b"], 2)
    assert world.diary.count("clerk a? yes") == 1


#: Two ways to make one call: the first is made and fails, the second is the same call again.
FORMS = {
    "a result, then its id": (lambda p: {"checkpoint": p}, lambda p: {"checkpoint": p.checkpoint_id}),
    "an id, then its object": (lambda p: {"checkpoint": p.checkpoint_id}, lambda p: {"checkpoint": p.checkpoint}),
    "an id, then the latest": (
        lambda p: {"checkpoint": p.checkpoint_id, "run_id": "r"},
        lambda p: {"checkpoint": "latest", "run_id": "r"},
    ),
    "the latest, then an id": (
        lambda p: {"checkpoint": "latest", "run_id": "r"},
        lambda p: {"checkpoint": p.checkpoint_id, "run_id": "r"},
    ),
    "answers alone, then with an id": (lambda p: {}, lambda p: {"checkpoint": p.checkpoint_id}),
    "with an id, then answers alone": (lambda p: {"checkpoint": p.checkpoint_id}, lambda p: {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_same_call_in_another_form_is_the_same_call(world, store, name):
    """However the checkpoint is named, the same answers on it are the turn that took them."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    first, second = FORMS[name]
    stopped = failed(world, workflow, ANSWER, responses=answer_of(paused), **first(paused))
    result = run(workflow.run(responses=answer_of(paused), **second(paused)))
    assert (result.outputs, result.turn) == (["1: a? yes"], stopped.turn)


def test_takeover_of_a_run_that_nobody_drives(world, store):
    """Without an owner `takeover=True` changes nothing of a call."""
    workflow = desk(world, store)
    first = run(workflow.run(Note("a"), run_id="r", takeover=True))
    assert run(workflow.run(Note("b"), checkpoint=first, takeover=True)).outputs == ["2: b"]


def test_the_same_call_fails_again_and_again(world, store):
    """Three failures of one call are one turn, which its fourth try completes."""
    workflow = desk(world, store, depth=3)
    first = run(workflow.run(Note("a"), run_id="r"))
    turns = [failed(world, workflow, "clerk b", Note("b"), checkpoint=first).turn for _ in range(3)]
    result = run(workflow.run(Note("b"), checkpoint=first))
    assert (turns, result.turn, result.outputs) == ([2, 2, 2], 2, ["2: b"])
    assert (world.diary.count("intake b"), world.diary.count("clerk b")) == (1, 4)


def test_a_claim_that_could_not_be_saved_has_changed_nothing(world, store):
    """A full disk at the claim: nothing has run, nothing is stored, and the call can be made again."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    before = run(everything(store))
    world.diary.clear()
    store.saves_left = 0
    with pytest.raises(Exception, match="no space left"):
        run(workflow.run(Note("b"), checkpoint=paused, responses=answer_of(paused)))
    store.saves_left = None
    assert world.diary == []
    assert run(everything(store)) == before
    result = run(workflow.run(Note("b"), checkpoint=paused, responses=answer_of(paused)))
    assert result.outputs == ["1: a? yes", "2: b"]
