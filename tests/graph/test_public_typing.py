"""What an editor says of code that uses the library: a type that the context does not name is an error at its line."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.project.source import ROOT

WRITTEN = Path(__file__).with_name("in_the_editor.py")
_MARK = re.compile(r"# error: (\w+)$")


def expected() -> list[tuple[int, str]]:
    """The lines that are marked, with their rules."""
    lines = WRITTEN.read_text(encoding="utf-8").splitlines()
    return [(number, found.group(1)) for number, line in enumerate(lines, 1) if (found := _MARK.search(line))]


def reported(folder: Path) -> list[tuple[int, str, str]]:
    """What pyright says of the same text in a project of its own, in strict mode."""
    (folder / WRITTEN.name).write_text(WRITTEN.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {"strict": ["."], "extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    told = json.loads(done.stdout)["generalDiagnostics"]
    return [(each["range"]["start"]["line"] + 1, each["rule"], each["message"]) for each in told]


def test_a_type_checker_finds_every_wrong_use_and_nothing_else(tmp_path: Path) -> None:
    """Sending and yielding what is not declared, wrong arguments of builder and call; right code has no complaint."""
    told = reported(tmp_path)
    # One mistake may be told in several words, once for each form of an overloaded call.
    rules = {(line, rule) for line, rule, _ in told}
    assert {line for line, _ in rules} == {line for line, _ in expected()}, told
    assert set(expected()) <= rules, told
