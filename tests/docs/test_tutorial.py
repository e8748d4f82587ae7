"""The tutorial is followed as it is written: its files saved, its commands typed, what they print compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS

PAGE = DOCS / "tutorial.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")


def typed(command: str, folder: Path) -> str:
    """What a command prints that is typed in a folder, with this interpreter as `python` and warnings as errors."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr + done.stdout
    return done.stdout


def shown(text: str) -> re.Pattern[str]:
    """A pattern for what a page shows, in which `...` stands for anything."""
    return re.compile(".*?".join(re.escape(part) for part in text.split("...")), re.DOTALL)


def test_a_reader_who_follows_the_tutorial_sees_what_it_says(tmp_path: Path) -> None:
    """Each block is a file or a command; every command ends well, complains of nothing and prints what stands there."""
    files, commands = [], []
    for kind, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            name = FILE.match(block)
            assert name is not None, block
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
            files.append(name[1])
            continue
        command, said = block.removeprefix("$ ").split("\n", 1)
        output = typed(command, tmp_path)
        assert shown(said).fullmatch(output), f"{command}\n{output}"
        commands.append(command)
    assert len(files) == len(set(files)) == 11
    assert commands[-4:] == [
        "python look.py",
        "python resume.py",
        "python what_if.py",
        "python -m pytest -q test_releases.py",
    ]
