"""The demonstration tells the whole story in one command and fails if the story does not hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate.demo.demonstration import KillPoint, demonstrate
from tests.demo.made import install


def assert_held(told: str) -> None:
    """Check what the demonstration shows at the kill, at the restore and at its end."""
    killed = re.search(r"exit code -9, (\d+) questions open at depth two, (\d+) distributions in work", told)
    assert killed is not None
    assert int(killed[1]) >= 3
    assert int(killed[2]) > 0
    assert re.search(r"restored    the run \(0 open, [1-9]\d* in work\)", told)
    assert re.search(r"ok    none of \d+ installed distributions is lost", told)
    assert re.search(r"ok    none of \d+ committed classifications ran again", told)
    assert "required but missing (1)" in told
    assert "WRONG" not in told


def test_the_demonstration_holds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An audit of a small environment is killed at work, goes on in one call and passes its check."""
    site = tmp_path / "site-packages"
    for number in range(8):
        install(site, f"clear-{number}", "1.0", "License-Expression: MIT")
    code = demonstrate(str(site), seconds=2.0)
    told = capfd.readouterr()
    assert (code, told.err) == (0, ""), told
    assert_held(told.out)
    assert "ok    none of 11 installed distributions is lost" in told.out


@pytest.mark.proof
def test_the_demonstration_holds_on_the_running_environment(tmp_path: Path) -> None:
    """As `make demo` shows it."""
    done = subprocess.run(
        [sys.executable, "-m", "rehydrate.demo.licence_audit", "--demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    assert_held(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_the_kill_waits_for_questions_and_finds_work_in_flight() -> None:
    """Killed when all questions are open, or when enough are and little work is left; never when nothing is at work."""
    point = KillPoint(enough_open=3, all_open=4, little_work=8)
    assert not point.is_reached(open_questions=2, in_work=5)
    assert not point.is_reached(open_questions=3, in_work=20)
    assert point.is_reached(open_questions=3, in_work=8)
    assert point.is_reached(open_questions=4, in_work=20)
    assert not point.is_reached(open_questions=4, in_work=0)
