"""A workflow as boxes, nodes and arrows with keys, for formats that place them by themselves.

A box has a node where messages come in and one where outputs leave, so that arrows never end at a box. Keys are made
from places, ids stand in labels only. Knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rehydrate.graph.description import EdgeDescription, ExecutorDescription, WorkflowDescription
from rehydrate.graph.drawing_parts import Labels, question_of, title_of, visible

Shape: TypeAlias = Literal["start", "output", "class", "function", "join", "ask"]
Style: TypeAlias = Literal["plain", "conditional", "list", "ask"]


@dataclass(frozen=True)
class Node:
    """Something to draw by its shape; labels are one line, and may have any printable character."""

    key: str
    shape: Shape
    label: str


@dataclass(frozen=True)
class Arrow:
    """A line from node to node; that of an `ask` has no head."""

    source: str
    target: str
    style: Style = "plain"
    label: str = ""


@dataclass(frozen=True)
class Box:
    """A workflow: its nodes and boxes in canonical order, and the arrows between them."""

    key: str
    label: str
    inside: tuple[Node | Box, ...]
    arrows: tuple[Arrow, ...]


def boxes_of(workflow: WorkflowDescription) -> Box:
    """Return the box of a workflow with all below it; a child that is used twice is two boxes."""
    return _Boxing(workflow, "n").box(title_of(workflow), leaves=False)


class _Boxing:
    """Makes the box of one workflow; `key` begins the keys of everything in it."""

    def __init__(self, workflow: WorkflowDescription, key: str) -> None:
        self.workflow = workflow
        self.key = key
        self.keys = {each.id: f"{key}{place}" for place, each in enumerate(workflow.executors, 1)}
        self.children = {each.id for each in workflow.executors if each.workflow}
        #: What gets lists: joins, and the ends of maps.
        self.gathering = {join.target for join in workflow.joins} | {edge.into for edge in workflow.edges}

    def box(self, label: str, *, leaves: bool) -> Box:
        outward = [each.id for each in self.workflow.executors if each.yields]
        inside = [Node(f"{self.key}in", "start", "start"), *self._inside()]
        arrows = [Arrow(f"{self.key}in", self._entry(self.workflow.start)), *self._arrows()]
        if outward or leaves:
            inside.append(Node(f"{self.key}out", "output", "output"))
        arrows += [Arrow(self._exit(id), f"{self.key}out") for id in outward]
        return Box(self.key, visible(label), tuple(inside), tuple(arrows))

    def _inside(self) -> Iterator[Node | Box]:
        sources = {edge.source for edge in self.workflow.edges}
        for each in self.workflow.executors:
            if each.workflow:
                boxing = _Boxing(each.workflow, f"{self.keys[each.id]}_")
                yield boxing.box(title_of(each.workflow, each.id), leaves=each.id in sources)
            else:
                yield Node(self.keys[each.id], _shape(each, each.id in self.gathering), visible(each.id))
            for place, request in enumerate(each.asks, 1):
                yield Node(f"{self.keys[each.id]}ask{place}", "ask", visible(f"asks {question_of(request)}"))

    def _arrows(self) -> Iterator[Arrow]:
        for each in self.workflow.executors:
            for place, _ in enumerate(each.asks, 1):
                yield Arrow(self.keys[each.id], f"{self.keys[each.id]}ask{place}", "ask")
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
    return "function" if executor.kind == "function" else "class"


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
