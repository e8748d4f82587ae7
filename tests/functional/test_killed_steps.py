"""P2 for functions: a process is killed while a step runs, in a row, side by side, or in what is called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def wrong_after_kills(folder: Path, every: int) -> list[str]:
    """Kill runs at every n-th line of their steps, from a process of its own that can fork."""
    command = [sys.executable, "-m", "tests.functional.step_kills", str(folder), str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_kill_while_a_step_runs_repeats_nothing_that_was_saved(tmp_path: Path) -> None:
    """What was saved has one line, what ran has at most one more for each kill, and the outputs are the same."""
    assert wrong_after_kills(tmp_path, 9) == []


@pytest.mark.proof
def test_a_kill_at_the_beginning_or_end_of_any_step_repeats_nothing_that_was_saved(tmp_path: Path) -> None:
    """The long form of the same: at every line, and many kills of one run."""
    assert wrong_after_kills(tmp_path, 1) == []
