"""`import-maf`: files of Microsoft Agent Framework become runs that the other commands work on."""

from pathlib import Path

import pytest

FILES = Path(__file__).parents[1] / "fixtures" / "maf" / "files" / "1.23.0"
APP = Path(__file__).parents[1] / "agent_framework" / "here.py"


@pytest.fixture
def theirs(command, tmp_path, monkeypatch):
    """Run the command on an app with the workflow `nested`."""
    app = tmp_path / "app.py"
    app.write_text(f"import sys\nsys.path.insert(0, {str(APP.parents[2])!r})\n{IMPORTS}", encoding="utf-8")
    monkeypatch.setenv("REHYDRATE_APP", str(app))
    return command


IMPORTS = "from tests.agent_framework import here\n\nnested = here.nested()\n"


def test_files_are_imported_and_their_question_is_answered(theirs):
    """The document names runs and questions by both ids; `answer` goes on with the run from the store."""
    done = theirs("import-maf", str(FILES / "nested"), "--json")
    assert done.code == 0
    (run,) = done.document["runs"]
    assert (run["status"], run["left_out"], run["stored"]) == ("IDLE_WITH_PENDING_REQUESTS", [], True)
    assert len(done.document["passed_over"]) == 2
    (ours,) = set(run["questions"].values())
    answered = theirs("answer", f"{ours}=true", "--json")
    assert (answered.code, answered.document["run_id"]) == (0, run["run_id"])
    assert answered.document["outputs"] == ["paid c-3: True, asked 1, last c-3"]


def test_an_import_tells_a_person_what_became_of_each_file(theirs):
    """A line for each run, question, piece left out and file passed over; a second import finds the run there."""
    words = ("import-maf", str(FILES / "nested"), "--leave-out", "state:review")
    lines = theirs(*words).out.splitlines()
    assert lines[0].endswith(".json: IDLE_WITH_PENDING_REQUESTS")
    assert lines[1].startswith("  request  ")
    assert lines[2] == "  left out state key 'review'"
    assert [line.split()[0] for line in lines[3:]] == ["passed", "passed"]
    again = theirs(*words)
    assert (again.code, again.out.splitlines()[0].endswith(", which was there already")) == (0, True)
    assert again.out.splitlines()[1] == lines[1]
    ours = lines[1].split()[1]
    assert theirs("answer", f"{ours}=true").code == 0
    last = theirs(*words).out.splitlines()
    assert last[0].endswith(".json: IDLE, which was there already")
    assert [line.split()[0] for line in last[1:]] == ["passed", "passed"]


def test_what_does_not_fit_is_refused_as_a_whole(theirs, tmp_path):
    """Exit code 6 and nothing stored; skipped, exit code 0 and a line."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "torn.json").write_text("{", encoding="utf-8")
    refused = theirs("import-maf", str(folder))
    assert (refused.code, refused.out) == (6, "")
    assert "torn.json: it is damaged" in refused.err
    assert "rehydrate import-maf --help" in refused.err
    skipped = theirs("import-maf", str(folder), "--skip-refused")
    assert (skipped.code, skipped.out.startswith("refused torn.json: it is damaged")) == (0, True)


def test_types_are_mapped_by_name(theirs):
    """To a type of the workflow, or to none; a name that is not there is a wrong call."""
    words = ("import-maf", str(FILES / "nested"), "--json")
    done = theirs(*words, "--type", "claims:Review=", "--type", "claims:Question=Question")
    assert (done.code, len(done.document["runs"])) == (0, 1)
    wrong = theirs(*words, "--type", "claims:Question=Nothing")
    assert (wrong.code, wrong.document["error"]["text"]) == (2, "the workflow has no type 'Nothing'.")
    assert "Question" in wrong.document["error"]["action"]
    assert theirs(*words, "--type", "Question").code == 2
    assert theirs("import-maf", str(FILES / "none")).code == 2
