"""Streams in a process of their own: events come while a handler works, and a dropped stream leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def started(folder: Path, what: str) -> subprocess.Popen[str]:
    """Start the program in a folder; whatever warns there ends it with an error."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "tests.processes.telling", what],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_case_38_events_arrive_one_by_one_while_the_first_executor_runs(tmp_path: Path) -> None:
    """Each piece of progress is read before the handler is let on to the next: nothing waits for its end."""
    with started(tmp_path, "one_by_one") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert lines == [["TurnStarted", None], ["SuperstepStarted", None], ["InvocationStarted", None]]
        for number in range(3):
            assert json.loads(process.stdout.readline()) == ["Emitted", number]
            process.stdin.write("go\n")
            process.stdin.flush()
        out, err = process.communicate()
    ends = ["OutputYielded", "SuperstepCompleted", "StatusChanged"]
    assert [json.loads(line)[0] for line in out.splitlines()] == ends
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("_", range(2))
def test_case_39_a_dropped_stream_ends_cleanly_beside_a_new_run(tmp_path: Path, _: int) -> None:
    """No collector is called and nothing is closed by hand: both runs end as they should, and nothing warns."""
    with started(tmp_path, "dropped") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert json.loads(out) == ["IDLE", ["new"], "CANCELLED"]
