"""The pages of the documentation, and what tests read from them.

Reads files only.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """The page at the root and every page of the docs, decisions included."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """A page's path below the root."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page's text without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """The targets of a page's links to other files and to headings."""
    return [target for target in _LINK.findall(prose(page)) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The names by which a page's headings are linked to."""
    return {_anchor(heading) for heading in _HEADING.findall(prose(page))}


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def rows(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cell by cell, without its head."""
    below = prose(page).split(f" {heading}\n", 1)[1]
    table: list[list[str]] = []
    for line in below.splitlines():
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]
