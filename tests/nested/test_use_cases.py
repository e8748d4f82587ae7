"""Cases 5, 7, 9 and 10: paths, forks, stores of parent and child, run arguments."""

import asyncio
import logging

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Runner,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
)
from rehydrate.errors import AlreadyAnsweredError, StaleCheckpointError
from rehydrate.model.events import InvocationStarted, OutputYielded, RequestOpened
from tests.nested.places import Place, both_places, in_fresh_process
from tests.nested.stories import Ask, around, asking, for_user


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


def places_of(result) -> list[tuple[str, str, str]]:
    """Return path, executor and text of each open request."""
    return [(request.path, request.executor_id, request.data.text) for request in result.pending_requests]


# Case 5


def namesakes():
    """A parent and two children whose executors are all called `ask`; the child is one workflow under two ids."""
    ask, child = Ask("ask"), asking("child")
    start = Broadcast("start")
    builder = WorkflowBuilder("namesakes", start)
    builder.add_fan_out_edges(start, [ask, WorkflowExecutor(child, "one"), WorkflowExecutor(child, "two")])
    return builder.build()


class Broadcast(Executor):
    """Sends its text to every target, with the target's name in front."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        for target in ("ask", "one", "two"):
            ctx.send_message(f"{target} {text}", target_id=target)


def test_questions_of_executors_with_one_id_are_told_apart_by_path(place) -> None:
    """Case 5: parent and child have an executor of the same id, one child is used twice, and all three ask."""
    first = run(namesakes(), "why", place.open())
    assert places_of(first) == [
        ("", "ask", "ask why"),
        ("one#1", "ask", "one why"),
        ("two#1", "ask", "two why"),
    ]
    assert len({request.request_id for request in first.pending_requests}) == 3
    given = {request.request_id: f"answer for {request.path}" for request in reversed(first.pending_requests)}
    second = run(namesakes(), None, place.open(), checkpoint=first.checkpoint_id, responses=given)
    assert second.outputs == ["ask why: answer for ", "one why: answer for one#1", "two why: answer for two#1"]


def streamed(workflow, message=None, store=None, **options):
    """Read one call as a stream and return its events and its result."""

    async def read():
        stream = workflow.run(message, stream=True, checkpoint_storage=store, **options)
        events = [event async for event in stream]
        return events, await stream.result()

    return asyncio.run(read())


def test_events_of_executors_with_one_id_are_told_apart_by_path(place) -> None:
    """Case 5: each event says in which scope it happened, when it asks and when it is answered."""
    events, first = streamed(namesakes(), "why", place.open())
    asked = [(e.path, e.executor_id, e.data.text) for e in events if isinstance(e, RequestOpened)]
    assert sorted(asked) == [("", "ask", "ask why"), ("one#1", "ask", "one why"), ("two#1", "ask", "two why")]
    started = [(e.path, e.executor_id) for e in events if isinstance(e, InvocationStarted)]
    assert sorted(started) == [("", "ask"), ("", "start"), ("one#1", "ask"), ("two#1", "ask")]
    answer = [request.answer("so") for request in first.pending_requests if request.path == "two#1"]
    events, second = streamed(namesakes(), None, place.open(), checkpoint=first.checkpoint_id, responses=answer)
    assert [(e.path, e.executor_id) for e in events if isinstance(e, InvocationStarted)] == [("two#1", "ask")]
    assert [e.data for e in events if isinstance(e, OutputYielded)] == ["two why: so"]
    assert places_of(second) == [("", "ask", "ask why"), ("one#1", "ask", "one why")]


# Case 7


def test_one_stored_checkpoint_is_forked_twice_and_both_finish(place) -> None:
    """Case 7: two forks in one process, answered differently, know nothing of each other or of the original."""
    store, workflow = place.open(), around(asking())
    first = run(workflow, "why", store, run_id="original")
    asked = first.pending_requests[0].request_id
    forks = [
        run(workflow, None, store, checkpoint=first.checkpoint_id, fork=True, run_id=run_id, responses={asked: run_id})
        for run_id in ("left", "right")
    ]
    assert [(fork.run_id, fork.outputs, fork.status) for fork in forks] == [
        ("left", ["why: left"], Status.IDLE),
        ("right", ["why: right"], Status.IDLE),
    ]
    third = run(workflow, None, store, checkpoint=first.checkpoint_id, responses={asked: "original"})
    assert (third.run_id, third.outputs) == ("original", ["why: original"])


def test_one_checkpoint_object_is_restored_twice_and_both_finish() -> None:
    """Case 7: without a store each call goes on from the object, which stays what it was."""
    workflow = around(asking())
    first = run(workflow, "why")
    before = first.checkpoint.to_bytes()
    asked = first.pending_requests[0].request_id
    assert [
        run(workflow, None, checkpoint=first.checkpoint, responses={asked: answer}).outputs for answer in ("yes", "no")
    ] == [["why: yes"], ["why: no"]]
    assert first.checkpoint.to_bytes() == before


def test_two_restored_runs_are_answered_side_by_side() -> None:
    """Case 7: both are restored before either is answered."""
    workflow = around(asking())

    async def both():
        first = await workflow.run("why")
        runners = [Runner(workflow), Runner(workflow)]
        for runner in runners:
            await runner.restore_from_checkpoint_object(first.checkpoint)
        asked = first.pending_requests[0].request_id
        return await asyncio.gather(
            *(runner.run(responses={asked: answer}) for runner, answer in zip(runners, ("yes", "no"), strict=True))
        )

    assert [result.outputs for result in asyncio.run(both())] == [["why: yes"], ["why: no"]]


def test_a_checkpoint_that_another_call_went_on_from_is_stale(place) -> None:
    """Case 7: the same id a second time, not as a fork, is refused and changes nothing."""
    store, workflow = place.open(), around(asking())
    first = run(workflow, "why", store, run_id="r")
    asked = first.pending_requests[0].request_id
    second = run(workflow, None, store, checkpoint=first.checkpoint_id, responses={asked: "yes"})
    for message in ("when", None):
        with pytest.raises(StaleCheckpointError) as caught:
            run(workflow, message, store, checkpoint=first.checkpoint_id)
        assert (caught.value.checkpoint_id, caught.value.head) == (first.checkpoint_id, second.checkpoint_id)
    with pytest.raises(AlreadyAnsweredError):
        run(workflow, None, store, checkpoint=first.checkpoint_id, responses={asked: "no"})
    assert asyncio.run(store.head("r")).header.checkpoint_id == second.checkpoint_id


# Case 9


def test_a_parent_with_a_store_holds_a_child_without(place) -> None:
    """Case 9: the child's state and question are in the parent's checkpoint."""
    first = run(around(asking()), "why", place.open())
    second = run(
        around(asking()),
        None,
        place.open(),
        checkpoint=first.checkpoint_id,
        responses={first.pending_requests[0].request_id: "because"},
    )
    assert second.outputs == ["why: because"]


def test_a_parent_without_a_store_holds_a_child_that_has_one(tmp_path) -> None:
    """Case 9: the child's own store is not used inside the parent, whose checkpoint object holds the child."""
    for place in both_places(tmp_path):
        inner = place.open()
        workflow = around(asking(checkpoint_storage=inner))
        first = run(workflow, "why")
        assert places_of(first) == [("child#1", "ask", "why")]
        answer = first.pending_requests[0].answer("because")
        assert run(workflow, None, checkpoint=first, responses=[answer]).outputs == ["why: because"]
        assert asyncio.run(inner.runs()) == []


