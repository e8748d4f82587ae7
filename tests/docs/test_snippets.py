"""The blocks of Python in the documentation run as they stand, page by page, in an empty folder."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from tests.docs.pages import ROOT, name_of, pages

BLOCKS = Sybil(parsers=[PythonCodeBlockParser()], path=str(ROOT), pattern="*.md")
FIRST_PAGE = ROOT / "README.md"
#: A page with a tutorial: its first blocks are programs, the others run in one namespace.
TUTORIAL = ROOT / "docs" / "functional.md"
PROGRAM = re.compile(r"# \w+\.py\n")
#: Pages whose blocks are programs and nothing else. The first is run below, that of the command line in
#: test_cli_page.py, the others are followed in test_followed_pages.py.
PROGRAMS_ONLY = (
    FIRST_PAGE,
    ROOT / "docs" / "cli.md",
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "howto" / "several-processes.md",
)
WITH_BLOCKS = [page for page in pages() if "```python\n" in page.read_text(encoding="utf-8")]


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """Pages that set up the log leave it as they have found it."""
    loggers = [logging.getLogger(), logging.getLogger("rehydrate")]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if page not in PROGRAMS_ONLY], ids=name_of)
def test_the_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """All blocks of a page run one after the other in one namespace; what they store lands in the current folder."""
    monkeypatch.chdir(tmp_path)
    if "DATABASE_URL" in page.read_text(encoding="utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_database"))
    document = BLOCKS.parse(page)
    document.namespace["__name__"] = page.stem
    ran = 0
    for block in document:
        if PROGRAM.match(block.parsed):  # runs as a program, see below
            continue
        block.evaluate()
        ran += 1
    assert ran > 0


def test_the_pages_that_must_have_blocks_have_some() -> None:
    """The first page and those on building, resuming, checkpoints and errors show what they say."""
    names = ("building", "checkpoint", "errors", "events", "functional", "migration", "resume")
    wanted = {"README.md", *(f"docs/{name}.md" for name in names)}
    assert wanted <= {name_of(page) for page in WITH_BLOCKS}


def started(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the first page in its folder, with warnings as errors."""
    command = [sys.executable, "-W", "error", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def run_programs(page: Path, folder: Path) -> list[str]:
    """Save the programs of a page and run each in a process of its own; they print what the page shows."""
    text = page.read_text(encoding="utf-8")
    programs = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    shown = dict(re.findall(r"^```console\n\$ python (\w+\.py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert list(programs) == list(shown)
    for name, source in programs.items():
        (folder / name).write_text(source, encoding="utf-8")
    for name, said in shown.items():
        done = started(name, folder)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", said)
    return list(programs)


def test_the_tutorial_on_functions_runs_as_two_programs(tmp_path: Path) -> None:
    """The second answers what the first has asked, and the step that had run does not run again."""
    assert run_programs(TUTORIAL, tmp_path) == ["refunds.py", "answer.py"]


def test_the_first_page_runs_as_three_programs(tmp_path: Path) -> None:
    """Saved under the names that they begin with, its blocks print what the page shows, each in its own process."""
    programs = run_programs(FIRST_PAGE, tmp_path)
    assert programs == ["claims.py", "later.py", "function.py"]

    again = started("claims.py", tmp_path)
    assert again.returncode == 1
    assert "RunExistsError: run 'inbox-7' exists already" in again.stderr
    there = {path.name for path in tmp_path.iterdir()} - {"__pycache__", *programs}
    assert there == {"runs.db", "runs.db.owners"}
