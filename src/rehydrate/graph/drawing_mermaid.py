"""A workflow as a Mermaid flowchart, with a subgraph for each box.

Everything in a label that Mermaid, Markdown or HTML could read as its own is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rehydrate.graph.drawing_boxes import Arrow, Box, Node, Shape, Style

_SHAPES: Final[Mapping[Shape, tuple[str, str]]] = {
    "start": ("((", "))"),
    "output": ("(((", ")))"),
    "class": ("[", "]"),
    "function": ("(", ")"),
    "join": ("{{", "}}"),
    "ask": ("[/", "/]"),
}
_LINES: Final[Mapping[Style, str]] = {"plain": "-->", "conditional": "-.->", "list": "==>", "ask": "-.-"}
#: What is no letter, digit, space or sign of our own, but for single signs between these, as in `ask-me` and `v1.2`.
_SPECIAL: Final = re.compile(r"(?<![^\W_])[-_.]|[-_.](?![^\W_])|[^\w .→…-]")


def mermaid_of(box: Box) -> str:
    """Return the source of a Mermaid flowchart."""
    return "\n".join(["flowchart TD", *_box(box, "  ")]) + "\n"


def _box(box: Box, indent: str) -> Iterator[str]:
    inner = f"{indent}  "
    yield f"{indent}subgraph {box.key}[{_quoted(box.label)}]"
    yield f"{inner}direction TB"  # else each level is turned by a quarter
    for each in box.inside:
        if isinstance(each, Box):
            yield from _box(each, inner)
        else:
            yield inner + _node(each)
    for arrow in box.arrows:
        yield inner + _arrow(arrow)
    yield f"{indent}end"


def _node(node: Node) -> str:
    opening, closing = _SHAPES[node.shape]
    return f"{node.key}{opening}{_quoted(node.label)}{closing}"


def _arrow(arrow: Arrow) -> str:
    label = f"|{_quoted(arrow.label)}|" if arrow.label else ""
    return f"{arrow.source} {_LINES[arrow.style]}{label} {arrow.target}"


def _quoted(label: str) -> str:
    return f'"{_SPECIAL.sub(lambda found: f"#{ord(found.group())};", label)}"'
