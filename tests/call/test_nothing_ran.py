"""The fifth of the six: what is wrong with a checkpoint or an input comes back, and nothing has run or changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rehydrate import CheckpointStorage, Workflow, WorkflowRunResult
from rehydrate.errors import (
    AlreadyAnsweredError,
    AnswerTypeError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ForeignCheckpointError,
    ForeignRequestError,
    GraphChangedError,
    IdempotencyKeyError,
    MessageTypeError,
    MissingResourceError,
    NotStorableError,
    PendingRequestsError,
    ResourceTypeError,
    RunExistsError,
    StaleCheckpointError,
    UnfinishedWorkError,
    UnknownRequestError,
    WorkflowCheckpointException,
)
from tests.call.desk import Fault, Note, World, desk
from tests.call.stores import everything

run = asyncio.run


@dataclass
class Scene:
    """Two runs with open requests: `older` and `paused` are checkpoints of run `r`, `other` is one of run `o`."""

    world: World
    store: CheckpointStorage
    workflow: Workflow
    older: WorkflowRunResult
    paused: WorkflowRunResult
    other: WorkflowRunResult

    @property
    def answered(self) -> str:
        """The id of the request of run `r` that has an answer."""
        return self.older.pending_requests[0].request_id

    @property
    def open(self) -> str:
        """The id of the request of run `r` that is open."""
        return self.paused.pending_requests[0].request_id


def set_up(world: World, store: CheckpointStorage, depth: int = 2) -> Scene:
    workflow = desk(world, store, depth=depth)
    older = run(workflow.run(Note("a?"), run_id="r", idempotency_key="used"))
    answer = older.pending_requests[0].answer(True)
    paused = run(workflow.run(Note("b?"), checkpoint=older, responses=[answer]))
    other = run(workflow.run(Note("o?"), run_id="o"))
    world.diary.clear()
    return Scene(world, store, workflow, older, paused, other)


@dataclass(frozen=True)
class Wrong:
    """A call that is wrong in one way: its arguments, what is made of the workflow first, and the error."""

    error: type[Exception]
    arguments: Callable[[Scene], dict[str, object]]
    message: object = Note("never")
    workflow: Callable[[Scene], Workflow] = lambda scene: scene.workflow


WRONG = {
    "a checkpoint that is not there": Wrong(CheckpointNotFoundError, lambda s: {"checkpoint": "f" * 32}),
    "the latest of an unknown run": Wrong(
        CheckpointNotFoundError, lambda s: {"checkpoint": "latest", "run_id": "nowhere"}
    ),
    "a checkpoint that is not the head": Wrong(StaleCheckpointError, lambda s: {"checkpoint": s.older.checkpoint_id}),
    "a result that is not the head": Wrong(StaleCheckpointError, lambda s: {"checkpoint": s.older}),
    "a stale checkpoint and takeover": Wrong(StaleCheckpointError, lambda s: {"checkpoint": s.older, "takeover": True}),
    "another run's id beside the checkpoint": Wrong(
        ForeignCheckpointError, lambda s: {"checkpoint": s.paused, "run_id": "o"}
    ),
    "another workflow": Wrong(
        ForeignCheckpointError,
        lambda s: {"checkpoint": s.paused},
        workflow=lambda s: desk(s.world, s.store, name="shop"),
    ),
    "another graph": Wrong(
        GraphChangedError, lambda s: {"checkpoint": s.paused}, workflow=lambda s: desk(s.world, s.store, depth=3)
    ),
    "another version": Wrong(
        GraphChangedError,
        lambda s: {"checkpoint": s.paused},
        workflow=lambda s: desk(s.world, s.store, depth=2, version=2),
    ),
    "a message of another type": Wrong(MessageTypeError, lambda s: {"checkpoint": s.paused}, message="never"),
    "a first message of another type": Wrong(MessageTypeError, lambda s: {"run_id": "new"}, message=7),
    "a run that exists": Wrong(RunExistsError, lambda s: {"run_id": "r"}),
    "an unknown request": Wrong(
        UnknownRequestError, lambda s: {"checkpoint": s.paused, "responses": {s.open: True, "f" * 32: True}}
    ),
    "another run's request": Wrong(
        ForeignRequestError,
        lambda s: {"checkpoint": s.paused, "responses": {s.other.pending_requests[0].request_id: True}},
    ),
    "an answer of another type": Wrong(
        AnswerTypeError, lambda s: {"checkpoint": s.paused, "responses": {s.open: "yes"}}
    ),
    "an answer that cannot be stored": Wrong(
        AnswerTypeError, lambda s: {"checkpoint": s.paused, "responses": {s.open: object()}}
    ),
    "a request answered before": Wrong(
        AlreadyAnsweredError, lambda s: {"checkpoint": s.paused, "responses": {s.open: True, s.answered: True}}
    ),
    "a request answered before, on the checkpoint that asked": Wrong(
        AlreadyAnsweredError, lambda s: {"checkpoint": s.older, "responses": {s.answered: False}}
    ),
    "requests that must not be open": Wrong(
        PendingRequestsError, lambda s: {"checkpoint": s.paused, "on_pending": "reject"}
    ),
    "run arguments that cannot be stored": Wrong(
        NotStorableError, lambda s: {"checkpoint": s.paused, "run_args": object()}
    ),
    "a declared resource that is missing": Wrong(
        MissingResourceError,
        lambda s: {"checkpoint": s.paused},
        workflow=lambda s: desk(s.world, s.store, depth=2, resources={"client": World}),
    ),
    "a declared resource of another type": Wrong(
        ResourceTypeError,
        lambda s: {"checkpoint": s.paused, "resources": {"client": "a text"}},
        workflow=lambda s: desk(s.world, s.store, depth=2, resources={"client": World}),
    ),
    "a key of another request": Wrong(
        IdempotencyKeyError, lambda s: {"checkpoint": s.paused, "idempotency_key": "used"}
    ),
    "a message and answers without a checkpoint": Wrong(ValueError, lambda s: {"responses": {s.open: True}}),
    "an id with a slash": Wrong(ValueError, lambda s: {"run_id": "a/b"}),
    "an unknown policy": Wrong(ValueError, lambda s: {"checkpoint": s.paused, "on_pending": "drop"}),
}


async def as_call(workflow: Workflow, message: object, arguments: dict[str, object]) -> None:
    await workflow.run(message, **arguments)


async def as_stream(workflow: Workflow, message: object, arguments: dict[str, object]) -> None:
    await anext(workflow.run(message, stream=True, **arguments))


@pytest.mark.parametrize("way", [as_call, as_stream])
@pytest.mark.parametrize("name", WRONG)
def test_5_a_wrong_call_comes_back_and_nothing_has_run(world, store, name, way):
    """The first await raises; no executor ran, no stored byte and none of the objects that were passed has changed."""
    scene, wrong = set_up(world, store), WRONG[name]
    arguments = wrong.arguments(scene)
    workflow = wrong.workflow(scene)
    before = run(everything(store))
    objects = [scene.older.checkpoint.to_bytes(), scene.paused.checkpoint.to_bytes()]
    responses = dict(arguments.get("responses", {}))
    with pytest.raises(wrong.error):
        run(way(workflow, wrong.message, arguments))
    assert world.diary == []
    assert run(everything(store)) == before
    assert [scene.older.checkpoint.to_bytes(), scene.paused.checkpoint.to_bytes()] == objects
    assert arguments.get("responses", {}) == responses


@pytest.mark.parametrize("way", [as_call, as_stream])
@pytest.mark.parametrize("name", ["an id", "an object", "the latest"])
def test_5_damaged_bytes_come_back_and_nothing_has_run(world, store, name, way):
    """A checkpoint with a flipped bit is reported as damaged, and the message that came with it is not processed."""
    workflow = desk(world, store)
    store.rotten = True
    stored = run(workflow.run(Note("a"), run_id="r"))
    store.rotten = False
    before = run(everything(store))
    world.diary.clear()
    named = {"an id": stored.checkpoint_id, "an object": stored, "the latest": "latest"}
    with pytest.raises(CheckpointCorruptError):
        run(way(workflow, Note("never"), {"checkpoint": named[name], "run_id": "r"}))
    assert world.diary == []
    assert run(everything(store)) == before


def test_5_unfinished_work_that_is_rejected_comes_back(world, store):
    """A message on a failed run with `on_unfinished="reject"` names where work is left, and leaves it there."""
    scene = set_up(world, store)
    world.faults.add("clerk c")
    with pytest.raises(Exception, match="clerk c") as failed:
        run(scene.workflow.run(Note("c"), checkpoint=scene.paused, on_pending="keep"))
    before = run(everything(store))
    world.diary.clear()
    with pytest.raises(UnfinishedWorkError) as error:
        run(scene.workflow.run(Note("d"), checkpoint=failed.value.result, on_unfinished="reject"))
    assert isinstance(failed.value.__cause__, Fault)
    assert error.value.where == ("", "inner#3")
    assert world.diary == []
    assert run(everything(store)) == before


@pytest.mark.parametrize("name", ["another workflow", "another graph", "a message of another type"])
def test_5_without_a_store_the_object_is_as_it_was(world, name):
    """Without a store a wrong call leaves the checkpoint object as it was, and it can be used."""
    workflow = desk(world, depth=2)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    scene, wrong = Scene(world, None, workflow, paused, paused, paused), WRONG[name]
    world.diary.clear()
    before = paused.checkpoint.to_bytes()
    with pytest.raises(wrong.error):
        run(wrong.workflow(scene).run(wrong.message, **wrong.arguments(scene)))
    assert world.diary == []
    assert paused.checkpoint.to_bytes() == before
    answer = paused.pending_requests[0].answer(True)
    assert run(workflow.run(Note("b"), checkpoint=paused, responses=[answer])).outputs == ["1: a? yes", "2: b"]


def test_5_restore_errors_share_one_base():
    """Missing, stale, foreign, damaged and changed are different errors under `WorkflowCheckpointException`."""
    kinds = {
        CheckpointCorruptError, CheckpointNotFoundError, ForeignCheckpointError, GraphChangedError,
        StaleCheckpointError,
    }  # fmt: skip
    assert all(issubclass(kind, WorkflowCheckpointException) for kind in kinds)
    assert len({kind.code for kind in kinds}) == 5
