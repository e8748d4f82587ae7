"""A graph as a signature's text tells of it: what a checkpoint was made with, when that code is gone.

Reads the text that `signature.py` writes and numbers the edges as `assembly.py` does, so that numbers in records can be
understood. It knows no classes and no code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rehydrate.graph.assembly import numbered_groups, order_from
from rehydrate.graph.edges import (
    DirectGroup,
    Edge,
    EdgeGroup,
    FanInGroup,
    FanOutGroup,
    MapGroup,
    MultiSelectionGroup,
    SwitchGroup,
)
from rehydrate.graph.graph_spec import edges_of, unnumbered
from rehydrate.graph.maps import with_ends

_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")


class RecordedEdge(NamedTuple):
    """One edge as records mean it: two edges between the same executors are one for what is on its way."""

    source: str
    target: str
    fan_in: bool = False
    #: Of a map edge, the end of the map.
    into: str | None = None
    #: It leads from what works for a map's items to the map's end.
    gathers: bool = False


@dataclass
class RecordedGraph:
    """One workflow of the tree. `edges` are in the order of their numbers; `lines` are those of this level alone.

    A migration renames in it what it renames in the records, so that the two stay together.
    """

    name: str
    version: int
    start: str
    kinds: dict[str, str]
    children: dict[str, RecordedGraph]
    edges: list[RecordedEdge]
    lines: frozenset[str] = field(default=frozenset())
    #: How nodes with a workflow are nested, where that is not the default: "isolation shared" and so on, by id.
    nesting: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def forwards(self, executor: str) -> bool:
        """Tell whether what a sub-workflow yields becomes messages: along outgoing edges, unless told otherwise."""
        if "forwards output" in self.nesting.get(executor, ()):
            return False
        return any(edge.source == executor for edge in self.edges)

    def intercepts(self, executor: str) -> bool:
        """Tell whether this level answers the requests of a sub-workflow."""
        return "requests intercept" in self.nesting.get(executor, ())

    def shares(self, executor: str) -> bool:
        """Tell whether all messages of a sub-workflow's node go to one scope."""
        return "isolation shared" in self.nesting.get(executor, ())


def recorded_edge(edge: Edge) -> RecordedEdge:
    """Return an edge of a definition as records mean it."""
    return RecordedEdge(edge.source, edge.target, edge.fan_in, edge.into, edge.gathers)


def recorded_graph(text: str) -> RecordedGraph:
    """Return the graph of a signature's text. Raises `ValueError` for a text of another form."""
    own: list[str] = []
    below: dict[str, list[str]] = {}
    for line in text.split("\n"):
        subject, separator, _ = line.partition(": ")
        head, slash, _ = subject.partition("/")
        if not separator:
            raise ValueError(f"a signature has the line {line!r:.80}")
        if slash and not subject.startswith("("):
            below.setdefault(_told(head), []).append(line[len(head) + 1 :])
        else:
            own.append(line)
    graph = _level(own)
    graph.children.update({name: recorded_graph("\n".join(lines)) for name, lines in below.items()})
    return graph


def _told(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


def _level(lines: list[str]) -> RecordedGraph:
    facts: dict[str, str] = {}
    kinds: dict[str, str] = {}
    nesting: dict[str, frozenset[str]] = {}
    edges: list[tuple[str, str, dict[str, str]]] = []
    for line in lines:
        subject, _, rest = line.partition(": ")
        told = dict(_fact(fact) for fact in rest.split("; "))
        if subject == "(workflow)":
            facts = told
        elif " -> " in subject and "kind" in told and told["kind"] not in {"workflow", "function", "class"}:
            source, _, target = subject.partition(" -> ")
            edges.append((_told(source), _told(target), told))
        elif not subject.startswith("(state "):
            kinds[_told(subject)] = told["kind"]
            if told["kind"] == "workflow":
                nesting[_told(subject)] = frozenset(rest.split("; ")[1:])
    if not facts:
        raise ValueError("a signature does not name its workflow")
    start = _told(facts["start"])
    groups = with_ends(_groups(edges))
    known = set(kinds)
    leaving: dict[str, list[Edge]] = {}
    for group in groups:
        for edge in edges_of(group):
            leaving.setdefault(edge.source, []).append(edge)
    numbered = [
        edge for group in numbered_groups(groups, order_from(start, leaving, known)) for edge in edges_of(group)
    ]
    return RecordedGraph(
        name=_told(facts["name"]),
        version=int(facts["version"]),
        start=start,
        kinds=kinds,
        children={},
        edges=[recorded_edge(edge) for edge in numbered],
        lines=frozenset(lines),
        nesting=nesting,
    )


def _fact(text: str) -> tuple[str, str]:
    for label in ("condition name", "selection name"):
        if text.startswith(label + " "):
            return label, text[len(label) + 1 :]
    label, _, value = text.partition(" ")
    return label, value


def _groups(edges: list[tuple[str, str, dict[str, str]]]) -> list[EdgeGroup]:
    """Put edges together that are one group; within a source and kind groups come in the order of their numbers."""
    groups: list[EdgeGroup] = []
    joined: dict[tuple[str, str, int], list[tuple[int, str, str, str]]] = {}
    for source, target, told in edges:
        kind = told["kind"]
        if kind == "edge":
            groups.append(DirectGroup(unnumbered(source, target), None, _name(told)))
            continue
        if kind == "map":
            edge = replace(unnumbered(source, target), into=_told(told["into"]))
            groups.append(MapGroup(edge))
            continue
        one = target if kind == "join" else source
        place = told.get("case", told.get("place", "0"))
        number = len(edges) if place == "default" else int(place)
        name = _name(told) or ""
        joined.setdefault((kind, one, int(told.get("group", "1"))), []).append((number, source, target, name))
    for (kind, _, _), members in sorted(joined.items()):
        groups.append(_group(kind, sorted(members)))
    return groups


def _group(kind: str, members: list[tuple[int, str, str, str]]) -> EdgeGroup:
    ends = tuple(unnumbered(source, target, fan_in=kind == "join") for _, source, target, _ in members)
    names = tuple(name or None for *_, name in members)
    if kind == "fan-out":
        return FanOutGroup(ends)
    if kind == "join":
        return FanInGroup(ends)
    if kind == "selection":
        return MultiSelectionGroup(ends, _never_asked, names[0])
    if kind == "switch":
        return SwitchGroup((_never_asked_one,) * (len(ends) - 1), ends, names[:-1])
    raise ValueError(f"a signature has an edge of kind {kind!r}")


def _name(told: dict[str, str]) -> str | None:
    name = told.get("condition name", told.get("selection name"))
    return None if name is None or name == "(none)" else _told(name)


def _never_asked(_message: object, _ids: list[str]) -> list[str]:
    raise NotImplementedError


def _never_asked_one(_message: object) -> bool:
    raise NotImplementedError
