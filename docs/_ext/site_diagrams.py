"""Diagrams: pages draw states in Mermaid, which hosting sites draw; the site, which loads no program, has a table."""

import re

from sphinx.application import Sphinx

DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"(\S+) --> (\S+): (.+)")


def as_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put a table of the changes in the place of each diagram of states."""
    source[0] = DIAGRAM.sub(lambda diagram: table(diagram[1]), source[0])


def table(changes: str) -> str:
    """The lines of a diagram of states as a table in Markdown."""
    rows = [(before, after, by) for before, after, by in CHANGE.findall(changes)]
    lines = [f"| {'-' if before == '[*]' else f'`{before}`'} | `{after}` | {by} |" for before, after, by in rows]
    return "\n".join(["| from | to | by |", "|---|---|---|", *lines])


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("source-read", as_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
