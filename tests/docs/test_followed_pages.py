"""Pages that are followed as they are written: their files saved, their commands typed, what these print compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS

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


def follow(page: str, folder: Path) -> list[str]:
    """Do what a page says, block by block; return the files and commands in their order."""
    done: list[str] = []
    for kind, block in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if kind == "python":
            name = FILE.match(block)
            assert name is not None, block
            (folder / name[1]).write_text(block, encoding="utf-8")
            done.append(name[1])
            continue
        command, said = block.removeprefix("$ ").split("\n", 1)
        output = typed(command, folder)
        assert shown(said).fullmatch(output), f"{command}\n{output}"
        done.append(command)
    return done


def test_a_reader_who_follows_the_tutorial_sees_what_it_says(tmp_path: Path) -> None:
    """Every command ends well, complains of nothing and prints what stands there, from an empty folder to the test."""
    done = follow("tutorial.md", tmp_path)
    assert [command for command in done if " " in command] == [
        "python security.py",
        "python releases.py",
        "python kill.py start.py browser",
        "python look.py",
        "python kill.py resume.py docs",
        "python resume.py",
        "python resume.py 2>&1 | tail -n 1",
        "python what_if.py",
        "python -m pytest -q test_releases.py",
    ]


def test_a_run_whose_process_died_is_taken_up_as_the_page_says(tmp_path: Path) -> None:
    """The web process dies in its handler; the worker, another process, ends the run and takes an offer."""
    done = follow("howto/several-processes.md", tmp_path)
    assert [command for command in done if " " in command] == [
        'python web.py || echo "it has died"',
        "python worker.py",
    ]
