"""The command stopped from outside, in processes of its own: nothing is lost, and nothing ends in a traceback."""

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

from rehydrate.demo.command import main
from rehydrate.demo.options import COMPLETE, INTERRUPTED, QUESTIONS_OPEN
from tests.demo.made import install

COMMAND = [sys.executable, "-m", "rehydrate.demo.licence_audit", "env/site-packages"]


@pytest.fixture(name="work")
def make_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the environment `env`: three clear distributions and two that say nothing."""
    site = tmp_path / "env" / "site-packages"
    for number in range(3):
        install(site, f"clear-{number}", "1.0", "License-Expression: MIT")
    install(site, "mute", "1.0")
    install(site, "silent", "1.0")
    (tmp_path / "answers.txt").write_text("silent = BSD-2-Clause\nmute = MIT\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command, with nobody at the terminal; it does not outlive the test."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], beginning: str, times: int) -> None:
    """Read the output until so many lines with a beginning have come."""
    assert process.stdout is not None
    for line in process.stdout:
        times -= line.startswith(beginning)
        if times == 0:
            return
    pytest.fail(f"the process ended without enough lines of {beginning!r}")


def until_text(terminal: int, *texts: str) -> str:
    """Read a terminal until these texts have come, in this order; return all that was read."""
    shown = ""
    awaited = re.compile(".*".join(map(re.escape, texts)), re.DOTALL)
    while not awaited.search(shown):
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096).decode()
    return shown


def interrupted_until(process: subprocess.Popen[bytes], terminal: int, text: str) -> str:
    """Press Ctrl-C twice at once until a text comes: Python misses one between showing a prompt and reading."""
    shown = ""
    for _ in range(60):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        while select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096).decode()
            if text in shown:
                return shown
    pytest.fail(shown)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_audit_goes_on_and_is_completed_from_a_file_of_answers(
    work: Path, capsys: pytest.CaptureFixture[str], stop: signal.Signals
) -> None:
    """Stopped by Ctrl-C or killed in the middle, paused at the questions, answered: three calls, one report."""
    kept = ["--store", "sqlite:///audit.db", "--journal", "journal"]
    with started(*kept, "--look-up-seconds", "0.2", "--at-a-time", "1") as process:
        until(process, "classified", 2)
        process.send_signal(stop)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == (INTERRUPTED if stop == signal.SIGINT else -signal.SIGKILL)
    if stop == signal.SIGINT:
        assert re.search(
            r"^Stopped; what was committed is safe\. Go on with: \S*python\S* -m rehydrate\.demo\.licence_audit "
            r"--store sqlite:///audit\.db --run audit --journal journal\n$",
            complaint,
            re.MULTILINE,
        )

    assert main(kept) == QUESTIONS_OPEN
    paused = capsys.readouterr().out
    assert "waiting for a person (2)\n  mute 1.0: nothing in the metadata" in paused

    assert main([*kept, "--answers", "answers.txt", "--check"]) == COMPLETE
    done = capsys.readouterr().out
    assert "5 distributions, 3 decided from metadata (0 with a note), 2 by a person" in done
    assert "ok    none of 5 installed distributions is lost" in done
    assert "ok    none of 2 questions was asked twice" in done
    assert "WRONG" not in done


def test_what_was_typed_before_two_quick_interrupts_is_handed_in(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first question is answered, the second one gets Ctrl-C twice: the answer is kept, and the end is tidy."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs)
        with process:
            try:
                until_text(ours, "licence> ")
                os.write(ours, b"MTI\n")
                until_text(ours, "'MTI' is no licence that is known here", "licence> ")
                os.write(ours, b"MIT\n")
                until_text(ours, "silent 1.0", "licence> ")
                end = interrupted_until(process, ours, "Go on with: ")
                code = process.wait(timeout=60)
            finally:
                process.kill()
    finally:
        os.close(ours)
        os.close(theirs)
    assert code == INTERRUPTED, end
    assert "run 'audit': 1 answer(s)" in end
    assert "Stopped; what was committed is safe. Go on with: " in end
    assert "Traceback" not in end
    assert main(["--answers", "answers.txt"]) == COMPLETE
    assert "run 'audit': 1 answer(s)" in capsys.readouterr().out


def test_output_can_be_cut_off(work: Path) -> None:
    """A reader that leaves is no reason for a traceback."""
    with started() as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        complaint = process.stderr.read()
        process.wait(timeout=60)
    assert (process.returncode, complaint) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_output_that_cannot_be_written_is_one_line(work: Path) -> None:
    """A full disk behind standard output is an error of its own."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(COMMAND, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        7,
        "error [unwritten]: standard output cannot be written: No space left on device. What has run is saved.\n",
    )
