"""`export`, `import`, `prune` and `doctor`: what they do, what they print, and their exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.commands import APP, LARGE, SMALL
from tests.stores.raw import change


@pytest.fixture
def paused(command, monkeypatch):
    """The id of what a run asks; its workflow is not there any more."""
    asked = command("run", "-m", LARGE, "--run", "r", "--json").document
    monkeypatch.delenv("REHYDRATE_APP")
    return asked["requests"][0]["request_id"]


def test_a_run_is_taken_to_another_store_and_goes_on_there(command, paused):
    """By a file; then the question is answered where the run is now."""
    done = command("export", "r", "r.run")
    assert (done.code, done.out.startswith("exported run 'r' of workflow 'payment'")) == (0, True)
    told = command("import", "r.run", "--store", "other.db", "--json").document
    assert (told["run_id"], told["checkpoints"], told["status"]) == ("r", 3, "IDLE_WITH_PENDING_REQUESTS")
    answered = command(
        "answer", f'{paused}={{"approved": true}}', "--store", "other.db", "--app", f"{APP}:payment", "--json"
    )
    assert answered.document["outputs"] == ["c-2: paid"]


def test_a_run_that_is_there_already_is_not_taken_in(command, paused):
    """Exit code 2; nor is a file that is no export, which is 6."""
    command("export", "r", "r.run")
    again = command("import", "r.run")
    assert (again.code, again.err.startswith("error [run-exists]: ")) == (2, True)
    assert again.err.endswith("Nothing was taken in: a run keeps its id. Import it into another store (--store).\n")
    Path("other.run").write_bytes(b"hello")
    other = command("import", "other.run", "--store", "new.db")
    assert (other.code, other.err.startswith("error [checkpoint-corrupt]: ")) == (6, True)
    assert other.err.endswith("Look whether it is the right file, or export the run again: rehydrate export RUN FILE\n")
    assert not Path("new.db").exists()
    assert command("export", "nobody", "n.run").code == 2


def test_an_export_can_go_to_standard_output(command, paused):
    """The bytes alone; what is told of them is on standard error."""
    command("export", "r", "r.run")
    words = [sys.executable, "-m", "rehydrate", "export", "r", "-"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == Path("r.run").read_bytes()
    assert done.stderr.startswith(b"exported run 'r'")
    assert command("export", "r", "-", "--json").code == 2


def test_an_import_from_an_input_that_is_closed(command, monkeypatch):
    """As `<&-` leaves it: a wrong call, no traceback, and no store."""
    monkeypatch.setattr("sys.stdin", None)
    done = command("import", "-")
    assert (done.code, done.err) == (2, "error [wrong-call]: standard input is closed.\nName a file.\n")
    assert not Path("runs.db").exists()


def test_a_dry_run_says_what_would_go_and_prune_does_it(command, paused):
    """The same numbers; heads stay, and an open question is still open."""
    told = command("prune", "--keep-last", "1", "--dry-run", "--json").document
    assert (told["dry_run"], told["checkpoints_forgotten"], told["runs"][0]["forgotten"]) == (True, 2, [0, 1])
    assert len(command("history", "r", "--json").document["checkpoints"]) == 3
    done = command("prune", "--keep-last", "1")
    assert done.out.splitlines()[1].startswith("r\t2\t2 (head, last)\t")
    assert done.err.startswith("gone: 2 checkpoints and 0 whole runs, of 1 run;")
    assert [each["number"] for each in command("history", "r", "--json").document["checkpoints"]] == [2]
    assert command("inbox", "--json").document["requests"][0]["request_id"] == paused


def test_runs_that_ended_go_as_a_whole_and_those_that_ask_stay(command, monkeypatch):
    """By their age; why one is passed over is told."""
    command("run", "-m", SMALL, "--run", "ended")
    command("run", "-m", LARGE, "--run", "asks")
    told = command("prune", "--delete-ended-after", "0s", "--json").document
    assert told["runs_deleted"] == ["ended"]
    assert [each["run_id"] for each in command("runs", "--json").document["runs"]] == ["asks"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "error [wrong-call]: no rule says what may go.\nGive --keep-last"),
        (("--keep-for", "7x"), "error [wrong-call]: Invalid value for '--keep-"),
        (("--keep-for", "999999999w"), "error [wrong-call]: Invalid value for '--keep-"),
        (("--keep-last", "0"), "error [wrong-call]: Invalid value for '--keep-"),
        (("--keep-last", "1", "--run", "nobody"), "error [run-not-found]: "),
    ],
)
def test_a_wrong_retention_is_refused(command, paused, words, told):
    """Exit code 2, before anything is looked at."""
    done = command("prune", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(told)


def test_a_doctor_of_a_store_that_is_well_ends_with_0(command, paused):
    """What it looked at is a table; what a retention would let go is a note."""
    done = command("doctor", "--full", "--keep-last", "1")
    levels = {line.split("\t")[1]: line.split("\t")[0] for line in done.out.splitlines()[1:]}
    assert done.code == 0
    assert (levels["migrations"], levels["records"], levels["retention"]) == ("ok", "ok", "note")
    assert done.err.startswith("0 problem(s), ")


def test_a_doctor_of_a_damaged_store_ends_with_1(command, paused):
    """With the run that cannot be read; as JSON `healthy` is false."""
    change(Path("runs.db"), "UPDATE rehydrate_record SET data = x'00'")
    done = command("doctor", "--json")
    assert (done.code, done.document["healthy"]) == (1, False)
    (problem,) = [each for each in done.document["findings"] if each["level"] == "problem"]
    assert (problem["about"], "'r'" in problem["text"]) == ("records", True)
    assert problem["action"]


def test_a_doctor_makes_no_store(command, tmp_path):
    """One that is not there is a wrong call, an empty folder a problem; nothing is made."""
    assert command("doctor").code == 2
    (tmp_path / "empty").mkdir()
    assert command("doctor", "--store", "empty").code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert list((tmp_path / "empty").iterdir()) == []


def test_prune_says_where_a_workflow_has_no_run(command, paused):
    """No error, as a job that prunes each night may have taken the last one, and not a count of nothing."""
    done = command("prune", "--keep-last", "1", "--workflow", "nosuch")
    assert (done.code, done.err) == (0, "There is no run of workflow 'nosuch' in this store.\n")
    assert command("prune", "--keep-last", "1", "--run", "nosuch").code == 2
