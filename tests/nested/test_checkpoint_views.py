"""What a checkpoint shows of its sub-workflows, and how it is made: views, hooks of `WorkflowExecutor`, contexts."""

import asyncio

import pytest

from rehydrate import Runner, WorkflowBuilder, WorkflowCheckpoint, WorkflowExecutor
from rehydrate.errors import CheckpointCorruptError
from tests.nested.stories import both_at_once, intake, one_after_the_other, publish, two_down
from tests.nested.tree import Branch, Gate, answers, reports, size, tree


def paused(workflow, message, **options):
    """Run a workflow without a store until it rests and return its result."""
    return asyncio.run(workflow.run(message, **options))


def child(checkpoint: WorkflowCheckpoint, *steps: str) -> WorkflowCheckpoint:
    """Walk down executor by executor, each time into its first execution."""
    for executor_id in steps:
        checkpoint = checkpoint.executor_states[executor_id]["sub_workflow_checkpoint"][1]
    return checkpoint


def test_a_checkpoint_shows_its_children_and_these_show_theirs() -> None:
    """State, executor states and open questions can be read at every depth, without building the workflow."""
    first = paused(tree(2), Branch(1), resources={"gate": Gate(is_open=True)})
    checkpoint = WorkflowCheckpoint.from_bytes(first.checkpoint.to_bytes())
    assert sorted(checkpoint.executor_states) == ["count", "left", "right", "tally"]
    for steps, number in (
        ((), 1),
        (("left",), 2),
        (("right",), 3),
        (("left", "right"), 5),
        (("right", "left"), 6),
    ):
        here = child(checkpoint, *steps)
        assert isinstance(here, WorkflowCheckpoint)
        assert here.state == {"shared": 2 * number, "waited": number}
        assert here.executor_states["count"] == {"kept": 2 * number}
        assert here.executor_states["tally"] == {"seen": number}
    assert sorted(child(checkpoint, "left", "left").executor_states) == ["count", "tally"]


def test_the_open_questions_of_a_child_have_the_ids_by_which_they_are_answered() -> None:
    """A view counts only what is open in and below its scope."""
    first = paused(tree(2), Branch(1), resources={"gate": Gate(is_open=True)})
    ids = {request.path: request.request_id for request in first.pending_requests}
    for steps, paths in (
        (("left", "right"), ["left#1/right#1"]),
        (("right",), ["right#1", "right#1/left#1", "right#1/right#1"]),
    ):
        below = child(first.checkpoint, *steps)
        assert sorted(below.pending_request_ids) == sorted(ids[path] for path in paths)


def test_each_execution_of_a_child_is_shown_under_its_number() -> None:
    """Two inputs overlap; each has its own open questions, and one answer is in one of them."""
    workflow = both_at_once()
    first = paused(workflow, "A")
    second = paused(workflow, "B", checkpoint=first, on_pending="keep")
    answered = {request.data.text: request.request_id for request in second.pending_requests}["B1"]
    third = paused(workflow, None, checkpoint=second, responses={answered: "yes"})
    executions = third.checkpoint.executor_states["child"]["sub_workflow_checkpoint"]
    assert list(executions) == [1, 2]
    assert "ask" not in executions[1].executor_states or executions[1].executor_states["ask"] == {"answers": []}
    assert executions[2].executor_states["ask"] == {"answers": ["yes"]}
    assert [len(execution.pending_request_ids) for execution in executions.values()] == [2, 1]


def test_a_child_that_has_ended_is_not_shown() -> None:
    """Its part is gone from the checkpoint once its parent has taken what it yielded."""
    workflow = two_down()
    first = paused(workflow, "why")
    assert list(first.checkpoint.executor_states) == ["child"]
    second = paused(workflow, None, checkpoint=first, responses=[first.pending_requests[0].answer("so")])
    assert dict(second.checkpoint.executor_states) == {}


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_children_in_mid_progress_are_shown_at_every_depth(depth) -> None:
    """Captured while all scopes wait, each view has what its scope has committed."""

    async def capture():
        gate, runner = Gate(size(depth)), Runner(tree(depth))
        async with runner.run(Branch(1), stream=True, resources={"gate": gate}):
            await gate.full.wait()
            return await runner.capture_checkpoint_object(in_flight=True)

    checkpoint = asyncio.run(capture())
    for below in range(depth + 1):
        number = 2 ** (below + 1) - 1
        here = child(checkpoint, *["right"] * below)
        assert here.state == {"shared": 2 * number}
        assert here.executor_states["count"] == {"kept": 2 * number}
        assert len(here.pending_request_ids) == size(depth - below)


