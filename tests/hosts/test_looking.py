"""`runs`, `show`, `history`, `diff`, `inbox` and `graph`: what they print, without the code of the workflows."""

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rehydrate import SqliteCheckpointStorage, WorkflowBuilder, drain, executor
from rehydrate.errors import RunDrainedError
from rehydrate.testing import claim_turns_again
from tests.hosts.commands import APP, LARGE, SMALL

HOSTILE = '{"id": "\\u001b[31mred\\u0007", "amount": 5000}'


@pytest.fixture
def two_runs(command, monkeypatch):
    """A run that has ended and one that asks; from here on there is no code of their workflow."""
    command("run", "-m", SMALL, "--run", "ended")
    asked = command("run", "-m", LARGE, "--run", "asks", "--json").document
    monkeypatch.delenv("REHYDRATE_APP")
    return asked["requests"][0]["request_id"]


def rows(done):
    """What a table has in its columns, by its first line."""
    head, *lines = [line.split("\t") for line in done.out.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_runs_are_listed_with_how_they_stand(command, two_runs):
    """Ordered by id; one line each, with tabs, where it is piped."""
    found = rows(command("runs"))
    assert [(each["run"], each["workflow"], each["status"], each["open"]) for each in found] == [
        ("asks", "payment", "IDLE_WITH_PENDING_REQUESTS", "1"),
        ("ended", "payment", "IDLE", "0"),
    ]
    assert [each["run"] for each in rows(command("runs", "--status", "idle"))] == ["ended"]
    assert command("runs", "--workflow", "other", "--json").document == {"runs": [], "next": None}


def test_a_page_of_runs_says_how_to_go_on(command, two_runs):
    """In JSON as `next`, for a person as a command."""
    page = command("runs", "--limit", "1", "--json").document
    assert ([each["run_id"] for each in page["runs"]], page["next"]) == (["asks"], "asks")
    done = command("runs", "--limit", "1")
    assert done.err == "There may be more: rehydrate runs --after asks --limit 1\n"
    assert [each["run"] for each in rows(command("runs", "--after", "asks"))] == ["ended"]


@pytest.mark.parametrize("more", [(), ("--state",), ("--checkpoint", "0"), ("--checkpoint", "0", "--state")])
@pytest.mark.parametrize("run_id", ["ended", "failed"])
def test_a_run_that_is_shown_is_read_once(command, two_runs, more, run_id):
    """Whatever is shown of it, in a process of its own."""
    command("run", "--app", f"{APP}:payment", "-m", '{"id": "broken", "amount": 1}', "--run", "failed")
    assert whole_reads("show", run_id, *more) == 1


def test_a_fork_reads_its_checkpoint_once_for_its_workflow_and_once_in_the_call(command, two_runs):
    """The message is read by the types of a workflow that only the checkpoint names."""
    first = command("show", "ended", "--json").document["checkpoint_id"]
    assert whole_reads("fork", first, "-m", SMALL) == 2


def whole_reads(*words: str) -> int:
    """How often a command has read a whole checkpoint."""
    app = str(APP.with_name("counting_app.py"))
    done = subprocess.run(
        [sys.executable, "-m", "rehydrate", *words, "--app", app], capture_output=True, text=True, check=True,
        env={name: value for name, value in os.environ.items() if name != "REHYDRATE_STORE"},
    )  # fmt: skip
    return int(done.stderr.rpartition("whole reads: ")[2])


ODD = "it's \u202e$(touch made)\u00e9"


def test_the_command_for_the_next_page_keeps_its_filters_and_can_be_pasted(command, two_runs, tmp_path):
    """A shell reads every id back as it is; the pages that follow one another are all that there is."""
    app = ("--app", f"{APP}:payment")
    for run_id in (f"{ODD}1", f"{ODD}2", f"{ODD}3"):
        command("run", *app, "-m", LARGE, "--run", run_id)
    script = tmp_path / "rehydrate"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m rehydrate "$@"\n')
    script.chmod(0o755)
    store = str(tmp_path / "runs.db")

    def pages(*words: str) -> list[tuple[str, str]]:
        """The first page of a list and what follows when its last line is pasted, each with that line."""
        found: list[tuple[str, str]] = []
        line = shlex.join(("rehydrate", *words, "--store", store))
        while line:
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, check=True,
                env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "REHYDRATE_STORE": "no.db"},
            )  # fmt: skip
            line = done.stderr.partition(": ")[2].strip()
            found.append((done.stdout, line))
        return found

    listed = pages("runs", "--workflow", "payment", "--status", "idle_with_pending_requests", "--limit", "3")
    assert [len(out.splitlines()) - 1 for out, _ in listed] == [3, 1]
    assert listed[0][1].startswith(
        f"rehydrate runs --store {store} --workflow payment --status IDLE_WITH_PENDING_REQUESTS --after $'it\\047s "
    )
    assert listed[0][1].isprintable()
    asked = pages("inbox", "--run", f"{ODD}2", "--workflow", "payment", "--limit", "1")
    assert [out.count("request  ") for out, _ in asked] == [1, 0]
    whole = pages("history", f"{ODD}1", "--limit", "2")
    assert [out.splitlines()[-1].split("\t")[0] for out, _ in whole] == ["1", "0"]
    assert not Path("made").exists()