def test_a_parent_and_a_child_with_stores_use_the_parents(tmp_path) -> None:
    """Case 9: only the parent's store knows the run."""
    inner, outer = InMemoryCheckpointStorage(), Place("sqlite", tmp_path / "outer.db").open()
    first = run(around(asking(checkpoint_storage=inner), checkpoint_storage=outer), "why", run_id="r")
    assert [header.run_id for header in asyncio.run(outer.runs())] == ["r"]
    assert asyncio.run(inner.runs()) == []
    again = around(asking(checkpoint_storage=inner), checkpoint_storage=outer)
    answer = first.pending_requests[0].answer("because")
    assert run(again, checkpoint=first.checkpoint_id, responses=[answer]).outputs == ["why: because"]


def test_building_says_that_a_childs_store_is_not_used(caplog) -> None:
    """Case 9: one log line names the executor."""
    with caplog.at_level(logging.INFO, logger="rehydrate"):
        around(asking(checkpoint_storage=InMemoryCheckpointStorage()), id="inner one")
    (record,) = caplog.records
    assert "'inner one'" in record.getMessage()
    assert "store" in record.getMessage()


# Case 10


def test_run_arguments_reach_a_grandchild_on_every_call(place) -> None:
    """Case 10: the first call's hold until a call brings others; a new message has those of its own call."""
    first = run(for_user(), "one", place.open(), run_args={"user": "ann"})
    assert first.outputs == ["one for ann"]
    kept = run(
        for_user(),
        "two",
        place.open(),
        checkpoint=first.checkpoint_id,
        on_pending="keep",
        run_args={"user": "bob"},
    )
    assert kept.outputs == ["two for bob"]
    ids = {request.data.text: request.request_id for request in kept.pending_requests}
    recorded = run(for_user(), None, place.open(), checkpoint=kept.checkpoint_id, responses={ids["one"]: "yes"})
    assert recorded.outputs == ["yes for bob"]
    given = {"checkpoint": recorded.checkpoint_id, "responses": {ids["two"]: "no"}, "run_args": {"user": "eve"}}
    assert run(for_user(), None, place.open(), **given).outputs == ["no for eve"]


def test_run_arguments_reach_a_grandchild_in_a_fresh_process(tmp_path) -> None:
    """Case 10: those recorded with the turn, and those that the resuming call gives."""
    jobs = []
    for place in both_places(tmp_path):
        for user in (None, {"user": "eve"}):
            first = run(for_user(), "one", place.open(), run_args={"user": "ann"})
            given = {first.pending_requests[0].request_id: "yes"}
            jobs.append({"story": "for_user", "hand_over": place.hand_over(first), "answers": given, "run_args": user})
    outcomes = in_fresh_process(*jobs)
    assert [outcome.outputs for outcome in outcomes] == 2 * [["'yes for ann'"], ["'yes for eve'"]]
