"""Cases 1 to 4 and 6: what a nested workflow keeps, when it is built and restored anew."""

import asyncio
import gc
import weakref

import pytest

from rehydrate import InMemoryCheckpointStorage, Runner, SqliteCheckpointStorage, WorkflowCheckpoint
from tests.nested.places import both_places, in_fresh_process
from tests.nested.stories import both_at_once, counting, one_after_the_other, two_down
from tests.nested.tree import Branch, Gate, answers, paths, reports, size, tree


def paused(build, message, place, **options):
    """Run a newly built workflow until it pauses and return its result."""
    return asyncio.run(build().run(message, checkpoint_storage=place.open(), **options))


def texts(result) -> list[str]:
    """Return what a result's open requests ask."""
    return [request.data.text for request in result.pending_requests]


def request_id(result, text: str) -> str:
    """Return the id of the one open request with this text."""
    (found,) = [request.request_id for request in result.pending_requests if request.data.text == text]
    return found


def test_a_child_that_counted_to_two_goes_on_from_two(place) -> None:
    """Case 1: executor state and shared state of a child are there after everything was built anew."""
    first = paused(counting, "go", place)
    (question,) = first.pending_requests
    assert (question.path, question.executor_id) == ("child#1", "counter")
    assert question.data.text == "counted to 2, how many more?"
    second = asyncio.run(
        counting().run(checkpoint=first.checkpoint_id, responses=[question.answer(5)], checkpoint_storage=place.open())
    )
    assert second.outputs == ["published executor 7, state 7"]


def test_a_child_that_counted_to_two_goes_on_from_two_in_a_fresh_process(tmp_path) -> None:
    """Case 1: the same in a process that knows the run by its checkpoint only."""
    jobs = []
    for place in both_places(tmp_path):
        first = paused(counting, "go", place)
        jobs.append(
            {
                "story": "counting",
                "hand_over": place.hand_over(first),
                "answers": {first.pending_requests[0].request_id: 5},
            }
        )
    outcomes = in_fresh_process(*jobs)
    assert [outcome.outputs for outcome in outcomes] == [["'published executor 7, state 7'"]] * 2
    assert [outcome.status for outcome in outcomes] == ["IDLE", "IDLE"]


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_every_level_of_a_tree_is_as_it_was(place, depth) -> None:
    """Case 2: with two siblings on each level, executors, state and questions of every scope go on."""
    gate = {"gate": Gate(is_open=True)}
    first = paused(lambda: tree(depth), Branch(1), place, resources=gate)
    asked = {request.path: (request.data.number, request.data.kept) for request in first.pending_requests}
    assert asked == {path: (number, 2 * number) for number, path in paths(depth).items()}
    second = asyncio.run(
        tree(depth).run(
            checkpoint=first.checkpoint_id,
            responses=answers(first.pending_requests),
            checkpoint_storage=place.open(),
            resources={"gate": Gate(is_open=True)},
        )
    )
    assert second.outputs == reports(depth)
    assert second.pending_requests == ()


def test_what_a_tree_of_one_level_reports() -> None:
    """The numbers of the case in plain sight: twice its number, the answer on top, each executor's work once."""
    assert [(r.path, r.number, r.kept, r.shared, r.waited, r.seen) for r in reports(1)] == [
        ("left#1", 2, 1006, 1006, 2, 3),
        ("right#1", 3, 1009, 1009, 3, 4),
        ("", 1, 1003, 1003, 1, 2),
    ]
    assert (len(reports(5)), size(5)) == (63, 63)


def test_every_level_of_a_tree_is_as_it_was_in_a_fresh_process(tmp_path) -> None:
    """Case 2: the same in a process that knows the runs by their checkpoints only."""
    depths = (1, 2, 3, 5)
    jobs = []
    for place in both_places(tmp_path):
        for depth in depths:
            first = paused(lambda: tree(depth), Branch(1), place, resources={"gate": Gate(is_open=True)})  # noqa: B023
            given = answers(first.pending_requests)
            jobs.append({"story": "tree", "arguments": [depth], "hand_over": place.hand_over(first), "answers": given})
    outcomes = in_fresh_process(*jobs)
    assert [outcome.outputs for outcome in outcomes] == 2 * [[repr(r) for r in reports(depth)] for depth in depths]


def test_a_second_question_of_a_child_is_the_only_open_one(place) -> None:
    """Case 3: after the first answer the parent sees exactly the second question, and the first is not asked again."""
    first = paused(one_after_the_other, "colour", place)
    assert texts(first) == ["colour 1?"]
    answer = first.pending_requests[0].answer("red")
    second = asyncio.run(
        one_after_the_other().run(checkpoint=first.checkpoint_id, responses=[answer], checkpoint_storage=place.open())
    )
    assert (texts(second), second.outputs) == (["colour 2?"], [])
    assert second.checkpoint.pending_request_ids == (request_id(second, "colour 2?"),)
    third = asyncio.run(
        one_after_the_other().run(
            checkpoint=second.checkpoint_id,
            responses=[second.pending_requests[0].answer("blue")],
            checkpoint_storage=place.open(),
        )
    )
    assert (texts(third), third.outputs) == ([], ["red, then blue"])


