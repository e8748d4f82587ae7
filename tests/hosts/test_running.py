"""`run`, `resume`, `answer`, `fork`, `offer` and `cancel`: what they print, and their exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.commands import APP, LARGE, SMALL

ANY = """
from typing import Any
from rehydrate import WorkflowBuilder, executor

@executor(id="echo")
async def echo(value: Any) -> str:
    return str(value)

flow = WorkflowBuilder("flow", echo).build()
"""
LOUD = """
from dataclasses import dataclass
from rehydrate import WorkflowBuilder, executor

print("loaded")

@dataclass(frozen=True)
class Note:
    text: str

    def __post_init__(self) -> None:
        print("note", self.text)

@executor(id="echo")
async def echo(note: Note) -> str:
    return note.text

flow = WorkflowBuilder("flow", echo).build()
"""


def fresh(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "rehydrate", *words], capture_output=True, text=True, check=False)


def test_a_run_that_ends_prints_its_outputs_and_nothing_else(command):
    """Exit code 0; progress, and what user code prints, are on standard error."""
    done = command("run", "-m", SMALL, "--run", "r")
    assert (done.code, done.out) == (0, "output   c-1: paid\nrun      r: IDLE, turn 1\n")
    assert "intake c-1\n" in done.err
    assert "  review#1: sub-workflow started\n" in done.err


def test_a_run_that_waits_says_what_it_asks_and_how_to_answer(command, monkeypatch):
    """Exit code 3; the id, the question, the shape of an answer, and a command that is typed as it stands."""
    monkeypatch.delenv("REHYDRATE_APP")
    done = command("run", "--app", f"{APP}:payment", "-m", LARGE, "--run", "r")
    assert done.code == 3
    request, asks, expects, run, onward = done.out.splitlines()
    request_id = request.split()[1]
    assert request == f"request  {request_id} from review#1/assess"
    assert json.loads(asks.removeprefix("  asks     "))["text"] == "Pay 5000?"
    assert expects == '  expects  {"approved": true | false, "note"?: str}'
    assert run == "run      r: IDLE_WITH_PENDING_REQUESTS, turn 1"
    assert onward == f"next     rehydrate answer --app {APP}:payment {request_id}=JSON"


def test_an_answer_finds_its_run_and_goes_on(command):
    """The document has outputs, requests and status; the second time the answer is refused with exit code 2."""
    waiting = command("run", "-m", LARGE, "--json").document
    (request,) = waiting["requests"]
    assert (request["path"], request["asks"]["claim"]["amount"]) == ("review#1", 5000)
    answer = f'{request["request_id"]}={{"approved": true}}'
    done = command("answer", answer, "--json")
    assert (done.code, done.document["outputs"], done.document["status"]) == (0, ["c-2: paid"], "IDLE")
    again = command("answer", answer, "--json")
    assert (again.code, again.document["error"]["code"]) == (2, "already-answered")
    assert again.err.startswith("error [already-answered]: ")
    assert again.err.endswith("No answer was taken. Look what is open: rehydrate inbox\n")


def test_one_call_answers_and_brings_the_next_message(command):
    """`resume --run` with `--answer` and `--message` is one turn."""
    request_id = command("run", "-m", LARGE, "--run", "r", "--json").document["requests"][0]["request_id"]
    done = command("resume", "--run", "r", "--answer", f'{request_id}={{"approved":true}}', "-m", SMALL, "--json")
    assert (done.code, done.document["turn"], done.document["outputs"]) == (0, 2, ["c-2: paid", "c-1: paid"])


def test_a_message_that_does_not_fit_shows_the_shape_that_does(command):
    """Exit code 2, nothing ran, and no store came to be."""
    done = command("run", "-m", '{"id": "c", "amount": "5"}')
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error [message-shape]: this is no message for workflow 'payment': at amount: expected `int`, got `str`.\n"
        'Expected is JSON of this shape: {"id": str, "amount": int}\n'
    )
    assert not Path("runs.db").exists()


def test_an_answer_that_does_not_fit_shows_the_shape_that_does(command):
    """Exit code 2, and the request is still open."""
    request_id = command("run", "-m", LARGE, "--run", "r", "--json").document["requests"][0]["request_id"]
    done = command("answer", f"{request_id}=yes")
    assert (done.code, done.out) == (2, "")
    assert 'Expected is JSON of this shape: {"approved": true | false, "note"?: str}' in done.err
    assert command("resume", "--run", "r", "--json").document["requests"][0]["request_id"] == request_id


def test_a_key_that_stands_twice_is_refused_in_messages_and_answers(command):
    """With the key and its place; it is not taken for the same call as one without it, either."""
    done = fresh("run", "-m", '{"id": "c", "amount": 5, "amount": 90}')
    assert (done.returncode, done.stdout) == (2, "")
    refused = "error [message-shape]: this is no message for workflow 'payment': "
    assert done.stderr.startswith(f"{refused}the key 'amount' stands twice in one object.\n")
    request_id = command("run", "-m", LARGE, "--json").document["requests"][0]["request_id"]
    twice = f'{request_id}={{"approved": false, "approved": true}}'
    assert "the key 'approved' stands twice in one object" in fresh("answer", twice).stderr
    assert command("answer", f'{request_id}={{"approved": true}}', "--key", "k").code == 0
    assert fresh("answer", twice, "--key", "k").returncode == 2


def test_a_run_that_fails_shows_how_it_stands_and_how_to_go_on(command):
    """Exit code 1; the error comes after the result, as text and as JSON."""
    done = command("run", "-m", '{"id": "broken", "amount": 1}', "--run", "r")
    assert (done.code, done.out.splitlines()[0]) == (1, "run      r: FAILED, turn 1")
    assert "error [run-failed]: " in done.err
    assert 'raise ValueError("no such account")' in done.err  # the line of the user's file
    assert done.err.endswith("Go on with it: rehydrate resume --run r\n")
    again = command("resume", "--run", "r", "--json").document
    assert (again["status"], again["error"]["code"]) == ("FAILED", "run-failed")


def test_events_as_lines_of_json(command):
    """With `--events` each event is a line, and the result is the last."""
    *events, result = map(json.loads, command("run", "-m", SMALL, "--json", "--events").out.splitlines())
    assert [event["event"] for event in events][:2] == ["TurnStarted", "SuperstepStarted"]
    assert [event["data"] for event in events if event["event"] == "OutputYielded"] == ["c-1: paid"]
    assert "event" not in result
    assert command("run", "-m", SMALL, "--events").code == 2


def test_a_message_from_a_file(command):
    """`@FILE` is its text; one that is not there is an error."""
    Path("claim.json").write_text(SMALL)
    assert command("run", "-m", "@claim.json", "--json").document["outputs"] == ["c-1: paid"]
    assert command("run", "-m", "@nothing.json").err.startswith("error [wrong-call]: 'nothing.json' cannot be read")


def test_a_message_from_a_file_that_begins_with_a_byte_order_mark(command):
    """As editors of Windows write it; an answer, too."""
    Path("claim.json").write_text(LARGE, "utf-8-sig")
    Path("yes.json").write_text('{"approved": true}', "utf-8-sig")
    request_id = command("run", "-m", "@claim.json", "--json").document["requests"][0]["request_id"]
    assert command("answer", f"{request_id}=@yes.json", "--json").document["outputs"] == ["c-2: paid"]


def test_null_is_no_message(command):
    """It is refused by every command that takes one, and not taken for none."""
    Path("any.py").write_text(ANY)
    command("run", "--app", "any.py", "-m", "1", "--run", "r")
    checkpoint = command("history", "r", "--json").document["checkpoints"][0]["checkpoint_id"]
    for words in (("run",), ("resume", "--run", "r"), ("offer", "r"), ("fork", checkpoint)):
        done = command(*words, "--app", "any.py", "-m", "null")
        assert (done.code, done.err.startswith("error [message-shape]: ")) == (2, True)
        assert "null stands for no message at all" in done.err


def test_what_user_code_prints_is_on_standard_error_in_every_command(command):
    """Also where it prints when its file is loaded, or when a message is read: the JSON on standard output is alone."""
    Path("loud.py").write_text(LOUD)
    loud = ("--app", "loud.py", "--json")
    done = [command("run", "-m", '{"text": "a"}', "--run", "r", *loud)]
    done.append(command("offer", "r", "-m", '{"text": "b"}', *loud))
    done.append(command("cancel", "r", *loud))
    done.append(command("worker", "--once", *loud))
    done.append(command("resume", "--run", "r", "-m", '{"text": "c"}', *loud))
    done.append(command("graph", *loud))
    done.append(command("inbox", *loud))
    assert [each.code for each in done] == [0, 0, 2, 0, 0, 0, 0]  # nothing runs that could be cancelled
    assert [each.document is not None for each in done] == [True] * len(done)
    assert "note a\n" in done[0].err
    assert "note b\n" in done[1].err


def test_a_message_from_an_input_that_is_closed(command, monkeypatch):
    """As `<&-` leaves it: a wrong call, and no traceback."""
    monkeypatch.setattr("sys.stdin", None)
    assert command("run", "-m", "-").err.startswith("error [wrong-call]: standard input is closed.")


def test_the_same_command_with_a_key_is_done_once(command):
    """The second time what was recorded comes back."""
    first = command("run", "-m", SMALL, "--key", "k", "--json").document
    second = command("run", "-m", SMALL, "--key", "k", "--json").document
    assert (first["replayed"], second["replayed"], second["run_id"]) == (False, True, first["run_id"])


def test_a_fork_goes_on_with_a_copy(command):
    """From an earlier checkpoint under another id; from there itself no run goes on, and the error names both ways."""
    first = command("run", "-m", SMALL, "--run", "r", "--json").document
    command("resume", "--run", "r", "-m", SMALL)
    stale = command("resume", "--checkpoint", first["checkpoint_id"], "-m", SMALL)
    unknown = command("fork", "0")
    assert (unknown.code, "Look up its id, in the second column of: rehydrate history RUN" in unknown.err) == (2, True)
    assert (stale.code, f"rehydrate fork {first['checkpoint_id']}" in stale.err) == (2, True)
    copy = command("fork", first["checkpoint_id"], "--run", "copy", "-m", SMALL, "--json").document
    assert (copy["run_id"], copy["turn"]) == ("copy", 2)


def test_what_is_offered_is_taken_by_a_worker(command):
    """`offer` leaves a message, and `worker --once` takes it."""
    command("run", "-m", SMALL, "--run", "r")
    assert command("offer", "r").err.endswith("Give --message, --answer ID=JSON, or both.\n")
    assert command("offer", "r", "-m", '{"id": "c-3", "amount": 1}').out == "offered to run r as number 1.\n"
    done = command("worker", "--once", "--json")
    assert (done.code, done.document["run_id"], done.document["outputs"]) == (0, "r", ["c-3: paid"])
    assert command("worker", "--once").out == ""


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("resume",), 2, "error [wrong-call]: no run is named.\n"),
        (("resume", "--run", "r"), 2, "error [wrong-call]: there is no store 'runs.db'.\n"),
        (("run",), 2, "error [wrong-call]: Missing option '--message' / '-m'.\nLook at: rehydrate run --help\n"),
        (("answer", "abc"), 2, "error [wrong-call]: 'abc' is no answer.\nWrite ID=JSON"),
        (("answer", "a=1", "a=2"), 2, "error [wrong-call]: request 'a' is answered twice.\n"),
        (("run", "-m", SMALL, "--store", "what"), 2, "error [wrong-call]: 'what' is not there yet"),
        (("run", "-m", SMALL, "--app", "nothing.py"), 2, "error [wrong-call]: 'nothing.py' is no Python file.\n"),
        (("nothing",), 2, "error [wrong-call]: No such command 'nothing'.\nLook at: rehydrate --help\n"),
    ],
)
def test_a_wrong_command_is_refused(command, words, code, told):
    """Exit code 2, with what is wrong and what to do on standard error."""
    done = command(*words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(told)


def test_a_wrong_command_is_told_as_json_too(command):
    """On standard output, like every error."""
    done = command("run", "--json", "--nothing")
    assert (done.code, done.document["error"]["code"]) == (2, "wrong-call")
    assert command().out.startswith("Usage: rehydrate ")


def test_what_is_not_there_is_refused(command):
    """A run, a request and a run to stop; each error names the next command."""
    command("run", "-m", SMALL, "--run", "r")
    assert command("resume", "--run", "nobody").err == (
        "error [run-not-found]: no run 'nobody' in this store.\nLook which runs there are: rehydrate runs\n"
    )
    assert command("answer", "abc=true").err.startswith("error [unknown-request]: ")
    assert (command("cancel", "r").code, command("cancel", "nobody").code) == (2, 2)
    exists = command("run", "-m", SMALL, "--run", "r")
    assert "Go on with it (rehydrate resume --run r), or give another --run.\n" in exists.err


def test_without_a_store_the_error_says_how_to_name_one(command, monkeypatch):
    """`payment` was built with none."""
    monkeypatch.delenv("REHYDRATE_STORE")
    assert command("run", "-m", SMALL).err.startswith("error [no-store]: ")


def test_a_run_of_a_functional_workflow(command, monkeypatch):
    """It is named and given its message like any other."""
    monkeypatch.setenv("REHYDRATE_APP", f"{APP}:payments")
    done = command("run", "-m", LARGE)
    assert done.out.splitlines()[0] == "output   c-2: paid"
    assert "payments: step pay_out started\n" in done.err


def test_completion_of_runs_and_requests(command, monkeypatch):
    """Ids from the store, those that begin with what is typed."""
    request_id = command("run", "-m", LARGE, "--run", "claim-7", "--json").document["requests"][0]["request_id"]
    command("run", "-m", SMALL, "--run", "other")

    def completed(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(("rehydrate", *words)))
        monkeypatch.setenv("COMP_WORDBREAKS", "=:")
        monkeypatch.setenv("_REHYDRATE_COMPLETE", "bash_complete")
        return command().out.split()

    assert completed("resume", "--run", "cl") == ["plain,claim-7"]
    assert completed("answer", request_id[:4]) == [f"plain,{request_id}="]
    assert completed("cancel", "--store", "nothing.db", "cl") == []
    assert completed("dem") == ["plain,demo"]


def test_a_run_that_waits_for_a_timer_says_until_when(command, monkeypatch):
    """Beside what it asks; exit code 3."""
    monkeypatch.setenv("REHYDRATE_APP", f"{APP}:patient")
    done = command("run", "-m", "3600", "--run", "r")
    due = done.out.splitlines()[-2]
    assert (done.code, done.out.splitlines()[1]) == (3, "  asks     well?")
    assert re.fullmatch(r"due      \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", due)
