"""Checkpoints that were made elsewhere: restored as far as they go, with a warning about what was not there."""

import asyncio
import logging

import pytest

from rehydrate import (
    ExecutionContext,
    LegacyRequest,
    Runner,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowExecutor,
    append,
)
from rehydrate.errors import GraphChangedError, WorkflowCheckpointException
from rehydrate.model.events import RequestOpened
from tests.nested.journalled import Adder, More, adding
from tests.nested.stories import Ask, Question, around, asking, intake, publish, two_down


def legacy_two_down(text: str = "why") -> WorkflowCheckpoint:
    """Return a legacy checkpoint with a question two levels down."""
    asked = LegacyRequest("ask", Question(text), str)
    grandchild = ExecutionContext("grandchild", pending_requests=[asked])
    child = ExecutionContext("child", execution_contexts=[grandchild])
    return WorkflowCheckpoint.legacy(two_down(), "imported", execution_contexts=[child])


def run(workflow, message=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, **options))


def test_only_a_checkpoint_that_was_made_elsewhere_is_legacy() -> None:
    """The mark is in the record and survives the way through bytes."""
    assert legacy_two_down().is_legacy is True
    assert WorkflowCheckpoint.from_bytes(legacy_two_down().to_bytes()).is_legacy is True
    assert run(two_down(), "why").checkpoint.is_legacy is False


def test_the_questions_of_a_legacy_checkpoint_are_surfaced_again(place) -> None:
    """Each once, with its path, and nothing runs or is saved for it."""
    checkpoint = legacy_two_down()
    result = run(two_down(), checkpoint=checkpoint, checkpoint_storage=place.open())
    assert [(r.path, r.executor_id, r.data) for r in result.pending_requests] == [
        ("child#1/grandchild#1", "ask", Question("why"))
    ]
    opened = [event.request_id for event in result.events if isinstance(event, RequestOpened)]
    assert opened == [result.pending_requests[0].request_id]
    assert result.run_id == "imported"


def test_a_legacy_question_two_levels_down_is_answered(place) -> None:
    """What the grandchild yields goes up to the parent and is published."""
    checkpoint = WorkflowCheckpoint.from_bytes(legacy_two_down().to_bytes())
    (asked,) = checkpoint.pending_request_ids
    store = place.open()
    second = run(two_down(), checkpoint=checkpoint, responses={asked: "because"}, checkpoint_storage=store)
    assert second.outputs == ["published why: because"]
    assert second.pending_requests == ()
    third = run(two_down(), "more", checkpoint=second.checkpoint_id, checkpoint_storage=place.open())
    assert [(r.path, r.data.text) for r in third.pending_requests] == [("child#2/grandchild#1", "more")]


def test_restoring_a_legacy_checkpoint_is_warned_about(caplog) -> None:
    """One warning says that the inner state was not there; an ordinary checkpoint brings none."""
    checkpoint = legacy_two_down()
    (asked,) = checkpoint.pending_request_ids
    with caplog.at_level(logging.WARNING, logger="rehydrate"):
        run(two_down(), checkpoint=checkpoint, responses={asked: "because"})
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "imported" in record.getMessage()
    assert "inner state" in record.getMessage()
    caplog.clear()
    first = run(two_down(), "why")
    with caplog.at_level(logging.WARNING, logger="rehydrate"):
        run(two_down(), checkpoint=first, responses=[first.pending_requests[0].answer("because")])
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_looking_at_a_legacy_checkpoint_is_warned_about_too(caplog) -> None:
    """A call that only surfaces its questions restores it as well."""
    with caplog.at_level(logging.WARNING, logger="rehydrate"):
        run(two_down(), checkpoint=legacy_two_down())
    assert ["inner state" in record.getMessage() for record in caplog.records] == [True]


def test_restoring_a_legacy_checkpoint_into_a_runner_goes_on() -> None:
    """The runner's way is the same as the call's."""

    async def go_on():
        checkpoint = legacy_two_down()
        runner = Runner(two_down())
        await runner.restore_from_checkpoint_object(checkpoint)
        return await runner.run(responses={checkpoint.pending_request_ids[0]: "because"})

    assert asyncio.run(go_on()).outputs == ["published why: because"]


