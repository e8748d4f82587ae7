"""The demonstration tells the whole story in one command and fails if the story does not hold."""

import re
import subprocess
import sys
from pathlib import Path

from rehydrate.demo.demonstration import KillPoint


def test_the_demonstration_holds(tmp_path: Path) -> None:
    """An audit of the running environment is killed at work, goes on in one call and passes its check."""
    done = subprocess.run(
        [sys.executable, "-m", "rehydrate.demo.licence_audit", "--demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    killed = re.search(r"exit code -9, (\d+) questions open at depth two, (\d+) distributions in work", done.stdout)
    assert killed is not None
    assert int(killed[1]) >= 3
    assert int(killed[2]) > 0
    assert re.search(r"restored    the run \(0 open, [1-9]\d* in work\)", done.stdout)
    assert re.search(r"ok    none of \d+ installed distributions is lost", done.stdout)
    assert re.search(r"ok    none of \d+ committed classifications ran again", done.stdout)
    assert "required but missing (1)" in done.stdout
    assert "WRONG" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_kill_waits_for_questions_and_finds_work_in_flight() -> None:
    """Killed when all questions are open, or when enough are and little work is left; never when nothing is at work."""
    point = KillPoint(enough_open=3, all_open=4, little_work=8)
    assert not point.is_reached(open_questions=2, in_work=5)
    assert not point.is_reached(open_questions=3, in_work=20)
    assert point.is_reached(open_questions=3, in_work=8)
    assert point.is_reached(open_questions=4, in_work=20)
    assert not point.is_reached(open_questions=4, in_work=0)
