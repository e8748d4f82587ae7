"""The examples run as programs, from a folder that is not the checkout, and leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def started(example: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an example in a folder, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / example), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_leaves_nothing(example: Path, tmp_path: Path) -> None:
    """Every example ends well, says something, complains of nothing and leaves no file where it was started."""
    done = started(example.name, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout != ""
    assert list(tmp_path.iterdir()) == []


def test_the_one_call_is_made_by_another_process(tmp_path: Path) -> None:
    """The state that the first process wrote is read by the second, which answers and brings the next claim."""
    said = started("one_call_resume.py", tmp_path).stdout.splitlines()
    (second,) = [line.split("Process ")[1].split()[0] for line in said if line.startswith("2.")]
    (first,) = [line.rsplit(" ", 1)[1] for line in said if "it was assessed in process" in line]
    assert first != second
    assert said[-3:-1] == ["    c-1: paid", "    c-2: paid"]


def test_nested_approval_takes_answers_from_the_command_line(tmp_path: Path) -> None:
    """What is said on the command line reaches the two scopes that asked; the third item never asks."""
    said = started("nested_approval.py", tmp_path, "laptop=yes", "desk=no").stdout.splitlines()
    assert [line.split("-> ")[1] for line in said if "-> " in line] == [
        "pens for 12: bought, says the budget",
        "laptop for 1800: bought, says the manager",
        "desk for 450: not bought, says the manager",
    ]
    assert sorted(line.split(maxsplit=1)[1] for line in said if "asks:" in line) == [
        "department#1/manager#1 asks: laptop for 1800?",
        "department#3/manager#1 asks: desk for 450?",
    ]


def test_nested_approval_says_in_a_line_how_answers_look(tmp_path: Path) -> None:
    """A wrong argument ends with a line that shows the form."""
    done = started("nested_approval.py", tmp_path, "laptop")
    assert (done.returncode, done.stderr) == (1, "laptop: write name=yes or name=no\n")
