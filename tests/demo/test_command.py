"""The command as people use it: stop at any point, answer, go on; wrong input is one line."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rehydrate.demo.command import COMPLETE, FAILED, INTERRUPTED, QUESTIONS_OPEN, WRONG_INPUT
from tests.demo.made import install

COMMAND = [sys.executable, "-m", "rehydrate.demo.licence_audit"]


@pytest.fixture(name="work")
def make_work(tmp_path: Path) -> Path:
    """A folder to work in, with the environment `env`: five clear distributions and one that says nothing."""
    site = tmp_path / "env" / "site-packages"
    for number in range(5):
        install(site, f"clear-{number}", "1.0", "License-Expression: MIT")
    install(site, "silent", "1.0")
    return tmp_path


def run(work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end with nobody at the terminal."""
    return subprocess.run(
        [*COMMAND, *words], cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )


@contextmanager
def started(work: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command; it does not outlive the test."""
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_audit_goes_on_and_is_completed_from_a_file_of_answers(work: Path, stop: signal.Signals) -> None:
    """Stopped by Ctrl-C or killed in the middle, paused at the question, answered: three processes, one report."""
    kept = ["--store", "sqlite:///audit.db", "--journal", "journal"]
    with started(work, "env/site-packages", *kept, "--look-up-seconds", "0.2", "--at-a-time", "1") as process:
        until(process, "classified", 2)
        process.send_signal(stop)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == (INTERRUPTED if stop == signal.SIGINT else -signal.SIGKILL)
    if stop == signal.SIGINT:
        assert "Go on with: python -m rehydrate.demo.licence_audit --store sqlite:///audit.db --run audit" in complaint

    paused = run(work, *kept)
    assert paused.returncode == QUESTIONS_OPEN, paused
    assert "waiting for a person (1)\n  silent 1.0: nothing in the metadata" in paused.stdout
    assert paused.stdout.count("clear-") >= 5

    (work / "answers.txt").write_text("silent = BSD-2-Clause\n")
    done = run(work, *kept, "--answers", "answers.txt", "--check")
    assert done.returncode == COMPLETE, done
    assert "6 distributions, 5 decided from metadata (0 with a note), 1 by a person" in done.stdout
    assert "ok    none of 6 installed distributions is lost" in done.stdout
    assert "ok    none of 1 questions was asked twice" in done.stdout
    assert "WRONG" not in done.stdout


def test_the_same_command_again_completes_what_it_began(work: Path) -> None:
    """Whoever types the same words twice gets one audit, not two."""
    assert run(work, "env/site-packages").returncode == QUESTIONS_OPEN
    (work / "answers.json").write_text('{"silent": "MIT"}')
    done = run(work, "env/site-packages", "--answers", "answers.json", "--check")
    assert done.returncode == COMPLETE, done
    assert "6 distributions" in done.stdout


def test_a_finished_audit_can_be_read_again(work: Path) -> None:
    """The command without anything new runs nothing and prints the same report."""
    (work / "answers.json").write_text('{"silent": "MIT"}')
    first = run(work, "env/site-packages", "--answers", "answers.json")
    again = run(work)
    assert (first.returncode, again.returncode) == (COMPLETE, COMPLETE)
    assert again.stdout.partition("Licence audit")[2] == first.stdout.partition("Licence audit")[2]
    assert "classified" not in again.stdout


def test_a_check_that_finds_something_fails_the_command(work: Path) -> None:
    """What was uninstalled since is in the report and not on the disk."""
    (work / "answers.json").write_text('{"silent": "MIT"}')
    assert run(work, "env/site-packages", "--answers", "answers.json", "--check").returncode == COMPLETE
    shutil.rmtree(work / "env" / "site-packages" / "clear_3-1.0.dist-info")
    checked = run(work, "--check")
    assert checked.returncode == FAILED
    assert "WRONG nothing is in the report that is not installed: not so for clear-3 1.0" in checked.stdout


def test_two_runs_in_one_store_do_not_mix(work: Path) -> None:
    """Each name is an audit of its own."""
    (work / "answers.json").write_text('{"silent": "MIT"}')
    assert run(work, "env/site-packages", "--run", "first", "--answers", "answers.json").returncode == COMPLETE
    other = run(work, "env/site-packages", "--run", "second")
    assert other.returncode == QUESTIONS_OPEN
    assert "5 decided from metadata" in other.stdout


def test_answers_are_typed_at_the_prompt(work: Path) -> None:
    """At a terminal the command asks, refuses what it does not understand, and completes the report."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, b"MTI\nMIT\n")
        done = subprocess.run(
            [*COMMAND, "env/site-packages"],
            cwd=work,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == COMPLETE, done
    assert "'MTI' is no licence that is known here" in done.stdout
    assert "5 decided from metadata (0 with a note), 1 by a person" in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["."], "neither a Python environment nor"),
        (["wrong.txt"], "wrong.txt: not a requirements file"),
        (["--installed-in", "wrong.txt"], "wrong.txt: not a directory"),
        (["--answers", "wrong.json"], "'silent': 'MTI' is no licence"),
        (["--journal", "no/file"], "no/file: No such file"),
        (["--store", "postgres://x"], "store 'postgres://x' cannot be used"),
        (["--run", "a/b"], "run id 'a/b' is not allowed"),
        (["--at-a-time", "0"], "'0' is not a number between 1 and 10000"),
        (["--look-up-seconds", "soon"], "'soon' is not a number between 0 and 60"),
        (["--demo", "env"], "--demo makes its own input"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_input_is_one_line_and_starts_nothing(work: Path, words: list[str], complaint: str) -> None:
    """The exit code tells it from a failure, and no audit has begun."""
    (work / "wrong.txt").write_text("[section]\n")
    (work / "wrong.json").write_text('{"silent": "MTI"}')
    done = run(work, *words)
    assert done.returncode == WRONG_INPUT
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert "classified" not in done.stdout


def test_output_can_be_cut_off(work: Path) -> None:
    """A reader that leaves is no reason for a traceback."""
    with started(work, "env/site-packages") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        complaint = process.stderr.read()
        process.wait(timeout=60)
    assert complaint == ""
