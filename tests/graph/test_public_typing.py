"""What an editor says of code that uses the library: a type that the context does not name is an error at its line."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.project.source import ROOT

WRITTEN = (Path(__file__).with_name("in_the_editor.py"), ROOT / "tests" / "functional" / "functions_in_the_editor.py")
_MARK = re.compile(r"# error: (\w+)$")


def expected() -> list[tuple[str, int, str]]:
    """The lines that are marked, with their rules, by file."""
    return [
        (path.name, number, found.group(1))
        for path in WRITTEN
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := _MARK.search(line))
    ]


def reported(folder: Path) -> list[tuple[str, int, str, str]]:
    """What pyright says of the same texts in a project of its own, in strict mode."""
    for path in WRITTEN:
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {"strict": ["."], "extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    told = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["rule"], each["message"]) for each in told
    ]


def test_a_type_checker_finds_every_wrong_use_and_nothing_else(tmp_path: Path) -> None:
    """What is not declared, and wrong arguments of builder, call, step and context; right code has no complaint."""
    told = reported(tmp_path)
    # One mistake may be told in several words, once for each form of an overloaded call.
    rules = {(file, line, rule) for file, line, rule, _ in told}
    assert {place[:2] for place in rules} == {place[:2] for place in expected()}, told
    assert set(expected()) <= rules, told
