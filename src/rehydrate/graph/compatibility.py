"""Whether what executors say they send fits what the executors behind their edges take.

A declared type is a problem only where it shows that a message cannot be delivered. Must not look at values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.edges import Edge, FanInGroup
from rehydrate.graph.exactness import accepts
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec, edges_of
from rehydrate.graph.hints import Hint, describe
from rehydrate.graph.problems import edge_place, group_place, problem, problem_at
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
            found += _join(spec, group)
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
        wanted = "a list of " if edge.fan_in else ""
        where = edge_place(edge.source, edge.target)
        taken = _listed(takes(spec.by_id[edge.target]))
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
    delivered = list[hint] if edge.fan_in else hint
    return any(accepts(taken, delivered) for taken in takes(spec.by_id[edge.target]))


def _join(spec: GraphSpec, group: FanInGroup) -> Iterator[BuildProblem]:
    edges = edges_of(group)
    if not all(_is_known(spec, name) for name in (edges[0].target, *(edge.source for edge in edges))):
        return
    target = spec.by_id[edges[0].target]
    sent = [hint for edge in edges for hint in sends(spec.by_id[edge.source], onward=True) if _taken(spec, edge, hint)]
    if sent and not any(all(accepts(taken, list[hint]) for hint in sent) for taken in takes(target)):
        sentence = (
            f"fan-in into {target.id!r}: one handler has to take a list of {_listed(sent)}, and it has handlers for"
            f" {_listed(takes(target))}"
        )
        yield problem("join-types", group_place(group), sentence, "let one of them take them all")


def _remedy(executor: Executor) -> str:
    if isinstance(executor, WorkflowExecutor):
        return "let an executor of the workflow yield something, or remove the edges"
    return "annotate its context WorkflowContext[...], or what its function returns, or remove the edges"


def _listed(hints: Sequence[Hint]) -> str:
    return " | ".join(sorted({describe(hint) for hint in hints}))
