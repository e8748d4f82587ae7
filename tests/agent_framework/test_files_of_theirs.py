"""Files that the real package wrote: what becomes of them, and that their questions are answered."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from rehydrate import InMemoryCheckpointStorage, LegacyRequest, Status, WorkflowCheckpoint
from tests.agent_framework.here import (
    BUILDERS,
    FILES,
    Box,
    Claim,
    Draft,
    Everything,
    Level,
    Place,
    Question,
    Review,
    import_files,
)
from tests.nested.places import KINDS
from tests.nested.places import Place as StorePlace

RELEASES = ("1.0.0b251001", "1.0.0b251104", "1.0.0", "1.14.0", "1.23.0")
BETA_1, BETA_2, FIRST, WITH_CHILD, WITH_JOINS = RELEASES
#: What comes out once the question of each scenario is answered with yes.
ANSWERED = [
    (BETA_1, "flat", "", "paid Pay c-1? True"),
    (BETA_2, "flat", "", "paid c-1: True, asked 0"),
    (FIRST, "flat", "", "paid c-1: True, asked 1"),
    (WITH_CHILD, "flat", "", "paid c-1: True, asked 1"),
    (WITH_JOINS, "flat", "", "paid c-1: True, asked 1"),
    (BETA_1, "nested", "review1#1", "paid Pay c-3? True"),
    (BETA_2, "nested", "review1#1", "paid c-3: True, asked 0, last None"),
    (FIRST, "nested", "review1#1", "paid c-3: True, asked 0, last None"),
    (WITH_CHILD, "nested", "review1#1", "paid c-3: True, asked 1, last c-3"),
    (WITH_JOINS, "nested", "review1#1", "paid c-3: True, asked 1, last c-3"),
    (BETA_2, "desk", "review1#1", "paid c-5: True, asked 0, last None"),
    (FIRST, "desk", "review1#1", "paid c-5: True, asked 0, last None"),
    (WITH_CHILD, "desk", "review1#1", "paid c-5: True, asked 1, last c-5"),
    (WITH_JOINS, "desk", "review1#1", "paid c-5: True, asked 1, last c-5"),
    (FIRST, "deep", "review2#1/review1#1", "paid paid c-4: True, asked 0, last None"),
    (WITH_CHILD, "deep", "review2#1/review1#1", "paid paid c-4: True, asked 1, last c-4"),
    (WITH_JOINS, "deep", "review2#1/review1#1", "paid paid c-4: True, asked 1, last c-4"),
    (FIRST, "joined", "", "c-6: True, asked 1"),
    (WITH_JOINS, "joined", "", "looked at c-6; c-6: True, asked 1"),
]


@pytest.mark.parametrize(("release", "scenario", "path", "output"), ANSWERED)
def test_the_question_of_a_file_is_answered_in_one_call(release, scenario, path, output) -> None:
    """Wherever it was asked, it stands there once, and the run goes on from there with what the file held."""
    (run,) = import_files(release, scenario).runs
    workflow = BUILDERS[scenario]()
    checkpoint = WorkflowCheckpoint.from_bytes(run.checkpoint.to_bytes())
    assert checkpoint.is_legacy
    assert checkpoint.status is Status.IDLE_WITH_PENDING_REQUESTS
    (asked,) = workflow.run_sync(checkpoint=checkpoint).pending_requests
    assert asked.path == path
    assert set(run.questions.values()) == {asked.request_id}
    result = workflow.run_sync(checkpoint=checkpoint, responses=[asked.answer(True)])
    assert (result.outputs, result.status) == ([output], Status.IDLE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_imported_into_a_store_is_found_and_answered_from_there(kind, tmp_path) -> None:
    """By run id and by request id, with another store object."""
    place = StorePlace(kind, tmp_path / "runs.db")
    done = import_files(WITH_JOINS, "nested", storage=place.open())
    (run,) = done.runs
    assert run.stored
    (ours,) = set(run.questions.values())
    inspected = asyncio.run(place.open().inspect(run.checkpoint.checkpoint_id))
    assert [(r.request_id, r.path, r.type, r.response_type) for r in inspected.requests] == [
        (ours, "review1#1", "Question", "bool")
    ]
    result = BUILDERS["nested"]().run_sync(responses={ours: False}, checkpoint_storage=place.open())
    assert (result.run_id, result.outputs) == (run.run_id, ["paid c-3: False, asked 1, last c-3"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_import_gives_the_run_that_the_store_has(kind, tmp_path) -> None:
    """Its checkpoint, and the ids by which its questions are open there; those of an import of its own lead nowhere."""
    place = StorePlace(kind, tmp_path / "runs.db")
    (first,) = import_files(WITH_JOINS, "nested", storage=place.open()).runs
    (again,) = import_files(WITH_JOINS, "nested", storage=place.open(), leave_out=["state:review"]).runs
    assert (again.stored, again.left_out, again.questions) == (False, (), first.questions)
    assert again.checkpoint.checkpoint_id == first.checkpoint.checkpoint_id
    (ours,) = set(again.questions.values())
    result = BUILDERS["nested"]().run_sync(responses={ours: False}, checkpoint_storage=place.open())
    (last,) = import_files(WITH_JOINS, "nested", storage=place.open()).runs
    assert (last.checkpoint.checkpoint_id, last.checkpoint.status) == (result.checkpoint_id, Status.IDLE)
    assert (last.stored, last.questions) == (False, {})


def test_a_repeated_import_does_not_take_another_question_for_the_same() -> None:
    """A run of that id may have come from elsewhere: one question stands in the place of the other."""
    store = InMemoryCheckpointStorage()
    (run,) = import_files(WITH_JOINS, "flat").runs
    claim, asked = Claim("c-1", 6000), datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    flat = BUILDERS["flat"]()
    other = LegacyRequest("assess", Question(claim, "Pay 6000?", asked), bool)
    checkpoint = WorkflowCheckpoint.legacy(flat, run.run_id, pending_requests=[other])
    flat.run_sync(checkpoint=checkpoint, checkpoint_storage=store, message=claim)
    (again,) = import_files(WITH_JOINS, "flat", storage=store).runs
    assert (again.stored, again.questions) == (False, {})


def test_values_come_through_exactly() -> None:
    """Each with the type that it has here, also where the class has slots."""
    (run,) = import_files(WITH_JOINS, "flat").runs
    asked = BUILDERS["flat"]().run_sync(checkpoint=run.checkpoint).pending_requests[0]
    assert asked.data == Question(Claim("c-1", 5000), "Pay 5000?", datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
    codec = BUILDERS["flat"]().program.codec
    state = {key: codec.open(record.value) for key, record in run.checkpoint.records.table("", "state").items()}
    assert state["everything"] == Everything(
        date(2026, 4, 5),
        timedelta(days=2, seconds=3),
        Decimal("12.50"),
        UUID("12345678-1234-5678-1234-567812345678"),
        Place("Berlin", 7),
        Level.HIGH,
        (1, "a"),
        {"ann"},
        b"\x00\xff",
        2**70,
    )
    assert state["review"] == Review(Claim("c-1", 5000), Level.LOW)
    assert (state["seen"], state["last"]) == (["c-1"], "c-1")
    assert (state["said"]["role"], state["said"]["contents"][0]["text"]) == ("user", "hello")


def test_what_the_betas_kept_as_text_gets_its_type_back() -> None:
    """A time in a question, and an enum in the state; bytes cannot be had again, and are refused by name."""
    (run,) = import_files(BETA_2, "flat").runs
    asked = BUILDERS["flat"]().run_sync(checkpoint=run.checkpoint).pending_requests[0]
    assert asked.data.asked == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert run.checkpoint.state["review"] == {
        "$type": "Review",
        "claim": {"$type": "Claim", "id": "c-1", "amount": 5000},
        "level": {"$type": "Level", "name": "LOW"},
    }
    assert run.left_out == ("state key 'everything'",)
    refused = import_files(BETA_2, "flat", leave_out=(), skip_refused=True).refused
    assert all("state key 'everything': Everything.raw was kept as" in why for why in refused.values())
    assert all("leave out 'state:everything'" in why for why in refused.values())


@pytest.mark.parametrize("release", [FIRST, WITH_JOINS])
def test_several_questions_of_several_types_are_answered(release) -> None:
    """A text, a pydantic model, a class in a class and a tuple; for a text, a list, an enum and a number."""
    (run,) = import_files(release, "shapes").runs
    workflow = BUILDERS["shapes"]()
    opened = workflow.run_sync(checkpoint=run.checkpoint).pending_requests
    answers = {str: "fine", list[str]: ["a", "b"], Level: Level.LOW, Decimal: Decimal("1.5")}
    assert [request.data for request in opened] == [
        "how are you?",
        Draft(text="is it good?", pages=[1, 2]),
        Box.Lid("red"),
        ("a", 1),
    ]
    given = [request.answer(answers[request.response_type]) for request in opened]
    assert workflow.run_sync(checkpoint=run.checkpoint, responses=given).outputs == [
        "how are you? fine",
        "is it good? [1, 2] ['a', 'b']",
        "red Level.LOW",
        "('a', 1) 1.5",
    ]


@pytest.mark.parametrize("release", [BETA_2, FIRST, WITH_JOINS])
def test_of_a_run_that_was_answered_only_the_end_is_taken_in(release) -> None:
    """The checkpoint at which it waited is passed over, and says what came behind it."""
    done = import_files(release, "finished")
    (run,) = done.runs
    assert (run.checkpoint.status, dict(run.questions)) == (Status.IDLE, {})
    assert len(done.passed_over) == len(list((FILES / release / "finished").glob("*.json"))) - 1
    assert all("comes behind it" in why for why in done.passed_over.values())


@pytest.mark.parametrize("release", [FIRST, WITH_JOINS])
def test_messages_on_their_way_go_on_here(release) -> None:
    """Of each checkpoint of a run: an input, a message between executors, an answer, and the end."""
    done = import_files(release, "finished", every=True)
    ends = {}
    for run in done.runs:
        result = BUILDERS["finished"]().run_sync(checkpoint=run.checkpoint)
        asked = [request.data for request in result.pending_requests]
        ends.setdefault(run.checkpoint.status, []).append((result.status, result.outputs, asked))
    assert ends[Status.IDLE] == [(Status.IDLE, [], [])]
    waits = Question(Claim("c-2", 1), "Pay 1?", datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
    assert ends[Status.IDLE_WITH_PENDING_REQUESTS] == [(Status.IDLE_WITH_PENDING_REQUESTS, [], [waits])]
    went_on = ends[Status.RUNNING]
    assert sorted({*(output for _, outputs, _ in went_on for output in outputs)}) == [
        "paid c-2: True",
        "paid c-2: True, asked 1",
    ]
    assert len(went_on) == len(done.runs) - 2
    assert done.refused == {}


def test_a_question_that_had_not_come_to_its_keeper_is_open_all_the_same() -> None:
    """Of each checkpoint of the first betas at which it was asked."""
    done = import_files(BETA_1, "nested", every=True)
    paths = [
        [r.path for r in BUILDERS["nested"]().run_sync(checkpoint=run.checkpoint).pending_requests] for run in done.runs
    ]
    assert paths == [["review1#1"]] * 3
    assert sum(len(run.questions) for run in done.runs) == 2


def test_an_import_tells_what_it_left_out() -> None:
    """What was named, and what the release did not keep."""
    (run,) = import_files(WITH_CHILD, "joined", leave_out=["executors", "state:review"]).runs
    assert run.left_out == (
        "state key 'review'",
        "the state of executor 'assess'",
        "what joins held, if anything: the file does not say",
    )
    assert "review" not in run.checkpoint.state
    (run,) = import_files(WITH_JOINS, "joined", leave_out=["joins"]).runs
    assert run.left_out == ("what joins held",)
