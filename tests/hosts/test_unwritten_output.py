"""Output that cannot be written, in processes of their own: a reader that has gone, a full disk, a closed stream."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.hosts.commands import SMALL
from tests.hosts.test_processes import COMMAND, environment

#: A device that is always full.
FULL = Path("/dev/full")
NO_SPACE = "error [unwritten]: standard output cannot be written: No space left on device. What has run is saved.\n"

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
#: One for each that writes: our own lines, bytes, click's help, and those that need no extra.
everything = pytest.mark.parametrize(
    "words",
    [("runs",), ("export", "r", "-"), ("--help",), ("show-file", "--help"), ("demo", "--help"), ("demo",)],
    ids=" ".join,
)


@pytest.fixture
def folder(tmp_path, command) -> Path:
    """A folder with a store in which the run `r` has ended."""
    assert command("run", "-m", SMALL, "--run", "r").code == 0
    return tmp_path


@pytest.fixture
def left() -> Iterator[IO[str]]:
    """A pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        yield pipe


def done(folder: Path, *words: str, **streams: object) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with what it wrote into pipes of its own unless they are given."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run([*COMMAND, *words], cwd=folder, env=environment(), text=True, check=False, **streams)


@everything
def test_a_reader_that_has_gone_ends_a_command_quietly(folder, left, words):
    """With the exit code that a shell shows for a program that SIGPIPE has ended."""
    ended = done(folder, *words, stdout=left)
    assert (ended.returncode, ended.stderr) == (141, "")


@needs_full
@everything
def test_a_full_disk_is_one_line_and_an_exit_code_of_its_own(folder, words):
    """What could not be written and why, and no traceback."""
    with FULL.open("w") as full:
        ended = done(folder, *words, stdout=full)
    assert (ended.returncode, ended.stderr) == (7, NO_SPACE)


def test_a_closed_output_is_told_like_a_full_disk(folder):
    """As `>&-` leaves it; there is a result, and nowhere to write it."""
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "runs"]
    ended = subprocess.run(shell, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, NO_SPACE.replace("No space left on device", "Bad file descriptor"))


def test_a_closed_standard_error_is_no_error(folder):
    """As `2>&-` leaves it: who closes it wants the result alone."""
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "resume", "--run", "r", "-m", SMALL]
    ended = subprocess.run(shell, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "output   c-1: paid\nrun      r: IDLE, turn 2\n")


def test_a_run_whose_events_nobody_reads_is_stopped_and_goes_on_later(folder, left, command):
    """As at Ctrl-C: it is saved at what it has, and `resume` ends it."""
    ended = done(folder, "run", "-m", SMALL, "--run", "new", "--json", "--events", stdout=left)
    assert (ended.returncode, "Traceback" in ended.stderr) == (141, False)
    assert command("show", "new", "--json").document["status"] == "CANCELLED"
    assert command("resume", "--run", "new", "--json").document["outputs"] == ["c-1: paid"]


def test_a_run_whose_progress_nobody_reads_is_stopped_and_goes_on_later(folder, left, command):
    """The same of standard error, as behind `2>&1 | head`; what its handlers print there does not let it fail."""
    ended = done(folder, "run", "-m", SMALL, "--run", "new", stdout=left, stderr=left)
    assert ended.returncode == 141
    assert command("show", "new", "--json").document["status"] == "CANCELLED"
    assert command("resume", "--run", "new", "--json").document["outputs"] == ["c-1: paid"]


@needs_full
def test_a_run_whose_result_cannot_be_written_has_ended_all_the_same(folder, command):
    """Its turn is in the store before anything of it is printed."""
    with FULL.open("w") as full:
        ended = done(folder, "run", "-m", SMALL, "--run", "new", stdout=full)
    assert (ended.returncode, ended.stderr.endswith(NO_SPACE)) == (7, True)
    assert command("show", "new", "--json").document["outputs"] == ["c-1: paid"]


@needs_full
def test_what_user_code_cannot_print_is_told_at_the_end(folder):
    """The handler goes on, the result is printed, and the exit code says that something was lost."""
    with FULL.open("w") as full:
        ended = done(folder, "run", "-m", SMALL, "--run", "new", "--json", stderr=full)
    assert (ended.returncode, '"outputs":["c-1: paid"]' in ended.stdout) == (7, True)


@pytest.mark.parametrize("once", [(), ("--once",)])
def test_a_worker_whose_lines_nobody_reads_hands_on_what_it_has(folder, left, command, once):
    """It ends by itself after the first run that it tells of, and another worker takes up the rest."""
    command("run", "-m", SMALL, "--run", "s")
    for run_id in ("r", "s"):
        command("offer", run_id, "-m", SMALL)
    ended = done(folder, "worker", "--concurrency", "1", *once, stdout=left)
    assert (ended.returncode, "Traceback" in ended.stderr) == (141, False)
    command("worker", "--once")
    assert [command("show", run_id, "--json").document["turn"] for run_id in ("r", "s")] == [2, 2]