def test_a_run_is_shown_with_what_it_asks(command, two_runs):
    """Where it stands, who asks what of which type, and the command that answers."""
    lines = command("show", "asks").out.splitlines()
    assert lines[0] == "run        asks of workflow payment"
    assert lines[1] == "status     IDLE_WITH_PENDING_REQUESTS, turn 1, superstep 2"
    assert f"request    {two_runs} from review#1/assess" in lines
    assert "  expects  Verdict" in lines
    assert lines[-1] == f"answer     rehydrate answer --app FILE.py {two_runs}=JSON"
    document = command("show", "ended", "--json").document
    assert (document["outputs"], document["requests"], document["is_newest"]) == (["c-1: paid"], [], True)


def test_a_run_that_failed_is_shown_with_what_it_failed_of(command, two_runs):
    """Where and of what, as text and as JSON; a run that did not fail has nothing there."""
    command("run", "--app", f"{APP}:payment", "-m", '{"id": "broken", "amount": 1}', "--run", "failed")
    assert command("show", "failed").out.splitlines()[-1] == "failed     pay: ValueError: no such account"
    assert command("show", "failed", "--json").document["failures"] == [
        {"place": "pay", "text": "ValueError: no such account"}
    ]
    assert command("show", "ended", "--json").document["failures"] == []


def test_an_earlier_checkpoint_is_shown_by_number_id_or_name(command, two_runs):
    """And says that it is not the newest, and what would run next from there."""
    first = command("show", "ended", "--checkpoint", "0", "--json").document
    assert (first["number"], first["next_executors"], first["is_newest"]) == (0, ["intake"], False)
    again = command("show", "ended", "--checkpoint", first["checkpoint_id"], "--json").document
    assert again == first
    missing = command("show", "ended", "--checkpoint", "77")
    assert (missing.code, "no checkpoint '77' of run 'ended' in this store." in missing.err) == (2, True)
    assert missing.err.endswith("Look up its id, in the second column of: rehydrate history ended\n")


def test_an_id_that_is_far_too_long_is_not_repeated_as_a_whole(command, two_runs):
    """Some of it is enough to see which was meant."""
    done = command("show", "x" * 5000)
    assert (done.code, "x" * 200 in done.err, len(done.err) < 500) == (2, True, True)


def test_all_that_a_checkpoint_holds_is_shown_on_request(command, two_runs):
    """Requests, messages, state: by scope, kind and key."""
    held = command("show", "asks", "--state", "--json").document["holds"]
    (request,) = [row for row in held if row["kind"] == "request"]
    assert (request["path"], request["key"], request["value"]["text"]) == ("review#1", "assess#1?0", "Pay 5000?")
    assert "review#1\trequest\tassess#1?0\t" in command("show", "asks", "--state").out


def test_a_run_that_nobody_drives_says_so(command, two_runs):
    """Its process was drained in the middle of a turn; a doctor finds that a problem."""

    async def main() -> None:
        begun = asyncio.Event()

        @executor(id="slow")
        async def slow(number: int) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with SqliteCheckpointStorage("runs.db") as store:
            flow = WorkflowBuilder("flow", slow, checkpoint_storage=store).build()
            turn = asyncio.ensure_future(flow.run(1, run_id="left"))
            await begun.wait()
            await drain(grace=0)
            await asyncio.wait([turn])
            assert isinstance(turn.exception(), RunDrainedError)

    try:
        asyncio.run(main())
    finally:
        claim_turns_again()
    assert "driven     by nobody: a worker or resume takes it up" in command("show", "left").out.splitlines()
    done = command("doctor", "--json")
    (problem,) = [each for each in done.document["findings"] if each["level"] == "problem"]
    assert (done.code, problem["about"], "'left'" in problem["text"]) == (1, "orphaned runs", True)


