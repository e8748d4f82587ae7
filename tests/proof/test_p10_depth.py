"""P10: what is nested 100,000 deep is refused in every position, in a thread with a stack of 256 KB, on each Python."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.proof.interpreters import SUPPORTED, interpreter
from tests.proof.ledger import Tried
from tests.proof.test_p10_hook import run_apart

OTHERS = [version for version in SUPPORTED if version != f"{sys.version_info.major}.{sys.version_info.minor}"]


def refused(python: str) -> int:
    """Return how many bombs a Python has refused; all else is a failure, and so is a crash."""
    told = run_apart("bombs", python=python)
    count = re.fullmatch(r"all (\d+) refused\n", told)
    assert count is not None, told
    return int(count[1])


@pytest.mark.promise("P10", "depth bombs in every position on a 256 KB stack")
def test_depth_bombs_are_refused(tried: Tried) -> None:
    """In values, records, headers, rows, events, packs, recipes, exports, lines of files and answers in JSON."""
    tried(refused(sys.executable))


@pytest.mark.proof
@pytest.mark.promise("P10", "depth bombs in every position on a 256 KB stack")
@pytest.mark.parametrize("version", OTHERS)
def test_depth_bombs_are_refused_by_other_pythons(version: str, tried: Tried) -> None:
    """The same on each other supported Python that is on this machine; they differ in what stack they let C take."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} with wheels of msgspec here")
    tried(refused(python))


@pytest.mark.proof
@pytest.mark.notices("P10")
@pytest.mark.parametrize("broken", ["arrays", "none"])
def test_a_depth_check_that_misses_something_is_noticed(broken: str) -> None:
    """A check that counts only arrays, or none at all, lets the process crash or read what it must not."""
    command = [sys.executable, "-m", "tests.proof.bombs", broken]
    done = subprocess.run(command, env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=False)
    assert not done.stdout.startswith("all ")
