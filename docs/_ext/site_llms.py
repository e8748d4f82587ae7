"""For readers that are programs: `llms.txt`, `llms-full.txt`, and every page as Markdown beside its HTML.

Pages are given as they are written. What the reference takes from the source is put in as lists of signatures with
their docstrings, because a directive says nothing to somebody who has not the source.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from site_examples import FOLDER
from site_navigation import FIRST_CELL, HEADING
from site_reference import BLOCK
from sphinx import addnodes
from sphinx.application import Sphinx

OUTSIDE = re.compile(r"\]\(\.\./((?:\.\./)*)examples/")
ROW = re.compile(r"^\| *(\[[^\]]+\]\([^)]+\)) *\| *(.*?) *\|$")
NOT_SOURCE = shutil.ignore_patterns("__pycache__")
#: A file of the checkout that the site shows in a page, without its title.
INCLUDE = re.compile(r"^```\{include\} (\S+)\n:start-after: \"(.+)\"\n```$", re.MULTILINE)
#: Why something was chosen is no help to whoever uses it, and there is much of it.
LEFT_OUT = "decisions/"


def write(app: Sphinx, error: Exception | None) -> None:
    """Write everything into the folder of the site, once it is there."""
    if error is not None or app.builder.name != "html":
        return
    pages = {name: markdown(app, name) for name in sorted(app.env.found_docs)}
    for name, text in pages.items():
        page = Path(app.outdir, f"{name}.md")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    shutil.copytree(FOLDER, Path(app.outdir, "examples"), ignore=NOT_SOURCE, dirs_exist_ok=True)
    full = "\n\n".join(pages[name].strip() for name in in_order(pages) if not name.startswith(LEFT_OUT))
    Path(app.outdir, "llms-full.txt").write_text(full + "\n", encoding="utf-8")
    Path(app.outdir, "llms.txt").write_text(overview(pages["index"]), encoding="utf-8")


def markdown(app: Sphinx, name: str) -> str:
    """A page as it is written, with the reference in words."""
    page = Path(app.env.doc2path(name))
    text = INCLUDE.sub(lambda found: included(page, *found.groups()), page.read_text(encoding="utf-8"))
    text = OUTSIDE.sub(r"](\1examples/", text)  # the examples lie beside the pages, there above them
    if not BLOCK.search(text):
        return text
    tree = app.env.get_doctree(name)
    documented = iter(
        [desc for desc in tree.findall(addnodes.desc) if not isinstance(desc.parent, addnodes.desc_content)]
    )
    return BLOCK.sub(lambda block: "\n".join(listed(documented, len(block[2].split()))), text)


def included(page: Path, file: str, title: str) -> str:
    """What a page shows of another file."""
    return (page.parent / file).read_text(encoding="utf-8").partition(f"{title}\n")[2].strip()


def listed(documented: Iterator[addnodes.desc], count: int) -> Iterator[str]:
    """The lines of the next names of a page."""
    for _ in range(count):
        yield from lines_of(next(documented), "")


def lines_of(desc: addnodes.desc, indent: str) -> Iterator[str]:
    """A name with its signature, its docstring and its members, as a list in lists."""
    for part in desc.children:
        if isinstance(part, addnodes.desc_signature):
            yield f"{indent}- `{plain(part)}`"
            continue
        for child in part.children:
            if isinstance(child, addnodes.desc):
                yield from lines_of(child, indent + "  ")
            elif isinstance(child, nodes.TextElement) and (text := plain(child, "`")):
                yield f"{indent}  {text}"


def plain(part: nodes.Element, mark: str = "") -> str:
    """The text of a signature or a paragraph in one line, with a mark around code."""
    copy = part.deepcopy()
    for name in list(copy.findall(addnodes.pending_xref_condition)):
        if name["condition"] != "resolved":
            name.parent.remove(name)
    for code in list(copy.findall(nodes.literal)):
        code.parent.replace(code, nodes.Text(f"{mark}{code.astext()}{mark}"))
    return " ".join(copy.astext().split())


def in_order(pages: dict[str, str], name: str = "index") -> Iterator[str]:
    """The names of the pages as the menu has them, each followed by those that it lists."""
    yield name
    folder = name.rpartition("/")[0]
    if name.rpartition("/")[2] in ("index", "README"):
        for line in pages[name].splitlines():
            if cell := FIRST_CELL.match(line):
                yield from in_order(pages, f"{folder}/{cell[2]}" if folder else cell[2])


def overview(index: str) -> str:
    """The list of pages: what the front page says, its tables as lists, links leading to Markdown."""
    lines = ["# rehydrate", "", "> " + index.split("\n\n")[1], "", "The whole text: [llms-full.txt](llms-full.txt)."]
    for line in index.splitlines():
        if (heading := HEADING.match(line)) and line.startswith("## "):
            lines += ["", f"## {heading[1]}", ""]
        elif row := ROW.match(line):
            lines.append(f"- {row[1]}: {row[2]}")
    return "\n".join(lines) + "\n"


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
