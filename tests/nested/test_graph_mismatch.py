"""A checkpoint of another graph: refused with every difference named by path, before anything has changed or run."""

import asyncio

import pytest

from rehydrate import Runner, WorkflowBuilder, WorkflowCheckpoint, WorkflowExecutor, append, executor
from rehydrate.errors import ForeignCheckpointError, GraphChangedError, WorkflowCheckpointException
from tests.nested.stories import Ask


def noted(id: str, journal: list[str], takes: type = str):
    """Make an executor that notes its calls."""

    @executor(id=id, message=takes, returns=str)
    async def note(message):
        journal.append(id)
        return str(message)

    return note


class Shape:
    """How a parent with a child of three executors is built; each test changes one thing of it."""

    def __init__(self, **changes: object) -> None:
        self.journal: list[str] = []
        self.changes = changes

    def get(self, name: str, usual: object) -> object:
        return self.changes.get(name, usual)

    def child(self):
        nodes = [noted(id, self.journal) for id in self.get("nodes", ["A", "B"])]
        ask = Ask("ask")
        builder = WorkflowBuilder(
            "review",
            nodes[0],
            version=self.get("version", 1),
            reducers=self.get("reducers", None),
            max_supersteps=self.get("limit", 100),
        )
        condition = self.get("condition", None)
        builder.add_edge(nodes[0], nodes[1], condition, name=self.get("condition_name", None))
        for source, target in zip(nodes[1:], [*nodes[2:], ask], strict=True):
            builder.add_edge(source, target)
        return builder.build()

    def build(self):
        middle = WorkflowBuilder("middle", WorkflowExecutor(self.child(), "legal")).build()
        intake = noted("intake", self.journal, self.get("takes", str))
        return (
            WorkflowBuilder("claims", intake, version=self.get("outer_version", 1))
            .add_chain([intake, WorkflowExecutor(middle, self.get("id", "review"))])
            .build()
        )


def paused(shape: Shape) -> WorkflowCheckpoint:
    """Run until the question two levels down and return the checkpoint."""
    return asyncio.run(shape.build().run("why")).checkpoint


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"nodes": ["A", "B", "C"]}, ["review/legal/C: new"]),
        ({"nodes": ["A", "X"]}, ["review/legal/B: missing now", "review/legal/X: new"]),
        ({"version": 2}, ["review/legal/(workflow): version was 1, is 2"]),
        ({"outer_version": 3}, ["(workflow): version was 1, is 3"]),
        ({"takes": int}, ["intake: takes was str, is int"]),
        ({"id": "audit"}, ["audit: new", "review: missing now"]),
        ({"reducers": {"log": append}}, ["review/legal/(state log): new"]),
        ({"condition": lambda text: True}, ["review/legal/A -> B: condition name was nothing, is (none)"]),
    ],
)
def test_a_changed_graph_is_refused_with_the_path_of_each_difference(changes, lines) -> None:
    """What changed two levels down is named by its path, what changed in the parent without one."""
    checkpoint = paused(Shape())
    changed = Shape(**changes)
    with pytest.raises(GraphChangedError) as caught:
        asyncio.run(Runner(changed.build()).restore_from_checkpoint_object(checkpoint))
    assert isinstance(caught.value, WorkflowCheckpointException)
    assert [line for line in lines if line not in caught.value.differences] == []
    assert all(line in str(caught.value) for line in lines)


@pytest.mark.parametrize("changes", [{"limit": 7}, {"condition": len}], ids=["limit", "condition"])
def test_code_and_limits_are_not_part_of_the_graph(changes) -> None:
    """A checkpoint fits when only a limit or the code of a condition is another."""
    usual = {"condition": bool} if "condition" in changes else {}
    checkpoint = paused(Shape(**usual))
    shape = Shape(**changes)

    async def go_on():
        runner = Runner(shape.build())
        await runner.restore_from_checkpoint_object(checkpoint)
        return await runner.run(responses={checkpoint.pending_request_ids[0]: "because"})

    assert asyncio.run(go_on()).outputs == ["why: because"]


def test_a_refused_restore_leaves_the_runner_as_it_was() -> None:
    """It is not marked as resumed, holds the same run, and can still be answered."""
    other = paused(Shape(nodes=["A", "B", "C"]))
    shape = Shape()

    async def refuse():
        runner = Runner(shape.build())
        first = await runner.run("why", run_id="mine")
        before = await runner.capture_checkpoint_object()
        with pytest.raises(GraphChangedError):
            await runner.restore_from_checkpoint_object(other)
        after = await runner.capture_checkpoint_object()
        told = (runner.resumed, after.run_id, after.to_bytes() == before.to_bytes(), list(shape.journal))
        return told, await runner.run(responses=[first.pending_requests[0].answer("because")])

    told, second = asyncio.run(refuse())
    assert told == (False, "mine", True, ["intake", "A", "B"])
    assert (second.run_id, second.outputs) == ("mine", ["why: because"])


def test_a_refused_restore_into_a_new_runner_leaves_it_new() -> None:
    """Nothing has run, and it starts a run of its own."""
    other = paused(Shape(nodes=["A", "B", "C"]))
    shape = Shape()

    async def refuse():
        runner = Runner(shape.build())
        with pytest.raises(GraphChangedError):
            await runner.restore_from_checkpoint_object(other)
        told = (runner.resumed, list(shape.journal))
        return told, await runner.run("what")

    told, first = asyncio.run(refuse())
    assert told == (False, [])
    assert first.run_id != other.run_id
    assert [request.data.text for request in first.pending_requests] == ["what"]


def test_a_call_with_a_checkpoint_of_another_graph_runs_nothing(place) -> None:
    """A message and an answer brought along are not used, the stored run is untouched, and the old code goes on."""
    store = place.open()
    first = asyncio.run(Shape().build().run("why", run_id="r", checkpoint_storage=store))
    changed = Shape(nodes=["A", "B", "C"])
    given = {first.pending_requests[0].request_id: "because"}
    with pytest.raises(GraphChangedError):
        asyncio.run(
            changed.build().run("more", checkpoint=first.checkpoint_id, responses=given, checkpoint_storage=store)
        )
    assert changed.journal == []
    assert asyncio.run(store.head("r")).header.checkpoint_id == first.checkpoint_id
    second = asyncio.run(Shape().build().run(checkpoint=first, responses=given, checkpoint_storage=place.open()))
    assert second.outputs == ["why: because"]


def test_a_checkpoint_of_another_workflow_is_foreign() -> None:
    """It is another error than a changed graph, and the runner stays as it was."""
    builder = WorkflowBuilder("elsewhere", Ask("ask"))
    checkpoint = asyncio.run(builder.build().run("why")).checkpoint
    runner = Runner(Shape().build())
    with pytest.raises(ForeignCheckpointError) as caught:
        asyncio.run(runner.restore_from_checkpoint_object(checkpoint))
    assert isinstance(caught.value, WorkflowCheckpointException)
    assert runner.resumed is False