def test_an_executor_of_a_legacy_checkpoint_starts_without_its_state() -> None:
    """Its inner state was not there, so the answer is all that it has."""
    adder = Adder("adder", [], [])
    asked = ExecutionContext("inner", pending_requests=[LegacyRequest("adder", More(40), int)])
    checkpoint = WorkflowCheckpoint.legacy(adding(adder, depth=1), "imported", execution_contexts=[asked])
    (id,) = checkpoint.pending_request_ids
    assert run(adding(adder, depth=1), checkpoint=checkpoint, responses={id: 2}).outputs == ["adder has 2"]
    assert adder.journal == ["inner#1 takes answer 2", "save 2"]


def test_several_executions_and_siblings_of_a_legacy_checkpoint_keep_apart() -> None:
    """Each is numbered per executor, and each gets its own answer."""
    child = asking("child")
    one, two = WorkflowExecutor(child, "one"), WorkflowExecutor(child, "two")
    builder = WorkflowBuilder("parent", intake).add_fan_out_edges(intake, [one, two])
    workflow = builder.add_edge(one, publish).add_edge(two, publish).build()
    contexts = [
        ExecutionContext(id, pending_requests=[LegacyRequest("ask", Question(text), str)])
        for id, text in (("one", "a"), ("two", "b"), ("one", "c"))
    ]
    checkpoint = WorkflowCheckpoint.legacy(workflow, "imported", execution_contexts=contexts)
    first = run(workflow, checkpoint=checkpoint)
    assert [(r.path, r.data.text) for r in first.pending_requests] == [("one#1", "a"), ("one#2", "c"), ("two#1", "b")]
    given = [request.answer(f"to {request.path}") for request in first.pending_requests]
    second = run(workflow, checkpoint=checkpoint, responses=given)
    assert second.outputs == ["published a: to one#1", "published c: to one#2", "published b: to two#1"]


def test_a_legacy_checkpoint_has_the_state_and_the_questions_of_its_root() -> None:
    """State values are those given; a list with a reducer goes on growing."""
    builder = WorkflowBuilder("rooted", Ask("ask"), reducers={"log": append})
    asked = LegacyRequest("ask", Question("why"), str)
    checkpoint = WorkflowCheckpoint.legacy(
        builder.build(), "imported", state={"name": "ann", "log": ["a", "b"]}, pending_requests=[asked]
    )
    assert checkpoint.state == {"name": "ann", "log": ["a", "b"]}
    (id,) = checkpoint.pending_request_ids
    second = run(builder.build(), checkpoint=checkpoint, responses={id: "because"})
    assert (second.outputs, second.checkpoint.state) == (["why: because"], {"name": "ann", "log": ["a", "b"]})


def test_a_legacy_checkpoint_of_another_graph_is_refused() -> None:
    """It is as strict about the graph as any other."""
    asked = ExecutionContext("child", pending_requests=[LegacyRequest("ask", Question("why"), str)])
    old = around(WorkflowBuilder("asking", Ask("ask")).build())
    checkpoint = WorkflowCheckpoint.legacy(old, "imported", execution_contexts=[asked])
    changed = around(WorkflowBuilder("asking", Ask("ask"), version=2).build())
    with pytest.raises(GraphChangedError, match="child/"):
        run(changed, checkpoint=checkpoint, responses={checkpoint.pending_request_ids[0]: "x"})


@pytest.mark.parametrize(
    ("contexts", "name"),
    [
        ([ExecutionContext("nobody")], "nobody"),
        ([ExecutionContext("child", pending_requests=[LegacyRequest("nobody", Question("why"), str)])], "nobody"),
        ([ExecutionContext("child", execution_contexts=[ExecutionContext("nobody")])], "nobody"),
    ],
)
def test_what_has_no_place_in_the_workflow_is_refused(contexts, name) -> None:
    """The error names it."""
    with pytest.raises(WorkflowCheckpointException, match=name):
        WorkflowCheckpoint.legacy(around(asking()), "imported", execution_contexts=contexts)


def test_a_legacy_question_that_nobody_can_be_answered_for_is_refused() -> None:
    """No response handler takes this pair of types."""
    asked = ExecutionContext("child", pending_requests=[LegacyRequest("ask", Question("why"), int)])
    with pytest.raises(WorkflowCheckpointException, match="response handler"):
        WorkflowCheckpoint.legacy(around(asking()), "imported", execution_contexts=[asked])
