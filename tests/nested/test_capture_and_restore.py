"""Checkpoint objects: captured from a runner, as bytes and back, restored into another runner."""

import asyncio

import pytest

from rehydrate import Runner, RunnerContext, Status, WorkflowCheckpoint
from rehydrate.errors import CaptureError, CheckpointCorruptError, WorkflowCheckpointException
from tests.nested.loops import looping
from tests.nested.stories import around, asking, counting, two_down
from tests.nested.tree import Branch, Gate, answers, reports, size, tree


def open_gate() -> dict[str, Gate]:
    """Return resources with a gate that holds nobody."""
    return {"gate": Gate(is_open=True)}


def readable(checkpoint: WorkflowCheckpoint) -> object:
    """Return what can be read of a checkpoint at every depth: state, executors' states, open requests, status."""
    below = {
        (id, number): readable(child)
        for id, kept in checkpoint.executor_states.items()
        for number, child in kept.get("sub_workflow_checkpoint", {}).items()
    }
    own = {id: kept for id, kept in checkpoint.executor_states.items() if "sub_workflow_checkpoint" not in kept}
    return dict(checkpoint.state), own, checkpoint.pending_request_ids, checkpoint.status, below


async def paused_runner(workflow, message, **options):
    """Return a runner that has run until it paused, and its result."""
    runner = Runner(workflow)
    return runner, await runner.run(message, **options)


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 5])
def test_a_captured_checkpoint_is_the_same_after_a_round_trip_through_bytes(depth) -> None:
    """At every depth it reads the same, and it gives the same bytes again."""

    async def capture():
        runner, _ = await paused_runner(tree(depth), Branch(1), resources=open_gate())
        return await runner.capture_checkpoint_object()

    captured = asyncio.run(capture())
    again = WorkflowCheckpoint.from_bytes(captured.to_bytes())
    assert len(again.pending_request_ids) == size(depth)
    assert (again.checkpoint_id, again.run_id, again.workflow_name, again.status) == (
        captured.checkpoint_id,
        captured.run_id,
        f"level {depth}",
        Status.IDLE_WITH_PENDING_REQUESTS,
    )
    assert readable(again) == readable(captured)
    assert again.to_bytes() == captured.to_bytes()


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 5])
def test_a_runner_restored_from_an_object_goes_on_as_the_captured_run_does(depth) -> None:
    """Both are answered alike and both have the same outputs at the end."""

    async def both():
        runner, first = await paused_runner(tree(depth), Branch(1), resources=open_gate())
        captured = await runner.capture_checkpoint_object()
        other = Runner(tree(depth))
        await other.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(captured.to_bytes()))
        given = answers(first.pending_requests)
        return [await each.run(responses=given, resources=open_gate()) for each in (runner, other)]

    uninterrupted, restored = asyncio.run(both())
    assert uninterrupted.outputs == reports(depth)
    assert restored.outputs == reports(depth)
    assert (restored.run_id, restored.turn, restored.status) == (uninterrupted.run_id, 2, Status.IDLE)


def test_a_restored_runner_is_marked_as_resumed_and_captures_what_it_was_given() -> None:
    """Nothing has run and nothing has changed by restoring."""

    async def restore():
        _, first = await paused_runner(two_down(), "why")
        runner = Runner(two_down())
        before = runner.resumed
        await runner.restore_from_checkpoint_object(first.checkpoint)
        return before, runner.resumed, await runner.capture_checkpoint_object(), first.checkpoint

    before, after, captured, given = asyncio.run(restore())
    assert (before, after) == (False, True)
    assert captured.to_bytes() == given.to_bytes()


def test_a_restored_runner_takes_answers_and_a_new_message_in_one_call() -> None:
    """The call on the runner is the call on the workflow."""

    async def restore():
        _, first = await paused_runner(two_down(), "one")
        runner = Runner(two_down())
        await runner.restore_from_checkpoint_object(first.checkpoint)
        return await runner.run("two", responses=[first.pending_requests[0].answer("yes")])

    result = asyncio.run(restore())
    assert result.outputs == ["published one: yes"]
    assert [(request.path, request.data.text) for request in result.pending_requests] == [
        ("child#2/grandchild#1", "two")
    ]


