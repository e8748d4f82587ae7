"""The commands in the page on the command line print what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from rehydrate.main import main
from tests.docs.pages import DOCS, ROOT
from tests.hosts.commands import loaded_anew

_BLOCK = re.compile(r"<!-- runs -->\n```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python\n# (claims\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"[0-9a-f]{32}")


def commands() -> list[tuple[str, list[str], list[str]]]:
    """Each command with its lines on standard output and, behind `! `, on standard error."""
    found: list[tuple[str, list[str], list[str]]] = []
    for block in _BLOCK.findall((DOCS / "cli.md").read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], [], []))
            elif line.startswith("! "):
                found[-1][2].append(line[2:])
            else:
                found[-1][1].append(line)
    return found


def program(page: Path) -> tuple[str, str]:
    """The name and the text of the program that a page has the reader save."""
    name, text = _PROGRAM.search(page.read_text(encoding="utf-8")).groups()
    return name, text


def test_the_page_shows_the_program_of_the_first_page() -> None:
    """Whoever reads the site, which has not the first page of the checkout, finds the same program here."""
    assert program(DOCS / "cli.md") == program(ROOT / "README.md")


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One after the other in one folder, with the `claims.py` of the page; ids are other ones each time."""
    monkeypatch.chdir(tmp_path)
    name, text = program(DOCS / "cli.md")
    Path(name).write_text(text, encoding="utf-8")
    real: dict[str, str] = {}

    def as_on_the_page(text: str, shown: str) -> str:
        for on_page, found in zip(_ID.findall(shown), _ID.findall(text), strict=False):
            real.setdefault(on_page, found)
        for on_page, found in real.items():
            text = text.replace(found, on_page)
        return text

    for command, out, err in commands():
        words = shlex.split(_ID.sub(lambda match: real[match.group()], command))
        assert words[0] == "rehydrate"
        capfd.readouterr()
        with loaded_anew():
            main(words[1:])
        printed, told = capfd.readouterr()
        assert as_on_the_page(printed, "\n".join(out)).splitlines() == out, command
        assert [line for line in as_on_the_page(told, "").splitlines() if not line.startswith("    ")] == err, command
    assert len(real) == 4
