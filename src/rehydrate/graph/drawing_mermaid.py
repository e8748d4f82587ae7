"""A workflow as a Mermaid flowchart, with a subgraph for each box.

Everything in a label that Mermaid, Markdown or HTML could read as its own is escaped; of HTML there are a line break
and small print.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rehydrate.graph.drawing_boxes import Arrow, Box, Node, Shape, Style, Syntax, lines_of

_SHAPES: Final[Mapping[Shape, tuple[str, str]]] = {
    "start": ("((", "))"),
    "output": ("(((", ")))"),
    "class": ("[", "]"),
    "function": ("(", ")"),
    "join": ("{{", "}}"),
    "ask": ("[/", "/]"),
}
_LINES: Final[Mapping[Style, str]] = {
    "plain": "-->",
    "conditional": "-.->",
    "list": "==>",
    "ask": "-.-",
    "return": "-.->",
}
#: What is no letter, digit, space or sign of our own, but for single signs between these, as in `ask-me` and `v1.2`.
_SPECIAL: Final = re.compile(r"(?<![^\W_])[-_.]|[-_.](?![^\W_])|[^\w .→…-]")
#: Within what Mermaid reads after it has decoded a label, as a formula or an icon: a place for a space without width.
_READ_LATE: Final = re.compile(r"(?<=\$)(?=\$)|(?<=:)(?=fa-)")


def mermaid_of(box: Box) -> str:
    """Return the source of a Mermaid flowchart."""
    return "\n".join(["flowchart TD", *lines_of(box, Syntax(_opening, _node, _arrow, "end"))]) + "\n"


def _opening(box: Box) -> list[str]:
    lines = [f"subgraph {box.key}[{_quoted(box.label)}]", "direction TB"]  # else each level is turned by a quarter
    if box.rules:
        # Mermaid leaves a title the room of one line, as wide as what is below it, so this text stands inside.
        key = f"{box.key}rules"
        lines += [f"{key}[{_quoted('', box.rules)}]", f"style {key} fill:none,stroke:none", f"{box.inlet} ~~~ {key}"]
    return lines


def _node(node: Node) -> str:
    opening, closing = _SHAPES[node.shape]
    return f"{node.key}{opening}{_quoted(node.label, node.rules)}{closing}"


def _arrow(arrow: Arrow) -> str:
    label = f"|{_quoted(arrow.label)}|" if arrow.label else ""
    return f"{arrow.source} {_LINES[arrow.style]}{label} {arrow.target}"


def _quoted(label: str, rules: Sequence[str] = ()) -> str:
    small = "<br/>".join(map(_escaped, rules))
    lines = [_escaped(label), f"<small>{small}</small>" if rules else ""]
    return f'"{"<br/>".join(filter(None, lines))}"'


def _escaped(text: str) -> str:
    parted = _READ_LATE.sub("\u200b", text)
    return _SPECIAL.sub(lambda found: f"#{ord(found.group())};", parted)
