"""A workflow as a DOT graph for Graphviz, with a cluster for each box.

Labels are quoted; what Graphviz would read as an escape or an HTML entity is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rehydrate.graph.drawing_boxes import Arrow, Box, Node, Shape, Style

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
}


def dot_of(box: Box) -> str:
    """Return the source of a DOT graph."""
    lines = [
        "digraph {",
        '  graph [fontname="sans-serif"]',
        '  node [fontname="sans-serif"]',
        '  edge [fontname="sans-serif", fontsize=11]',
        *_box(box, "  "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _box(box: Box, indent: str) -> Iterator[str]:
    inner = f"{indent}  "
    yield f"{indent}subgraph cluster_{box.key} {{"
    yield f"{inner}label={_quoted(box.label)}"
    for each in box.inside:
        if isinstance(each, Box):
            yield from _box(each, inner)
        else:
            yield inner + _node(each)
    for arrow in box.arrows:
        yield inner + _arrow(arrow)
    yield f"{indent}}}"


def _node(node: Node) -> str:
    # The two ends of a box are small marks with a word for those who point at them or hear the drawing.
    mark = node.shape in {"start", "output"}
    words = f'label="", tooltip={_quoted(node.label)}' if mark else f"label={_quoted(node.label)}"
    return f"{node.key} [{words}, {_SHAPES[node.shape]}]"


def _arrow(arrow: Arrow) -> str:
    label = f"label={_quoted(arrow.label)}" if arrow.label else ""
    attributes = ", ".join(filter(None, (label, _STYLES[arrow.style])))
    return f"{arrow.source} -> {arrow.target}{f' [{attributes}]' if attributes else ''}"


def _quoted(label: str) -> str:
    escaped = label.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
