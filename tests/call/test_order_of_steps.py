"""The order of the steps up to the claim: for a call that is wrong in several ways the earliest check wins."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rehydrate import Workflow
from rehydrate.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    GraphChangedError,
    IdempotencyKeyError,
    MessageTypeError,
    MissingResourceError,
    RunBusyError,
    RunExistsError,
    StaleCheckpointError,
    TurnInProgressError,
    UnknownRequestError,
)
from tests.call.desk import Gate, Note, World, desk
from tests.call.stores import BreakableMemory, BreakableSqlite, everything

run = asyncio.run
Store = BreakableMemory | BreakableSqlite


@dataclass
class Scene:
    """Run `r` with an older checkpoint and its head, a key that another request has used, and a run `d` with damage."""

    world: World
    store: Store
    older: str
    head: str
    damaged_older: str
    damaged_head: str


def set_up(world: World, store: Store) -> Scene:
    workflow = desk(world, store)
    older = run(workflow.run(Note("a?"), run_id="r", idempotency_key="used"))
    answer = older.pending_requests[0].answer(True)
    head = run(workflow.run(Note("b?"), checkpoint=older, responses=[answer]))
    store.rotten = True
    run(workflow.run(Note("d"), run_id="d"))
    store.rotten = False
    damaged_head, *_, damaged_older = run(store.history("d"))
    world.diary.clear()
    return Scene(
        world, store, older.checkpoint_id, head.checkpoint_id, damaged_older.checkpoint_id, damaged_head.checkpoint_id
    )


#: What is wrong for the later steps; every call below has the faults of all steps that follow its own.
WRONG_ANSWERS = {"responses": {"f" * 32: True}}
WRONG_MESSAGE = 7


def changed(scene: Scene) -> Workflow:
    """A workflow of another version that declares a resource."""
    return desk(scene.world, scene.store, version=2, resources={"client": World})


def demanding(scene: Scene) -> Workflow:
    """The workflow, which now declares a resource."""
    return desk(scene.world, scene.store, resources={"client": World})


@dataclass(frozen=True)
class Step:
    """One check: the call whose first fault it finds, and its error."""

    error: type[Exception]
    arguments: Callable[[Scene], dict[str, object]]
    workflow: Callable[[Scene], Workflow] = changed
    message: object = WRONG_MESSAGE


STEPS = {
    "key": Step(IdempotencyKeyError, lambda s: {"idempotency_key": "used", "checkpoint": "f" * 32, **WRONG_ANSWERS}),
    "key, before damage": Step(
        IdempotencyKeyError, lambda s: {"idempotency_key": "used", "checkpoint": s.damaged_head, **WRONG_ANSWERS}
    ),
    "load": Step(CheckpointNotFoundError, lambda s: {"checkpoint": "f" * 32, **WRONG_ANSWERS}),
    "load the latest": Step(
        CheckpointNotFoundError, lambda s: {"checkpoint": "latest", "run_id": "nowhere", **WRONG_ANSWERS}
    ),
    "verify": Step(CheckpointCorruptError, lambda s: {"checkpoint": s.damaged_older, **WRONG_ANSWERS}),
    "verify the head": Step(CheckpointCorruptError, lambda s: {"checkpoint": s.damaged_head, **WRONG_ANSWERS}),
    "verify the latest": Step(
        CheckpointCorruptError, lambda s: {"checkpoint": "latest", "run_id": "d", **WRONG_ANSWERS}
    ),
    "head": Step(StaleCheckpointError, lambda s: {"checkpoint": s.older, **WRONG_ANSWERS}),
    "signature": Step(GraphChangedError, lambda s: {"checkpoint": s.head, **WRONG_ANSWERS}),
    "signature of the latest": Step(
        GraphChangedError, lambda s: {"checkpoint": "latest", "run_id": "r", **WRONG_ANSWERS}
    ),
    "message type": Step(MessageTypeError, lambda s: {"checkpoint": s.head, **WRONG_ANSWERS}, demanding),
    "a run that exists": Step(RunExistsError, lambda s: {"run_id": "r"}),
    "message type of a new run": Step(MessageTypeError, lambda s: {"run_id": "new"}, demanding),
    "answers": Step(UnknownRequestError, lambda s: {"checkpoint": s.head, **WRONG_ANSWERS}, demanding, Note("c")),
    "resources": Step(MissingResourceError, lambda s: {"checkpoint": s.head}, demanding, Note("c")),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_earliest_check_wins(world, store, name, stream):
    """A call with one fault and all that are looked for later gets the error of the first, and changes nothing."""
    scene, step = set_up(world, store), STEPS[name]
    before = run(everything(store))

    async def call() -> None:
        made = step.workflow(scene).run(step.message, stream=stream, **step.arguments(scene))
        await (anext(made) if stream else made)

    with pytest.raises(step.error):
        run(call())
    assert world.diary == []
    assert run(everything(store)) == before


@pytest.mark.parametrize("message", [object(), WRONG_MESSAGE])
def test_a_message_that_cannot_be_stored_is_judged_at_its_step(world, store, message):
    """A message of an unknown type is found by the check of the message type, not while its digest is made."""
    scene = set_up(world, store)
    with pytest.raises(CheckpointNotFoundError):
        run(desk(world, store).run(message, checkpoint="f" * 32))
    with pytest.raises(MessageTypeError):
        run(desk(world, store).run(message, checkpoint=scene.head))


def test_a_busy_run_is_found_before_a_stale_checkpoint_and_all_that_follows(world, store):
    """While a turn runs, every call but the same one is `RunBusyError`, whatever else is wrong with it."""
    scene = set_up(world, store)
    workflow = desk(world, store)

    async def scenario() -> list[str]:
        gate = world.gates["clerk c"] = Gate()
        running = asyncio.create_task(workflow.run(Note("c"), checkpoint=scene.head, on_pending="keep"))
        await gate.entered.wait()
        for checkpoint in (scene.older, "latest"):
            for other in (workflow, changed(scene), demanding(scene)):
                with pytest.raises(RunBusyError) as busy:
                    await other.run(WRONG_MESSAGE, checkpoint=checkpoint, run_id="r", **WRONG_ANSWERS)
                assert not isinstance(busy.value, TurnInProgressError)
        gate.opened.set()
        return (await running).outputs

    assert run(scenario()) == ["3: c"]


def test_damage_is_found_before_a_busy_run(world, store):
    """Loading and verifying come before the owner is looked at."""
    workflow = desk(world, store)

    async def scenario() -> None:
        gate = world.gates["clerk a"] = Gate()
        store.rotten = True
        running = asyncio.create_task(workflow.run(Note("a"), run_id="r"))
        await gate.entered.wait()
        for checkpoint in ((await store.head("r")).header.checkpoint_id, "latest"):
            with pytest.raises(CheckpointCorruptError):
                await workflow.run(Note("b"), checkpoint=checkpoint, run_id="r")
        with pytest.raises(CheckpointNotFoundError):
            await workflow.run(Note("b"), checkpoint="f" * 32, run_id="r")
        gate.opened.set()
        await running

    run(scenario())
    assert world.diary == ["intake a", "clerk a"]


def test_the_same_call_is_known_before_owner_head_and_signature(world, store):
    """The same call is `TurnInProgressError` while it runs; failed, it is refused for its graph and then continued."""
    scene = set_up(world, store)
    workflow = desk(world, store)
    call = {"checkpoint": scene.head, "on_pending": "keep"}

    async def scenario() -> None:
        gate = world.gates["clerk c"] = Gate()
        world.faults.add("clerk c")
        running = asyncio.create_task(workflow.run(Note("c"), **call))
        await gate.entered.wait()
        for other in (workflow, changed(scene), demanding(scene)):
            with pytest.raises(TurnInProgressError):
                await other.run(Note("c"), **call)
        gate.opened.set()
        with pytest.raises(Exception, match="clerk c"):
            await running

    run(scenario())
    world.faults.clear()
    with pytest.raises(GraphChangedError):
        run(changed(scene).run(Note("c"), **call))
    with pytest.raises(MissingResourceError):
        run(demanding(scene).run(Note("c"), **call))
    assert run(workflow.run(Note("c"), **call)).outputs == ["3: c"]
