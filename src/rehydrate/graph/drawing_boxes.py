"""A workflow as boxes, nodes and arrows with keys, for formats that place them by themselves.

A box has a node where messages come in and one where outputs leave, so that arrows never end at a box. Keys are made
from places, ids stand in labels only. Knows no format: what is written for each thing is a format's `Syntax`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rehydrate.graph.description import EdgeDescription, ExecutorDescription, WorkflowDescription
from rehydrate.graph.drawing_parts import Labels, packed, question_of, rules_of, title_of, visible

Shape: TypeAlias = Literal["start", "output", "class", "function", "join", "ask"]
Style: TypeAlias = Literal["plain", "conditional", "list", "ask", "return"]

#: Small print of this many characters is about as wide as a node.
_LONGEST_RULES: Final = 30


@dataclass(frozen=True)
class Node:
    """Something to draw by its shape; `rules` are lines that say how it is run. A label is one line; all may have any
    printable character."""

    key: str
    shape: Shape
    label: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrow:
    """A line from node to node; that of an `ask` has no head."""

    source: str
    target: str
    style: Style = "plain"
    label: str = ""


@dataclass(frozen=True)
class Box:
    """A workflow: how it is run, its nodes and boxes in canonical order, and the arrows between them.

    `inlet` is the key of the node where messages come in, `outlet` that of the one where outputs leave, if any do.
    """

    key: str
    label: str
    rules: tuple[str, ...]
    inlet: str
    outlet: str
    inside: tuple[Node | Box, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class Syntax:
    """What a format writes for a node, for an arrow, and where a box begins and ends, in lines without indent."""

    opening: Callable[[Box], Sequence[str]]
    node: Callable[[Node], str]
    arrow: Callable[[Arrow], str]
    closing: str


def lines_of(box: Box, syntax: Syntax, indent: str = "  ") -> Iterator[str]:
    """Yield the lines of a box with all in it: what is inside before the arrows, each level further in."""
    first, *others = syntax.opening(box)
    inner = f"{indent}  "
    yield indent + first
    yield from (inner + line for line in others)
    for each in box.inside:
        if isinstance(each, Box):
            yield from lines_of(each, syntax, inner)
        else:
            yield inner + syntax.node(each)
    yield from (inner + syntax.arrow(arrow) for arrow in box.arrows)
    yield indent + syntax.closing


def boxes_of(workflow: WorkflowDescription) -> Box:
    """Return the box of a workflow with all below it; a child that is used twice is two boxes."""
    return _Boxing(workflow, "n").box(title_of(workflow), (), leaves=False)


class _Boxing:
    """Makes the box of one workflow; `key` begins the keys of everything in it."""

    def __init__(self, workflow: WorkflowDescription, key: str) -> None:
        self.workflow = workflow
        self.key = key
        self.keys = {each.id: f"{key}{place}" for place, each in enumerate(workflow.executors, 1)}
        self.children = {each.id for each in workflow.executors if each.workflow}
        #: What gets lists: joins, and the ends of maps.
        self.gathering = {join.target for join in workflow.joins} | {edge.into for edge in workflow.edges}

    def box(self, label: str, rules: tuple[str, ...], *, leaves: bool) -> Box:
        outward = [each.id for each in self.workflow.executors if each.yields]
        inlet, outlet = f"{self.key}in", f"{self.key}out"
        inside = [Node(inlet, "start", "start"), *self._inside()]
        arrows = [Arrow(inlet, self._entry(self.workflow.start)), *self._arrows()]
        if outward or leaves:
            inside.append(Node(outlet, "output", "output"))
        arrows += [Arrow(self._exit(id), outlet) for id in outward]
        return Box(self.key, visible(label), rules, inlet, outlet, tuple(inside), tuple(arrows))

    def _inside(self) -> Iterator[Node | Box]:
        sources = {edge.source for edge in self.workflow.edges}
        sources.update(id for each in self.workflow.executors for id in each.calls)
        for each in self.workflow.executors:
            rules = tuple(packed(map(visible, rules_of(each, self.workflow)), _LONGEST_RULES))
            if each.workflow:
                boxing = _Boxing(each.workflow, f"{self.keys[each.id]}_")
                yield boxing.box(title_of(each.workflow, each.id), rules, leaves=each.id in sources)
            else:
                yield Node(self.keys[each.id], _shape(each, each.id in self.gathering), visible(each.id), rules)
            for place, request in enumerate(each.asks, 1):
                yield Node(f"{self.keys[each.id]}ask{place}", "ask", visible(f"asks {question_of(request)}"))

    def _arrows(self) -> Iterator[Arrow]:
        for each in self.workflow.executors:
            for place, _ in enumerate(each.asks, 1):
                yield Arrow(self.keys[each.id], f"{self.keys[each.id]}ask{place}", "ask")
            for called in each.calls:
                yield Arrow(self.keys[each.id], self._entry(called), label="calls")
                yield Arrow(self._exit(called), self.keys[each.id], "return")
        labels = Labels(self.workflow)
        for edge in self.workflow.edges:
            yield Arrow(self._exit(edge.source), self._entry(edge.target), _style(edge), visible(labels.of(edge)))

    def _entry(self, id: str) -> str:
        return f"{self.keys[id]}_in" if id in self.children else self.keys[id]

    def _exit(self, id: str) -> str:
        return f"{self.keys[id]}_out" if id in self.children else self.keys[id]


def _shape(executor: ExecutorDescription, gathers: bool) -> Shape:
    if gathers:
        return "join"
    return "class" if executor.kind == "class" else "function"


def _style(edge: EdgeDescription) -> Style:
    if edge.gathers:
        return "list"
    match edge.kind:
        case "edge":
            return "conditional" if edge.condition else "plain"
        case "fan-out":
            return "plain"
        case "switch" | "selection":
            return "conditional"
        case "join" | "map":
            return "list"
