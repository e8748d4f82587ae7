"""A workflow as a DOT graph for Graphviz, with a cluster for each box.

Labels are quoted, or HTML-like where a small line follows; what Graphviz would read as its own is escaped in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from rehydrate.graph.drawing_boxes import Arrow, Box, Node, Shape, Style, Syntax, lines_of

_SHAPES: Final[Mapping[Shape, str]] = {
    "start": "shape=circle, width=0.15, style=filled, fillcolor=black",
    "output": "shape=doublecircle, width=0.1, style=filled, fillcolor=black",
    "class": "shape=box",
    "function": "shape=box, style=rounded",
    "join": "shape=hexagon",
    "ask": "shape=note, style=dashed",
}
_STYLES: Final[Mapping[Style, str]] = {
    "plain": "",
    "conditional": "style=dashed",
    "list": "style=bold",
    "ask": "style=dotted, dir=none",
    "return": "style=dotted, constraint=false",
}


def dot_of(box: Box) -> str:
    """Return the source of a DOT graph."""
    lines = [
        "digraph {",
        '  graph [fontname="sans-serif"]',
        '  node [fontname="sans-serif"]',
        '  edge [fontname="sans-serif", fontsize=11]',
        *lines_of(box, Syntax(_opening, _node, _arrow, "}")),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _opening(box: Box) -> list[str]:
    return [f"subgraph cluster_{box.key} {{", f"label={_label(box.label, box.rules)}"]


def _node(node: Node) -> str:
    # The two ends of a box are small marks with a word for those who point at them or hear the drawing.
    mark = node.shape in {"start", "output"}
    words = f'label="", tooltip={_quoted(node.label)}' if mark else f"label={_label(node.label, node.rules)}"
    return f"{node.key} [{words}, {_SHAPES[node.shape]}]"


def _arrow(arrow: Arrow) -> str:
    label = f"label={_quoted(arrow.label)}" if arrow.label else ""
    attributes = ", ".join(filter(None, (label, _STYLES[arrow.style])))
    return f"{arrow.source} -> {arrow.target}{f' [{attributes}]' if attributes else ''}"


def _label(text: str, rules: Sequence[str]) -> str:
    if not rules:
        return _quoted(text)
    small = "<br/>".join(map(_as_html, rules))
    return f'<{_as_html(text)}<br/><font point-size="10">{small}</font>>'


def _quoted(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _as_html(text: str) -> str:
    # Graphviz reads escapes such as \N here, too.
    return escape(text.replace("\\", "\\\\"))