def test_restoring_clears_what_the_runner_had() -> None:
    """Of the run before nothing is left: not its id, not its question, not its children."""

    async def restore():
        runner, _ = await paused_runner(counting(), "old", run_id="old")
        _, other = await paused_runner(counting(), "new", run_id="new")
        await runner.restore_from_checkpoint_object(other.checkpoint)
        captured = await runner.capture_checkpoint_object()
        return captured, other, await runner.run(responses=[other.pending_requests[0].answer(3)])

    captured, other, result = asyncio.run(restore())
    assert captured.run_id == "new"
    assert captured.pending_request_ids == (other.pending_requests[0].request_id,)
    assert (result.run_id, result.outputs) == ("new", ["published executor 5, state 5"])


def test_a_turn_that_ends_after_a_restore_does_not_undo_it() -> None:
    """The runner goes on from what it was restored from, whenever the turn that it ran before ends."""

    async def restore():
        _, other = await paused_runner(tree(1), Branch(1), resources=open_gate(), run_id="new")
        runner, gate = Runner(tree(1)), Gate(size(1))
        async with runner.run(Branch(1), stream=True, run_id="old", resources={"gate": gate}) as stream:
            await gate.full.wait()
            await runner.restore_from_checkpoint_object(other.checkpoint)
            gate.opened.set()
            ended = await stream.result()
        captured = await runner.capture_checkpoint_object()
        given = answers(other.pending_requests)
        return ended.run_id, captured.run_id, await runner.run(responses=given, resources=open_gate())

    ended, captured, result = asyncio.run(restore())
    assert (ended, captured, result.run_id) == ("old", "new", "new")
    assert result.outputs == reports(1)


def test_a_captured_checkpoint_does_not_change_when_its_run_goes_on() -> None:
    """It is the run at that moment, and can be gone back to."""

    async def go_on():
        runner, first = await paused_runner(tree(2), Branch(1), resources=open_gate())
        captured = await runner.capture_checkpoint_object()
        before = captured.to_bytes()
        given = answers(first.pending_requests)
        await runner.run(responses=given, resources=open_gate())
        unchanged = captured.to_bytes() == before
        await runner.restore_from_checkpoint_object(captured)
        return unchanged, await runner.run(responses=given, resources=open_gate()), captured.to_bytes() == before

    unchanged, again, still_unchanged = asyncio.run(go_on())
    assert (unchanged, still_unchanged) == (True, True)
    assert again.outputs == reports(2)


def test_a_run_at_rest_is_captured_under_the_id_of_its_result(place) -> None:
    """So the object stands for the stored checkpoint."""

    async def capture():
        runner = Runner(two_down(), place.open())
        first = await runner.run("why")
        captured = await runner.capture_checkpoint_object()
        return (
            first,
            captured,
            await runner.run(responses=[first.pending_requests[0].answer("so")], checkpoint=captured),
        )

    first, captured, second = asyncio.run(capture())
    assert captured.checkpoint_id == first.checkpoint_id
    assert second.outputs == ["published why: so"]


def test_a_restored_object_is_imported_by_the_first_call_of_a_runner_with_a_store(place) -> None:
    """Restoring itself saves nothing; the call saves the run under its id, children included."""

    async def restore():
        _, first = await paused_runner(tree(2), Branch(1), resources=open_gate(), run_id="r")
        store = place.open()
        runner = Runner(tree(2), store)
        await runner.restore_from_checkpoint_object(first.checkpoint)
        before = await store.runs()
        given = answers(first.pending_requests)
        some = dict(list(given.items())[:3])
        second = await runner.run(responses=some, resources=open_gate())
        return before, given.items() - some.items(), second

    before, rest, second = asyncio.run(restore())
    assert before == []
    assert asyncio.run(place.open().head("r")).header.checkpoint_id == second.checkpoint_id
    third = asyncio.run(
        tree(2).run(
            checkpoint=second.checkpoint_id,
            responses=dict(rest),
            checkpoint_storage=place.open(),
            resources=open_gate(),
        )
    )
    assert sorted(map(repr, [*second.outputs, *third.outputs])) == sorted(map(repr, reports(2)))


