"""The command in processes of its own: killed, interrupted, drained, in a terminal, and without its extra."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hosts.commands import APP, SMALL

COMMAND = [sys.executable, "-m", "rehydrate"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "REHYDRATE_APP": f"{APP}:payment", "REHYDRATE_STORE": "runs.db", **more}


@contextmanager
def holding(folder: Path, *words: str, hold: str = "1") -> Iterator[subprocess.Popen[str]]:
    """Start a command whose run comes to `pay` and stays there; it does not outlive the test."""
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(HOLD=hold),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            assert any(line == "holding\n" for line in process.stderr)
            yield process
        finally:
            process.kill()


def test_a_run_that_was_killed_goes_on_with_resume(tmp_path, command):
    """SIGKILL in the middle: what was finished is not done again."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r") as process:
        process.kill()
        assert process.wait() == -signal.SIGKILL
    done = command("resume", "--run", "r")
    assert (done.code, done.out.splitlines()[0]) == (0, "output   c-1: paid")
    assert "intake" not in done.err


@pytest.mark.proof
def test_ctrl_c_stops_a_run_at_what_it_has(tmp_path, command):
    """It is saved as cancelled, the exit code is 130, and `resume` goes on; other processes are told that it is busy
    before that."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r") as process:
        busy = command("resume", "--run", "r")
        assert (busy.code, "error [run-busy]: " in busy.err) == (5, True)
        assert "leave input for it (rehydrate offer --message JSON r)" in busy.err
        assert "take a stuck run (rehydrate resume --run r --takeover)" in busy.err
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert out == "run      r: CANCELLED, turn 1\nnext     rehydrate resume --run r\n"
    assert command("resume", "--run", "r", "--json").document["outputs"] == ["c-1: paid"]


@pytest.mark.proof
def test_cancel_stops_a_run_that_another_process_drives(tmp_path, command):
    """That process ends with what the run has, and exit code 4."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r") as process:
        asked = command("cancel", "r", "--json")
        assert (asked.code, asked.document) == (0, {"run_id": "r", "stopped": False})
        out, _ = process.communicate()
    assert (process.returncode, out.splitlines()[0]) == (4, "run      r: CANCELLED, turn 1")


@pytest.mark.proof
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_worker_hands_its_run_on_and_another_one_takes_it_up(tmp_path, command, number, code):
    """By SIGTERM, with the exit code that the library's drain has, or by Ctrl-C: nothing is lost."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r") as process:
        process.kill()
    with holding(tmp_path, "worker", "--grace", "0") as process:
        process.send_signal(number)
        _, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (code, False)
    assert command("worker", "--once", "--json").document["outputs"] == ["c-1: paid"]


def test_a_second_sigterm_does_not_wait_for_a_handler_that_swallows_its_cancellation(tmp_path, command):
    """Nor for the ten seconds of grace; what was saved before stands."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r", hold="stubborn") as process:
        process.send_signal(signal.SIGTERM)
        assert not select.select([process.stdout], [], [], 0.5)[0]  # it waits
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=9)
    assert (process.returncode, out, "Traceback" in err, "destroyed" in err) == (143, "", False, False)
    assert command("resume", "--run", "r", "--json").document["outputs"] == ["c-1: paid"]


@pytest.mark.proof
@pytest.mark.parametrize("first", [("resume", "--run", "r"), ("worker", "--grace", "0")], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_handler_that_swallows_its_cancellation_keeps_no_process(tmp_path, command, first, number, code):
    """It is stopped as far as it can be, and its run goes on elsewhere: it leaves no trace."""
    with holding(tmp_path, "run", "-m", SMALL, "--run", "r") as process:
        process.kill()
    with holding(tmp_path, *first, hold="stubborn") as process:
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err, "destroyed" in err) == (code, False, False)
    assert command("resume", "--run", "r", "--json").document["outputs"] == ["c-1: paid"]


def test_a_run_of_the_program_goes_on_in_the_command_line(tmp_path, command):
    """Started by `python FILE`, answered here: the names of its types do not depend on where they were loaded."""
    request_id = subprocess.run(
        [sys.executable, str(APP), "runs.db"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    done = command("answer", f'{request_id}={{"approved": true}}', "--json")
    assert (done.document["run_id"], done.document["outputs"]) == ("script", ["c-1: paid"])


def until(terminal: int, *texts: str) -> str:
    """Read a terminal until these texts have come, in this order; return all that was read."""
    shown = ""
    awaited = re.compile(".*".join(map(re.escape, texts)), re.DOTALL)
    while not awaited.search(shown):
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096).decode()
    return shown


def test_a_terminal_shows_what_is_active_and_then_the_result(tmp_path):
    """The executor at work is drawn with its time below the name of the run; Ctrl-C takes the drawing away."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "run", "-m", SMALL, "--run", "r"],
        cwd=tmp_path, env=environment(HOLD="1", TERM="xterm", COLUMNS="80", LINES="24"),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    with process:
        try:
            drawn = until(ours, "holding", "payment r, turn 1: 0 output(s), 0 request(s)", "  pay ", " s", "  pay ")
            process.send_signal(signal.SIGINT)
            end = until(ours, "run      r: CANCELLED", "resume --run r")
            assert process.wait() == 130
        finally:
            process.kill()
            os.close(ours)
    assert re.search(r"  pay +0\.\d s", drawn)
    assert "\x1b[2K" in end  # the lines of the drawing are erased
    assert "Traceback" not in end


def without_extra(*words: str) -> subprocess.CompletedProcess[str]:
    """A command where `click` is not installed."""
    program = "import sys; sys.modules['click'] = None; from rehydrate.main import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)


def test_without_its_extra_the_command_says_what_to_install():
    """`--version` and `show-file` work as they are, and so does `demo`, which needs no more."""
    done = without_extra("run", "-m", "1")
    assert (done.returncode, done.stderr) == (
        2,
        "error [missing-extra]: `rehydrate run` needs a package that is not installed.\npip install 'rehydrate[cli]'\n",
    )
    assert json.loads(without_extra("runs", "--json").stdout)["error"]["code"] == "missing-extra"
    assert without_extra("--version").stdout.startswith("rehydrate 0.")
    assert without_extra("show-file", "nothing").stderr.startswith("error [wrong-call]: file 'nothing' is not there.")


def test_without_its_extra_the_command_alone_lists_what_there_is():
    """Its commands, and how to have the others; exit code 0, as with all of them."""
    done = without_extra()
    assert (done.returncode, done.stderr) == (0, "")
    listed = " ".join(done.stdout.split())
    assert "demo A licence audit that is killed and goes on. show-file A file of a file store, as JSON." in listed
    assert "need the extra `cli`: pip install 'rehydrate[cli]'" in listed
