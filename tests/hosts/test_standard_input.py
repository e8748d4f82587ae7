"""Standard input, in processes of their own: Ctrl-C while it is read, and two that would read it."""

import os
import signal
import subprocess

import pytest

from tests.hosts.commands import SMALL
from tests.hosts.test_processes import COMMAND, environment

#: More than a pipe holds: where all of it was written, somebody reads.
MUCH = 1 << 20


def interrupted(folder, given: bytes, *words: str) -> tuple[int, str]:
    """Send Ctrl-C to a command that has read this much of an input that does not end."""
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            process.stdin.write(given)
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            return process.wait(30), process.stderr.read().decode()
        finally:
            process.kill()


@pytest.mark.parametrize("words", [("run", "-m"), ("resume", "--run", "r", "-m"), ("offer", "r", "-m")], ids=" ".join)
def test_ctrl_c_ends_a_command_that_reads_a_message(tmp_path, words):
    """At once, and not at the end of the input."""
    assert interrupted(tmp_path, b" " * MUCH, *words, "-") == (130, "interrupted\n")


@pytest.mark.parametrize(
    "words",
    [("resume", "--run", "r", "-m", "-", "--answer", "a=-"), ("offer", "r", "--answer", "a=-", "--answer", "b=-"),
     ("fork", "c", "-m", "-", "--answer", "a=-"), ("answer", "a=-", "b=-"),
     ("offer", "r", "-m", "-", "--answer", "a=@/dev/stdin"), ("answer", "a=@/dev/fd/0", "b=@/dev/stdin")],
    ids=" ".join,
)  # fmt: skip
def test_standard_input_can_be_one_word_only(tmp_path, words):
    """The second one would get nothing, so both are refused, before anything is read."""
    reading, writing = os.pipe()  # an input that does not end
    with os.fdopen(reading), os.fdopen(writing, "w"):
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=tmp_path,
            env=environment(),
            stdin=reading,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "error [wrong-call]: standard input is named twice.\nName it once, and write @FILE for the text of a file.\n",
    )


def test_ctrl_c_ends_an_import_that_reads_its_run(tmp_path, command):
    """At once, in the middle of a run that would be whole; no store came to be."""
    command("run", "-m", SMALL.replace("c-1", "c" * MUCH), "--run", "r")
    command("export", "r", "r.run")
    given = (tmp_path / "r.run").read_bytes()[:-1]
    assert interrupted(tmp_path, given, "import", "-", "--store", "new.db") == (130, "interrupted\n")
    assert not (tmp_path / "new.db").exists()