# The hooks of WorkflowExecutor


def parent():
    """A parent that publishes what its child yields, with the child's executor."""
    node = WorkflowExecutor(one_after_the_other(), "inner")
    return node, WorkflowBuilder("parent", intake).add_chain([intake, node, publish]).build()


def test_the_save_hook_of_a_sub_workflow_gives_its_part_of_a_checkpoint() -> None:
    """It is what `executor_states` shows; where no child runs there is none."""
    node, workflow = parent()
    first = paused(workflow, "colour")
    saved = node.on_checkpoint_save(first.checkpoint)
    assert list(saved) == ["sub_workflow_checkpoint"]
    assert list(saved["sub_workflow_checkpoint"]) == [1]
    assert saved["sub_workflow_checkpoint"][1].pending_request_ids == (first.pending_requests[0].request_id,)
    second = paused(workflow, None, checkpoint=first, responses=[first.pending_requests[0].answer("red")])
    third = paused(workflow, None, checkpoint=second, responses=[second.pending_requests[0].answer("blue")])
    assert node.on_checkpoint_save(third.checkpoint) == {"sub_workflow_checkpoint": {}}


def test_what_the_save_hook_gave_is_taken_by_the_restore_hook() -> None:
    """Given back to the same checkpoint it changes nothing; the checkpoint it is given to stays as it was."""
    node, workflow = parent()
    first = paused(workflow, "colour")
    before = first.checkpoint.to_bytes()
    again = node.on_checkpoint_restore(node.on_checkpoint_save(first.checkpoint), first.checkpoint)
    assert again.encoded() == first.checkpoint.encoded()
    assert first.checkpoint.to_bytes() == before
    second = paused(workflow, None, checkpoint=again, responses=[first.pending_requests[0].answer("red")])
    assert [request.data.text for request in second.pending_requests] == ["colour 2?"]


def test_the_restore_hook_puts_another_state_of_the_child_in_its_place() -> None:
    """A child that was at its first question is put to where it had the answer and asked the second."""
    node, workflow = parent()
    first = paused(workflow, "colour")
    second = paused(workflow, None, checkpoint=first, responses=[first.pending_requests[0].answer("red")])
    moved = node.on_checkpoint_restore(node.on_checkpoint_save(second.checkpoint), first.checkpoint)
    assert moved.pending_request_ids == second.checkpoint.pending_request_ids
    answer = second.pending_requests[0].answer("blue")
    third = paused(workflow, None, checkpoint=moved, responses=[answer])
    assert third.outputs == ["published red, then blue"]
    assert third.pending_requests == ()


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_hooks_give_and_take_a_child_with_all_below_it(depth) -> None:
    """A whole subtree is taken out of one checkpoint and put into another of the same run."""
    workflow = tree(depth)
    node = workflow.definition.executors["left"]
    gate = {"gate": Gate(is_open=True)}
    first = paused(workflow, Branch(1), resources=gate)
    left = [request for request in first.pending_requests if request.path.startswith("left#1")]
    second = paused(workflow, None, checkpoint=first, responses=answers(left[:1]), resources=gate)
    back = node.on_checkpoint_restore(node.on_checkpoint_save(first.checkpoint), second.checkpoint)
    assert sorted(back.pending_request_ids) == sorted(first.checkpoint.pending_request_ids)
    third = paused(workflow, None, checkpoint=back, responses=answers(first.pending_requests), resources=gate)
    assert third.outputs == reports(depth)