def test_the_history_of_a_run_is_listed_newest_first(command, two_runs):
    """With the number, the cause and the size of each checkpoint; older pages by `--before`."""
    found = rows(command("history", "ended"))
    assert [each["number"] for each in found] == [str(n) for n in range(len(found) - 1, -1, -1)]
    assert (found[0]["status"], found[-1]["by"]) == ("IDLE", "message")
    page = command("history", "ended", "--limit", "2", "--json").document
    assert page["next"] == page["checkpoints"][-1]["number"]
    older = command("history", "ended", "--before", str(page["next"]), "--json").document
    assert older["checkpoints"][-1]["number"] == 0
    assert older["next"] is None


def test_two_checkpoints_are_compared(command, two_runs):
    """By scope and key; the newest one where only one is named."""
    done = command("diff", "asks", "0")
    assert done.out.splitlines()[0] == "asks #0 RUNNING -> asks #2 IDLE_WITH_PENDING_REQUESTS"
    assert "  ~ superstep: 1 -> 2" in done.out.splitlines()
    document = command("diff", "asks", "0", "latest", "--json").document
    (added,) = [row for row in document["differences"] if row["kind"] == "request"]
    assert (added["change"], added["path"], added["before"]) == ("added", "review#1", None)
    assert document["before"]["number"] == 0


def test_a_checkpoint_is_compared_with_one_of_another_run(command, two_runs):
    """As of a fork with its source."""
    document = command("diff", "asks", "latest", "--of", "ended", "--json").document
    assert (document["before"]["run_id"], document["after"]["run_id"]) == ("asks", "ended")
    assert {row["kind"] for row in document["differences"]} >= {"output", "request", "status"}


def test_the_inbox_lists_what_all_runs_ask(command, two_runs):
    """With the type of the answer and the command that answers, with a place for the app, since none was named."""
    assert command("inbox").out.splitlines() == [
        f"request  {two_runs} of run asks, from review#1/assess",
        '  asks     {"$type":"Question","claim":{"$type":"Claim","id":"c-2","amount":5000},"text":"Pay 5000?"}',
        "  expects  Verdict",
        f"  answer   rehydrate answer --app FILE.py {two_runs}=JSON",
    ]
    empty = command("inbox", "--run", "ended")
    assert (empty.code, empty.out, empty.err) == (0, "", "Nothing is asked.\n")


def test_with_the_workflows_the_inbox_shows_the_shape_of_an_answer(command, two_runs):
    """As JSON is to be written; a file that cannot be loaded is a note, and the list is there all the same."""
    (request,) = command("inbox", "--app", str(APP), "--json").document["requests"]
    assert request["expects"] == '{"approved": true | false, "note"?: str}'
    assert request["command"] == f"rehydrate answer --app {APP} {two_runs}=JSON"
    Path("broken.py").write_text("1 / 0\n")
    done = command("inbox", "--app", "broken.py")
    assert (done.code, "  expects  Verdict\n" in done.out) == (0, True)
    assert done.err.startswith("note: without the workflows only the names of types are known.")


def test_what_only_looks_loads_no_code(command, two_runs, monkeypatch):
    """Also where an app is named in the environment and cannot be loaded."""
    Path("broken.py").write_text("1 / 0\n")
    monkeypatch.setenv("REHYDRATE_APP", "broken.py")
    for words in (("runs",), ("show", "asks"), ("history", "asks"), ("diff", "asks", "0"), ("doctor",)):
        assert command(*words).code == 0


def test_nothing_that_a_run_holds_reaches_the_terminal_as_a_control_character(command, monkeypatch):
    """An id, a value and a question may come from anybody."""
    command("run", "-m", HOSTILE, "--run", "r")
    for words in (("inbox",), ("show", "r", "--state"), ("diff", "r", "0")):
        done = command(*words)
        assert "red" in done.out
        assert "\x1b" not in done.out
        assert "\x07" not in done.out


@pytest.mark.parametrize(
    ("format", "begins"),
    [("text", "╭─ payment"), ("mermaid", "flowchart TD\n"), ("dot", "digraph {\n"), ("svg", "<svg ")],
)
def test_a_workflow_is_drawn(command, monkeypatch, format, begins):
    """In each format, without a store."""
    monkeypatch.delenv("REHYDRATE_STORE")
    done = command("graph", "--format", format)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(begins)


def test_a_drawing_is_written_to_a_file_and_described_as_json(command):
    """The file holds the picture; the description can be read by a program."""
    done = command("graph", "-f", "svg", "-o", "payment.svg")
    assert (done.code, done.out) == (0, "")
    assert ET.parse("payment.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    described = command("graph", "--json").document
    assert [each["id"] for each in described["executors"]] == ["intake", "review", "pay"]
    assert command("graph", "-o", "no/such/folder.svg").code == 2
