"""How a problem of a graph is put: its code, its place, a sentence, and what to do next.

Must not judge graphs; `validation.py`, `compatibility.py` and the builder do.
"""

from __future__ import annotations

from rehydrate.errors import DefinitionError
from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.edges import Edge, EdgeGroup
from rehydrate.graph.graph_spec import edges_of, kind_of


def problem(code: str, place: str, sentence: str, action: str) -> BuildProblem:
    """Return a problem; `sentence` names the place as well."""
    return BuildProblem(f"{sentence}; {action}", code, place, action)


def problem_at(code: str, place: str, what: str, action: str) -> BuildProblem:
    """Return a problem whose sentence begins with the place: `place what; action`."""
    return problem(code, place, f"{place} {what}", action)


def problem_of_error(error: DefinitionError, place: str) -> BuildProblem:
    """Return the problem that an error tells."""
    return BuildProblem.of(error, place)


def edge_place(edge: Edge) -> str:
    """Name an edge."""
    return f"{'edge' if edge.into is None else 'map'} {edge.source!r} -> {edge.target!r}"


def group_place(group: EdgeGroup) -> str:
    """Name a group of edges by the executor on its one side."""
    edges = edges_of(group)
    kind = kind_of(group)
    if len(edges) == 1 and kind in {"edge", "map"}:
        return edge_place(edges[0])
    return f"fan-in of {edges[0].target!r}" if kind == "join" else f"{kind} of {edges[0].source!r}"
