"""P10: reading executes nothing. Good and forged bytes go through every reader in a process with an audit hook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof.ledger import Tried

ROOT = Path(__file__).parents[2]


def run_apart(module: str, *arguments: str, python: str = sys.executable) -> str:
    """Run a module of this folder and return what it prints; whatever else it does is a failure."""
    path = sys.path if python == sys.executable else [str(ROOT / "src"), str(ROOT)]
    done = subprocess.run(
        [python, "-m", f"tests.proof.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")
    return done.stdout


@pytest.mark.promise("P10", "reads under an audit hook: no import, code, file, process")
@pytest.mark.parametrize("times", [4, pytest.param(2_000, marks=pytest.mark.proof)])
def test_reading_executes_nothing(times: int, tried: Tried) -> None:
    """No reader imports, compiles, opens, connects or starts anything; `show-file` opens the file that it is to show.

    The zones of good values are known before: to make one, its file in the zone database is read.
    """
    told = run_apart("watched", str(times))
    count = re.fullmatch(r"nothing was run in (\d+) reads\n", told)
    assert count is not None, told
    tried(int(count[1]))


@pytest.mark.proof
@pytest.mark.notices("P10")
def test_a_reader_that_does_more_is_noticed() -> None:
    """A decoder that imports by name, evaluates, reads a file or starts a process is told with what it did."""
    told = run_apart("watched", "0", "imports,evaluates,reads a file,starts a process")
    for event in ("import ('mailbox'", "exec (<code object", "open (", "subprocess.Popen ("):
        assert f": {event}" in told
