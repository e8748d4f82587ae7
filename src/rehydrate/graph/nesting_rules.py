"""What `build()` must find in how workflows are nested: state keys that do not fit, outputs that have no way.

Each problem names the executor and says what to do. Nothing here changes the graph or raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.graph.graph_spec import GraphSpec
from rehydrate.graph.sub_workflow import WorkflowExecutor


def nesting_problems(spec: GraphSpec) -> Iterator[str]:
    """Yield the problems of all sub-workflows of a graph."""
    for executor in spec.executors:
        if isinstance(executor, WorkflowExecutor):
            yield from _outputs(spec, executor)
            yield from _mappings(spec, executor)


def _outputs(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[str]:
    if executor.nesting.forwards == "message" and not spec.leaving.get(executor.id):
        yield (
            f'executor {executor.id!r} has forward_outputs="message" but no outgoing edge; add one, or use'
            ' forward_outputs="output"'
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