def test_a_second_question_of_a_child_is_the_only_open_one_in_fresh_processes(tmp_path) -> None:
    """Case 3: the same with a process of its own for each answer."""
    jobs = []
    for place in both_places(tmp_path):
        first = paused(one_after_the_other, "colour", place)
        given = {request_id(first, "colour 1?"): "red"}
        jobs.append({"story": "one_after_the_other", "hand_over": place.hand_over(first), "answers": given})
    second = in_fresh_process(*jobs)
    assert [outcome.pending for outcome in second] == 2 * [[("child#1", "ask", "Question(text='colour 2?')")]]
    third = in_fresh_process(
        *(
            {**job, "hand_over": o.hand_over, "answers": {o.request_ids[0]: "blue"}}
            for job, o in zip(jobs, second, strict=True)
        )
    )
    assert [(outcome.pending, outcome.outputs) for outcome in third] == 2 * [([], ["'red, then blue'"])]


def overlapping(place):
    """Start a child with A and, while it waits, another with B."""
    first = paused(both_at_once, "A", place)
    second = paused(both_at_once, "B", place, checkpoint=first.checkpoint_id, on_pending="keep")
    assert [(r.path, r.data.text) for r in second.pending_requests] == [
        ("child#1", "A1"),
        ("child#1", "A2"),
        ("child#2", "B1"),
        ("child#2", "B2"),
    ]
    return second


def test_answers_of_two_overlapping_inputs_do_not_mix(place) -> None:
    """Case 4: answered A1, B1, A2, B2 with a restore between any two, each input gets its own pair."""
    result = overlapping(place)
    ids = {text: request_id(result, text) for text in ("A1", "B1", "A2", "B2")}
    outputs = []
    for text in ("A1", "B1", "A2", "B2"):
        result = paused(both_at_once, None, place, checkpoint=result.checkpoint_id, responses={ids[text]: f"to {text}"})
        outputs.append(result.outputs)
    assert outputs == [[], [], ["(to A1, to A2)"], ["(to B1, to B2)"]]
    assert texts(result) == []


def test_answers_of_two_overlapping_inputs_do_not_mix_over_fresh_processes(tmp_path) -> None:
    """Case 4: the same with a process of its own for each answer."""
    jobs = []
    for place in both_places(tmp_path):
        result = overlapping(place)
        ids = [request_id(result, text) for text in ("A1", "B1", "A2", "B2")]
        jobs.append((ids, place.hand_over(result)))
    handed = [hand_over for _, hand_over in jobs]
    outputs = []
    for number, text in enumerate(("A1", "B1", "A2", "B2")):
        outcomes = in_fresh_process(
            *(
                {"story": "both_at_once", "hand_over": hand_over, "answers": {ids[number]: f"to {text}"}}
                for (ids, _), hand_over in zip(jobs, handed, strict=True)
            )
        )
        handed = [outcome.hand_over for outcome in outcomes]
        outputs.append([outcome.outputs for outcome in outcomes])
    assert outputs == [[[], []], [[], []], 2 * [["'(to A1, to A2)'"]], 2 * [["'(to B1, to B2)'"]]]


@pytest.mark.parametrize("kind", ["no store", "memory", "sqlite"])
def test_a_question_two_levels_down_is_answered_from_bytes_only(tmp_path, kind) -> None:
    """Case 6: with every object gone and garbage collected, nothing that is needed lived in memory only."""

    def store():
        return {"no store": None, "memory": InMemoryCheckpointStorage()}.get(
            kind, SqliteCheckpointStorage(tmp_path / f"{len(list(tmp_path.iterdir()))}.db")
        )

    def pause():
        workflow = two_down()
        runner = Runner(workflow, store())
        first = asyncio.run(runner.run("why"))
        gone = [weakref.ref(item) for item in (workflow, runner, first, first.checkpoint)]
        return first.checkpoint.to_bytes(), gone

    data, gone = pause()
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None, None]
    checkpoint = WorkflowCheckpoint.from_bytes(data)
    (asked,) = checkpoint.pending_request_ids
    second = asyncio.run(
        two_down().run(checkpoint=checkpoint, responses={asked: "because"}, checkpoint_storage=store())
    )
    assert (second.outputs, second.status.value) == (["published why: because"], "IDLE")


def test_a_question_two_levels_down_is_answered_in_a_fresh_process(tmp_path) -> None:
    """Case 6: the same where the bytes are all that another process gets."""
    jobs = []
    for place in both_places(tmp_path):
        first = paused(two_down, "why", place)
        given = {first.pending_requests[0].request_id: "because"}
        jobs.append({"story": "two_down", "hand_over": place.hand_over(first), "answers": given})
    outcomes = in_fresh_process(*jobs)
    assert [outcome.outputs for outcome in outcomes] == 2 * [["'published why: because'"]]
