"""Strict readers of what drawings may consist of: every line has to be one of a few forms.

What they give back says what a renderer would show; a label is decoded as Mermaid with HTML, or Graphviz, decodes it.
"""

import html
import re
from dataclasses import dataclass, field

_SMALL = '<small>(?P<rules>[^"\n]+)</small>'
_MERMAID = {
    "box": re.compile(r'subgraph (?P<key>\w+)\["(?P<label>[^"\n]*)"\]'),
    "end": re.compile(r"end"),
    "direction": re.compile(r"direction TB"),
    "rules": re.compile(rf'(?P<key>\w+)rules\["{_SMALL}"\]'),
    "style": re.compile(r"style \w+rules fill:none,stroke:none"),
    "place": re.compile(r"\w+in ~~~ \w+rules"),
    "node": re.compile(
        r"(?P<key>\w+)(?P<open>\(\(\(|\(\(|\(|\[/|\[|\{\{)"
        rf'"(?P<label>[^"<\n]*)(?:<br/>{_SMALL})?"(?P<close>\)\)\)|\)\)|\)|/\]|\]|\}}\}})'
    ),
    "arrow": re.compile(r'(?P<source>\w+) (?P<line>-->|-\.->|==>|-\.-)(?:\|"(?P<label>[^"\n]+)"\|)? (?P<target>\w+)'),
}
_CLOSING = {"(((": ")))", "((": "))", "(": ")", "[/": "/]", "[": "]", "{{": "}}"}
#: What may stand in a label as it is: a sign alone means nothing to Mermaid, Markdown or HTML.
_HARMLESS = re.compile(r"(?:#\d+;|\w|(?<=\w)[-.](?=\w)| |[→…])*")
#: What Mermaid makes of a label when it has decoded it.
_READ_LATE = re.compile(r"\$\$.*?\$\$|fa[bklrs]?:fa-")
_DOT_TEXT = r'"(?P<label>(?:[^"\\\n]|\\.)*)"'
_DOT_LABEL = rf'(?:{_DOT_TEXT}|<(?P<first>[^<\n]*)<br/><font point-size="10">(?P<rules>[^\n]+)</font>>)'
_DOT = {
    "box": re.compile(r"subgraph cluster_(?P<key>\w+) \{"),
    "title": re.compile(f"label={_DOT_LABEL}"),
    "end": re.compile(r"\}"),
    "node": re.compile(rf'(?P<key>\w+) \[(?:label="", tooltip|label)={_DOT_LABEL}, (?P<open>shape=[\w=,. ]+)\]'),
    "arrow": re.compile(
        rf"(?P<source>\w+) -> (?P<target>\w+)(?: \[(?:label={_DOT_TEXT})?(?:, )?(?P<line>[\w=, ]*)\])?"
    ),
}
_RESERVED = {"end", "graph", "subgraph", "node", "edge", "digraph", "strict", "default", "class", "click", "style"}


@dataclass
class Seen:
    """What a drawing shows: boxes, nodes and arrows in their order; `within` has the box of each box and node, `rules`
    the lines of small print of those that have some."""

    boxes: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, str] = field(default_factory=dict)
    arrows: list[tuple[str, str, str, str]] = field(default_factory=list)
    within: dict[str, str] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)

    def shown(self) -> list[tuple[str, str, str]]:
        """The arrows with the labels of their ends."""
        return [(self.nodes[source], self.nodes[target], label) for source, target, _, label in self.arrows]


def read_mermaid(text: str) -> Seen:
    """Read a Mermaid flowchart of our making; raises `AssertionError` for any line of another form."""
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    return _read(lines, _MERMAID, _decoded_mermaid)


def read_dot(text: str) -> Seen:
    """Read a DOT graph of our making; raises `AssertionError` for any line of another form."""
    first, *lines, last = text.splitlines()
    assert (first, last) == ("digraph {", "}")
    assert [line.split()[0] for line in lines[:3]] == ["graph", "node", "edge"]
    return _read(lines[3:], _DOT, _decoded_dot)


def _read(lines, forms, decoded) -> Seen:
    seen = Seen()
    open_boxes: list[str] = []
    for number, line in enumerate(lines):
        kind, found = next(
            ((kind, found) for kind, form in forms.items() if (found := form.fullmatch(line.strip()))), (None, None)
        )
        assert found is not None, (number, line)
        given = found.groupdict()
        label = decoded(given["label"]) if given.get("label") is not None else ""
        if given.get("first") is not None:
            label = _decoded_html(given["first"])
        if given.get("rules") is not None:
            owner = open_boxes[-1] if kind in ("title", "rules") else given["key"]
            small = _decoded_html if "first" in given else decoded
            seen.rules[owner] = [small(line) for line in given["rules"].split("<br/>")]
        if kind in ("box", "node"):
            key = given["key"]
            assert key not in seen.within
            assert key not in _RESERVED
            seen.within[key] = open_boxes[-1] if open_boxes else ""
        if kind == "box":
            seen.boxes[key] = label
            open_boxes.append(key)
        elif kind == "title":
            seen.boxes[open_boxes[-1]] = label
        elif kind == "node":
            assert given.get("close") in (None, _CLOSING.get(given["open"]))
            seen.nodes[key] = label
            seen.shapes[key] = given["open"]
        elif kind == "arrow":
            seen.arrows.append((given["source"], given["target"], given["line"] or "", label))
        elif kind == "end":
            open_boxes.pop()
    assert open_boxes == []
    for source, target, _, _ in seen.arrows:
        assert {source, target} <= seen.nodes.keys()
    return seen


def _decoded_mermaid(label: str) -> str:
    assert _HARMLESS.fullmatch(label), label
    decoded = html.unescape(re.sub(r"#(\d+);", r"&#\1;", label))
    assert _READ_LATE.search(decoded) is None, label
    return decoded.replace("\u200b", "")


def _decoded_dot(label: str) -> str:
    assert re.fullmatch(r'(?:[^\\]|\\[\\"])*', label), label
    assert re.search(r"&(?!amp;)", label) is None, label
    return html.unescape(re.sub(r'\\([\\"])', r"\1", label))


def _decoded_html(text: str) -> str:
    assert re.fullmatch(r"(?:[^<>&\\]|&(?:amp|lt|gt|quot|#x27);|\\\\)*", text), text
    return html.unescape(text.replace("\\\\", "\\"))
