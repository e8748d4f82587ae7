"""Navigation: the tables of `index.md`, and of the `README.md` or `index.md` of a folder, are the site's menu.

A page is in the menu because a row of such a table links to it in its first cell; the heading above the table is the
menu's. So there is one list of pages, which reads well without the site too. Nothing here knows a page by its name.
"""

import re
from pathlib import PurePosixPath

from sphinx.application import Sphinx

LISTS = ("index", "README")
HEADING = re.compile(r"^#{1,6} (.+)$")
FIRST_CELL = re.compile(r"^\| *\[([^\]]+)\]\(([^)#\s]+)\.md\)(?: *\||$)")


def menu(text: str) -> list[tuple[str, list[str]]]:
    """Return the headings of a page with what their tables link to, as entries of a toctree."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if heading := HEADING.match(line):
            found.append((heading[1], []))
        elif cell := FIRST_CELL.match(line):
            found[-1][1].append(cell[2] if cell[1].isdecimal() else f"{cell[1]} <{cell[2]}>")  # numbers say nothing
    return [(heading, entries) for heading, entries in found if entries]


def add_menu(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add what a list of pages links to, as toctrees that are not shown on the page itself."""
    if PurePosixPath(docname).name not in LISTS:
        return
    for heading, entries in menu(source[0]):
        listed = "\n".join(entries)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{listed}\n```\n"


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("source-read", add_menu)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
