"""P2 for agents: the process is killed between and inside of tool calls, and while the model speaks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate.testing import ScriptedModel, ToolCall

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [
    ToolCall("pack", {"item": "pen"}),
    [ToolCall("pack", {"item": "ink"}), ToolCall("pack", {"item": "pad"})],
    "All packed",
]


def killed_at(folder: Path, *kills: int) -> tuple[list[str], int]:
    """What the tools wrote, killed at these lines in turn, and how often the model was asked."""
    with ScriptedModel(SCRIPT) as model:
        command = [sys.executable, "-m", "tests.agents.kills", str(folder), model.url, *map(str, kills)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        killed, lines, outputs = json.loads(done.stdout)
        assert killed == [True] * len(kills)
        assert outputs == ["All packed"]
        return lines, len(model.requests)


def counts(lines: list[str]) -> dict[str, int]:
    """How often each item was begun, by its name; all attempts at one have one key."""
    keys: dict[str, list[str]] = {}
    for what, name, key in (line.split(" ", 2) for line in lines if line.startswith("begin")):
        assert what == "begin"
        keys.setdefault(name, []).append(key)
    assert all(len(set(found)) == 1 for found in keys.values())
    assert len({found[0] for found in keys.values()}) == len(keys)
    return {name: len(found) for name, found in keys.items()}


def test_a_kill_repeats_neither_what_was_done_nor_a_round_that_was_recorded(tmp_path: Path) -> None:
    """Killed in the first tool, and then while the model says its last words: that tool runs once more, under the same
    key, the others once; the model is asked for three rounds, and again for the one that it had not finished."""
    lines, asked = killed_at(tmp_path, 1, 8)
    assert lines[7:] == ["text ", "text ", "text "]
    assert (counts(lines), asked) == ({"pen": 2, "ink": 1, "pad": 1}, 4)


@pytest.mark.proof
@pytest.mark.parametrize("line", range(1, 8))
def test_a_kill_at_any_line_repeats_only_what_was_not_recorded(tmp_path: Path, line: int) -> None:
    """The long form: at each line that a tool or the model writes."""
    lines, asked = killed_at(tmp_path, line)
    again = sum(number - 1 for number in counts(lines).values())
    assert again <= (2 if line in {3, 4, 5, 6} else 1)
    assert asked == (4 if line == 7 else 3)
