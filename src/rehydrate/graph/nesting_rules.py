"""What `build()` must find in how workflows are nested: state keys that do not fit, outputs that have no way.

Each problem names the executor and says what to do. Nothing here changes the graph or raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.graph.exactness import accepts
from rehydrate.graph.graph_spec import GraphSpec
from rehydrate.graph.sub_requests import SubWorkflowRequestMessage
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import is_response, sends, takes


def nesting_problems(spec: GraphSpec) -> Iterator[str]:
    """Yield the problems of all sub-workflows of a graph."""
    nodes = [executor for executor in spec.executors if isinstance(executor, WorkflowExecutor)]
    for executor in nodes:
        yield from _outputs(spec, executor)
        yield from _mappings(spec, executor)
        if executor.nesting.intercepts:
            yield from _requests(spec, executor)
    if not any(executor.nesting.intercepts for executor in nodes):
        yield from _responses(spec)


def _outputs(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[str]:
    if executor.nesting.forwards == "message" and not spec.leaving.get(executor.id):
        yield (
            f'executor {executor.id!r} has forward_outputs="message" but no outgoing edge; add one, or use'
            ' forward_outputs="output"'
        )


def _requests(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[str]:
    """A request goes to a successor that handles it; a join waits for results, and a request is none."""
    for edge in spec.leaving.get(executor.id, ()):
        target = spec.by_id[edge.target]
        if not edge.fan_in and any(accepts(taken, SubWorkflowRequestMessage) for taken in takes(target)):
            return
    yield (
        f'executor {executor.id!r} has requests="intercept" but no edge leads from it to an executor that handles'
        ' SubWorkflowRequestMessage; add one, or use requests="propagate"'
    )


def _responses(spec: GraphSpec) -> Iterator[str]:
    for executor in spec.executors:
        if any(is_response(hint) for hint in sends(executor, onward=True)):
            yield (
                f"executor {executor.id!r} says that it sends SubWorkflowResponseMessage, but no sub-workflow beside it"
                ' has requests="intercept"; give one that argument, or leave the type out'
            )


def _mappings(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[str]:
    below = executor.definition.reducers
    for parent, child in executor.nesting.inputs.items():
        if _is_list(spec.reducers, parent) != _is_list(below, child):
            yield _mismatch(executor, "inputs", parent, child)
    for child, parent in executor.nesting.outputs.items():
        if _is_list(below, child) != _is_list(spec.reducers, parent):
            yield _mismatch(executor, "outputs", child, parent)


def _is_list(reducers: Mapping[str, Reducer], key: str) -> bool:
    reducer = reducers.get(key)
    return reducer is not None and reducer.name in LIST_REDUCERS


def _mismatch(executor: WorkflowExecutor, name: str, source: str, target: str) -> str:
    ways = ("the parent's", "the child's") if name == "inputs" else ("the child's", "the parent's")
    return (
        f"{name} of executor {executor.id!r} copies {ways[0]} state key {source!r} to {ways[1]} {target!r}, of which"
        " only one is a list (reducer append or extend); declare both as lists, or neither"
    )
