"""Cases 8, 11 and 12: changed children, limits and answers of siblings."""

import asyncio

import pytest

from rehydrate import Status, WorkflowBuilder, WorkflowExecutor
from rehydrate.errors import GraphChangedError, WorkflowCheckpointException
from rehydrate.model.events import StatusChanged
from tests.nested.loops import looping, recorder
from tests.nested.stories import Ask, asking, intake, publish


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


# Case 8


def chained(*ids: str, journal: list[str], depth: int = 1):
    """Nest a chain with one that asks at its end `depth` levels down, each level under the id `review`."""
    nodes = [*(recorder(id, journal) for id in ids), Ask("ask")]
    builder = WorkflowBuilder("review", nodes[0]).add_chain(nodes)
    workflow = builder.build()
    for _ in range(depth):
        workflow = WorkflowBuilder("outer", WorkflowExecutor(workflow, "review")).build()
    return workflow


@pytest.mark.parametrize(("depth", "path"), [(1, "review/C"), (2, "review/review/C")])
def test_a_child_that_got_an_executor_is_refused_and_named_by_path(place, depth, path) -> None:
    """Case 8: child [A, B] is stored, the new code has [A, B, C]; nothing runs, and the old code can go on."""
    journal: list[str] = []
    first = run(chained("A", "B", journal=journal, depth=depth), "why", place.open(), run_id="r")
    assert journal == ["A", "B"]
    given = {first.pending_requests[0].request_id: "because"}
    with pytest.raises(GraphChangedError) as caught:
        run(
            chained("A", "B", "C", journal=journal, depth=depth),
            None,
            place.open(),
            checkpoint=first.checkpoint_id,
            responses=given,
        )
    assert isinstance(caught.value, WorkflowCheckpointException)
    assert [line.partition(": ")[0] for line in caught.value.differences if line.startswith(path)][:1] == [path]
    assert path in str(caught.value)
    assert journal == ["A", "B"]
    old = chained("A", "B", journal=journal, depth=depth)
    second = run(old, None, place.open(), checkpoint=first.checkpoint_id, responses=given)
    assert second.outputs == ["why: because"]


# Case 11


def test_the_own_limit_of_a_child_stops_its_endless_loop(place) -> None:
    """Case 11: the run names the path, the sibling has finished and does not run again, and the run can go on."""
    journal: list[int] = []
    quick: list[str] = []
    first = run(looping(journal, quick, last=None), "go", place.open())
    assert first.status is Status.LIMIT_REACHED
    assert journal == [1, 2, 3, 4]
    assert quick == ["first", "second"]
    (end,) = [event for event in first.events if isinstance(event, StatusChanged)]
    assert (end.status, end.paths) == (Status.LIMIT_REACHED, ("looper#1",))
    again = run(looping(journal, quick, last=None), None, place.open(), checkpoint=first.checkpoint_id)
    assert again.status is Status.LIMIT_REACHED
    assert (journal, quick) == ([1, 2, 3, 4, 5, 6, 7, 8, 9], ["first", "second"])


def test_a_child_that_reached_its_limit_ends_in_a_later_call(place) -> None:
    """Case 11: a continuation starts the limit anew, and the sibling's output, made long before, is there once."""
    journal: list[int] = []
    quick: list[str] = []
    result = run(looping(journal, quick, last=12), "go", place.open())
    statuses = [result.status]
    while result.status is Status.LIMIT_REACHED:
        result = run(looping(journal, quick, last=12), None, place.open(), checkpoint=result.checkpoint_id)
        statuses.append(result.status)
    assert statuses == [Status.LIMIT_REACHED, Status.LIMIT_REACHED, Status.IDLE]
    assert result.outputs == ["12 rounds", "go"]
    assert (journal, quick) == ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], ["first", "second"])


# Case 12


def two_that_ask():
    """A parent whose two children ask in one superstep, and publishes what both yield."""
    child = asking("child")
    nodes = [WorkflowExecutor(child, "one"), WorkflowExecutor(child, "two")]
    builder = WorkflowBuilder("two that ask", intake).add_fan_out_edges(intake, nodes)
    return builder.add_edge(nodes[0], publish).add_edge(nodes[1], publish).build()


@pytest.mark.parametrize("order", [1, -1])
def test_one_call_answers_two_children_that_paused_in_one_superstep(place, order) -> None:
    """Case 12: each gets its own answer, in whatever order the call names them."""
    first = run(two_that_ask(), "why", place.open())
    assert [(r.path, r.executor_id, r.data.text) for r in first.pending_requests] == [
        ("one#1", "ask", "why"),
        ("two#1", "ask", "why"),
    ]
    given = [request.answer(f"answer to {request.path}") for request in first.pending_requests][::order]
    second = run(two_that_ask(), None, place.open(), checkpoint=first.checkpoint_id, responses=given)
    assert second.outputs == ["published why: answer to one#1", "published why: answer to two#1"]
    assert second.pending_requests == ()
