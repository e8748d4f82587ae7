"""Whether what executors say they send fits what the executors behind their edges take.

A declared type is a problem only where it shows that a message cannot be delivered. Must not look at values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import Edge, FanInGroup
from rehydrate.graph.exactness import accepts, covers
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec, edges_of
from rehydrate.graph.hints import Hint, describe, is_anything, members, shape
from rehydrate.graph.problems import edge_place, problem, problem_at
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import sends, takes


def type_problems(spec: GraphSpec) -> list[BuildProblem]:
    """Return the mismatches between declared types; nothing is said of executors that are a problem already."""
    found: list[BuildProblem] = []
    for executor in spec.executors:
        edges = spec.leaving.get(executor.id, ())
        if _is_sound(executor):
            found += _with_edges(spec, executor, edges) if edges else _without_edges(executor)
    for group in spec.groups:
        if isinstance(group, FanInGroup):
            found += _one_list(spec, "fan-in into", edges_of(group))
    ends: dict[str, list[Edge]] = {}
    for edge in (edge for edges in spec.leaving.values() for edge in edges if edge.gathers):
        ends.setdefault(edge.target, []).append(edge)
    for edges in ends.values():
        found += _one_list(spec, "map into", edges)
    return found


def _is_known(spec: GraphSpec, name: str) -> bool:
    return name in spec.by_id and _is_sound(spec.by_id[name])


def _is_sound(executor: Executor) -> bool:
    specs = executor.handler_table.specs
    return not specs.errors and (bool(specs.handlers) or isinstance(executor, WorkflowExecutor))


def _without_edges(executor: Executor) -> Iterator[BuildProblem]:
    sent = sends(executor, onward=False)
    if sent:
        what = f"says that it sends {_listed(sent)} but has no outgoing edge"
        action = "add one, or use ctx.yield_output and WorkflowContext[Never, ...]"
        yield problem_at("sends-nowhere", f"executor {executor.id!r}", what, action)


def _with_edges(spec: GraphSpec, executor: Executor, edges: Sequence[Edge]) -> Iterator[BuildProblem]:
    sent = sends(executor, onward=True)
    place = f"executor {executor.id!r}"
    if not sent:
        yield problem_at(
            "sends-nothing", place, "has outgoing edges but says nothing of what it sends", _remedy(executor)
        )
        return
    known = [edge for edge in edges if _is_known(spec, edge.target)]
    useless = [edge for edge in known if not any(_taken(spec, edge, hint) for hint in sent)]
    for edge in useless:
        wanted = "a list of " if edge.fan_in or edge.gathers else ""
        where = edge_place(edge)
        items = "items of " if edge.into is not None else ""
        taken = f"{items}{_listed(takes(spec.by_id[edge.target]))}"
        sentence = f"{where}: {edge.source!r} sends {wanted}{_listed(sent)}, {edge.target!r} takes {taken}"
        yield problem("edge-types", where, sentence, "change one of them or remove the edge")
    if len(known) < len(edges) or len(useless) == len(edges):
        return
    targets = ", ".join(dict.fromkeys(repr(edge.target) for edge in edges))
    for hint in sent:
        if not any(_taken(spec, edge, hint) for edge in edges):
            what = f"sends {describe(hint)}, which none of its targets takes ({targets})"
            action = "add a handler for it to one of them, or an edge to one that has it"
            yield problem_at("not-taken", place, what, action)


def _taken(spec: GraphSpec, edge: Edge, hint: Hint) -> bool:
    if edge.into is not None:
        delivered = _elements(hint)
    else:
        delivered = [list[hint] if edge.fan_in or edge.gathers else hint]
    return any(accepts(taken, each) for taken in takes(spec.by_id[edge.target]) for each in delivered)


def _elements(hint: Hint) -> list[Hint]:
    """Return the types of the items of lists that a hint allows; none where it allows no list."""
    found: list[Hint] = []
    for member in members(hint):
        form = shape(member)
        if is_anything(member) or (form is not None and form.origin is list and not form.arguments):
            found.append(Any)
        elif form is not None and form.origin is list and form.arguments:
            found.append(form.arguments[0])
    return found


def _one_list(spec: GraphSpec, kind: str, edges: Sequence[Edge]) -> Iterator[BuildProblem]:
    """What hands over one list needs a handler that takes a list of everything that can be in it."""
    if not all(_is_known(spec, name) for name in (edges[0].target, *(edge.source for edge in edges))):
        return
    target = spec.by_id[edges[0].target]
    sent = [hint for edge in edges for hint in sends(spec.by_id[edge.source], onward=True) if _taken(spec, edge, hint)]
    if sent and not any(all(accepts(taken, list[hint]) for hint in sent) for taken in takes(target)):
        where = f"{kind} {target.id!r}"
        sentence = (
            f"{where}: one handler has to take a list of {_listed(sent)}, and it has handlers for"
            f" {_listed(takes(target))}"
        )
        yield problem("list-types", where, sentence, "let one of them take them all")


def _remedy(executor: Executor) -> str:
    if isinstance(executor, WorkflowExecutor):
        return "let an executor of the workflow yield something, or remove the edges"
    return "annotate its context WorkflowContext[...], or what its function returns, or remove the edges"


def _listed(hints: Sequence[Hint]) -> str:
    return " | ".join(sorted({describe(hint) for hint in hints}))


def listed_for_certain(graph: Definition, edge: Edge) -> bool:
    """Tell whether a join or an end of a map takes lists of everything that the source says it sends."""
    if not (edge.fan_in or edge.gathers):
        return False
    taken = takes(graph.executors[edge.target])
    sent = sends(graph.executors[edge.source], onward=True)
    return all(any(covers(wide, list[hint]) for wide in taken) for hint in sent)