def test_a_child_goes_through_bytes_between_the_hooks() -> None:
    """What the save hook gave can be kept as bytes, with all that is below it."""
    workflow = tree(2)
    node = workflow.definition.executors["right"]
    first = paused(workflow, Branch(1), resources={"gate": Gate(is_open=True)})
    kept = node.on_checkpoint_save(first.checkpoint)["sub_workflow_checkpoint"][1].to_bytes()
    emptied = node.on_checkpoint_restore({"sub_workflow_checkpoint": {}}, first.checkpoint)
    assert len(emptied.pending_request_ids) == 4
    back = node.on_checkpoint_restore({"sub_workflow_checkpoint": {1: WorkflowCheckpoint.from_bytes(kept)}}, emptied)
    assert back.encoded()[1] == first.checkpoint.encoded()[1]
    given = answers(first.pending_requests)
    second = paused(workflow, None, checkpoint=back, responses=given, resources={"gate": Gate(is_open=True)})
    assert second.outputs == reports(2)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"sub_workflow_checkpoint": None},
        {"sub_workflow_checkpoint": {1: {}}},
        {"sub_workflow_checkpoint": {"a": 1}},
    ],
)
def test_the_restore_hook_refuses_another_form(state) -> None:
    """The error names the sub-workflow."""
    node, workflow = parent()
    first = paused(workflow, "colour")
    with pytest.raises(CheckpointCorruptError, match="inner"):
        node.on_checkpoint_restore(state, first.checkpoint)


def test_a_checkpoint_that_lacks_a_busy_child_is_damaged() -> None:
    """The parent's superstep waits for the child, whose part is not there: nothing is restored in its place."""

    async def capture():
        workflow, gate = tree(1), Gate(size(1))
        runner = Runner(workflow)
        async with runner.run(Branch(1), stream=True, resources={"gate": gate}):
            await gate.full.wait()
            captured = await runner.capture_checkpoint_object(in_flight=True)
        lacking = workflow.definition.executors["left"].on_checkpoint_restore({"sub_workflow_checkpoint": {}}, captured)
        other = Runner(tree(1))
        with pytest.raises(CheckpointCorruptError, match="left#1"):
            await other.restore_from_checkpoint_object(lacking)
        return other.resumed

    assert asyncio.run(capture()) is False


# Contexts


def test_a_context_reads_the_run_out_and_drains_nothing() -> None:
    """Read twice in a running stream it gives the same records, and the run ends as if nothing had looked."""

    async def read():
        workflow, gate = tree(2), Gate(size(2))
        runner = Runner(workflow)
        async with runner.run(Branch(1), stream=True, resources={"gate": gate}) as stream:
            await gate.full.wait()
            for _ in range(20):  # let what has finished be taken in
                await asyncio.sleep(0)
            one, other = [runner.context.create_checkpoint_object().encoded()[1] for _ in range(2)]
            gate.opened.set()
            first = await stream.result()
        given = answers(first.pending_requests)
        return one == other, await runner.run(responses=given, resources={"gate": Gate(is_open=True)})

    same, second = asyncio.run(read())
    assert same is True
    assert second.outputs == reports(2)


def test_a_context_persists_the_run_as_it_stands(place) -> None:
    """The checkpoint is the head of its run, holds work that no barrier has taken, and can be gone on from."""

    async def persist():
        store, gate = place.open(), Gate(size(2))
        runner = Runner(tree(2), store)
        async with runner.run(Branch(1), stream=True, run_id="r", resources={"gate": gate}):
            await gate.full.wait()
            for _ in range(20):  # the tallies finish
                await asyncio.sleep(0)
            saved = await runner.context.create_checkpoint()
            head = (await store.head("r")).header.checkpoint_id
        return saved, head

    saved, head = asyncio.run(persist())
    assert saved.checkpoint_id == head

    async def go_on():
        workflow, gate = tree(2, checkpoint_storage=place.open()), Gate(is_open=True)
        first = await workflow.run(checkpoint=head, fork=True, resources={"gate": gate})
        given = answers(first.pending_requests)
        return gate, await workflow.run(checkpoint=first, responses=given, resources={"gate": gate})

    gate, second = asyncio.run(go_on())
    assert (gate.tallied, second.outputs) == ([], reports(2))


def test_what_a_context_persisted_is_what_it_returned(place) -> None:
    """The stored records are those of the object."""

    async def persist():
        store, gate = place.open(), Gate(size(1))
        runner = Runner(tree(1), store)
        async with runner.run(Branch(1), stream=True, run_id="r", resources={"gate": gate}):
            await gate.full.wait()
            saved = await runner.context.create_checkpoint()
            return saved.encoded()[1], (await store.load(saved.checkpoint_id)).records

    returned, stored = asyncio.run(persist())
    assert returned == stored