def test_nothing_can_be_captured_before_the_first_run() -> None:
    """The error says what to do."""
    with pytest.raises(CaptureError, match="Run or restore it first"):
        asyncio.run(Runner(two_down()).capture_checkpoint_object())


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_capturing_is_refused_while_messages_are_in_flight_at_any_depth(depth) -> None:
    """The deepest executor waits in the middle of a stream; capturing changes nothing, and the run ends as ever."""

    async def capture():
        workflow, gate = tree(depth), Gate(size(depth))
        runner = Runner(workflow)
        async with runner.run(Branch(1), stream=True, resources={"gate": gate}) as stream:
            await gate.full.wait()
            with pytest.raises(WorkflowCheckpointException, match="in flight"):
                await runner.capture_checkpoint_object()
            gate.opened.set()
            first = await stream.result()
        await runner.capture_checkpoint_object()
        return await runner.run(responses=answers(first.pending_requests), resources=open_gate())

    assert asyncio.run(capture()).outputs == reports(depth)


def test_capturing_is_refused_while_a_stream_is_read_and_possible_at_its_end() -> None:
    """While a handler works its message is in flight; after the last event the run is at rest."""

    async def capture():
        runner, gate = Runner(tree(0)), Gate(size(0))
        stream = runner.run(Branch(0), stream=True, resources={"gate": gate})
        await anext(stream)
        with pytest.raises(CaptureError):
            await runner.capture_checkpoint_object()
        gate.opened.set()
        rest = [event async for event in stream]
        return rest[-1], await runner.capture_checkpoint_object()

    last, captured = asyncio.run(capture())
    assert (last.status, captured.status) == (Status.IDLE_WITH_PENDING_REQUESTS, Status.IDLE_WITH_PENDING_REQUESTS)
    assert len(captured.pending_request_ids) == 1


def test_a_run_that_reached_its_limit_has_messages_in_flight() -> None:
    """It is captured only on request, and goes on from there."""

    async def capture():
        runner = Runner(looping([], [], last=7))
        first = await runner.run("go")
        with pytest.raises(CaptureError):
            await runner.capture_checkpoint_object()
        captured = await runner.capture_checkpoint_object(in_flight=True)
        other = Runner(looping([], [], last=7))
        await other.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(captured.to_bytes()))
        return first, await other.run()

    first, second = asyncio.run(capture())
    assert first.status is Status.LIMIT_REACHED
    assert (second.status, second.outputs) == (Status.IDLE, ["7 rounds", "go"])


def test_damaged_bytes_are_refused() -> None:
    """A changed bit is seen before anything is restored."""

    async def damage():
        _, first = await paused_runner(around(asking()), "why")
        data = bytearray(first.checkpoint.to_bytes())
        data[len(data) // 2] ^= 1
        return bytes(data)

    with pytest.raises(CheckpointCorruptError):
        WorkflowCheckpoint.from_bytes(asyncio.run(damage()))


class OtherContext(RunnerContext):
    """A context that someone else wrote, and that cannot read a run out."""


def test_a_context_that_cannot_make_checkpoints_says_so() -> None:
    """Both calls raise `NotImplementedError`, naming the class."""
    with pytest.raises(NotImplementedError, match="OtherContext"):
        OtherContext().create_checkpoint_object()
    with pytest.raises(NotImplementedError, match="OtherContext"):
        asyncio.run(OtherContext().create_checkpoint())
