"""Versions of one program, each in a process of its own, over one SQLite file with waiting runs."""

from tests.migration.program import call

NEWEST = 4
SEEN = {
    1: "id=c-1 amount=50 True True paid",
    2: "id=c-1 amount=50 True True audited paid",
    3: "id=c-1 amount=50 True True audited paid",
    4: "id=c-1 cents=5000 True True audited paid",
}


def test_a_waiting_run_is_answered_by_every_later_version(tmp_path) -> None:
    """A node more, a sub-workflow renamed, a message type changed: the question keeps its id, the claim arrives."""
    for version in (2, 4):
        run_id = f"r{version}"
        first = call(tmp_path, "claims", 1, claim=50, run_id=run_id)
        (request_id,) = first["requests"]
        place = "review#1" if version < 3 else "assessment#1"
        looked = call(tmp_path, "claims", version, run_id=run_id, checkpoint="latest")
        assert looked["requests"] == {request_id: place}
        answered = call(tmp_path, "claims", version, responses={request_id: True})
        assert (answered["outputs"], answered["status"], answered["version"]) == ([SEEN[version]], "IDLE", version)


def test_a_run_may_take_the_versions_one_by_one(tmp_path) -> None:
    """Each version answers one question and leaves another; the next one finds it under the same id."""
    requests = call(tmp_path, "claims", 1, claim=50, run_id="r")["requests"]
    outputs = []
    for version in (2, 3, 4):
        (request_id,) = requests
        result = call(tmp_path, "claims", version, run_id="r", checkpoint="latest", responses={request_id: True})
        outputs += result["outputs"]
        requests = call(tmp_path, "claims", version, claim=version, run_id="r", checkpoint="latest")["requests"]
    assert outputs == [
        SEEN[2],
        "id=c-1 amount=2 True True audited paid",
        "id=c-1 cents=300 True True audited paid",
    ]


def test_an_older_program_says_that_the_run_is_newer(tmp_path) -> None:
    """A run that version 3 has taken up is not one for version 2 any more."""
    call(tmp_path, "claims", 1, claim=50, run_id="r")
    call(tmp_path, "claims", 3, claim=60, run_id="r", checkpoint="latest")
    refused = call(tmp_path, "claims", 2, run_id="r", checkpoint="latest")
    assert refused == {
        "error": "NewerVersionError",
        "text": "this checkpoint was made by version 3 of workflow 'claims'; this is version 2."
        " It was made by newer code: upgrade this process.",
    }


def test_an_answered_request_is_known_after_its_executor_was_renamed(tmp_path) -> None:
    """A second answer by the old id is told to be one, in whichever version."""
    (request_id,) = call(tmp_path, "claims", 1, claim=50, run_id="r")["requests"]
    call(tmp_path, "claims", 3, responses={request_id: True})
    again = call(tmp_path, "claims", NEWEST, run_id="r", checkpoint="latest", responses={request_id: True})
    assert again["error"] == "AlreadyAnsweredError"


def test_a_type_with_a_version_is_read_by_its_upcast(tmp_path) -> None:
    """State and question that version 1 of a dataclass stored are there with the fields of today, two levels deep."""
    (request_id,) = call(tmp_path, "prices", 1, message="a", run_id="r")["requests"]
    answered = call(tmp_path, "prices", 3, responses={request_id: True})
    assert answered["outputs"] == ["5 EUR since 1 True"]


def test_a_type_of_a_newer_version_is_refused_by_an_older_process(tmp_path) -> None:
    """What version 2 of a dataclass stored is no question that version 1 could show."""
    call(tmp_path, "prices", 2, message="a", run_id="r")
    refused = call(tmp_path, "prices", 1, run_id="r", checkpoint="latest")
    assert (refused["error"], "'Price' has format 2" in refused["text"]) == ("CheckpointFormatError", True)
