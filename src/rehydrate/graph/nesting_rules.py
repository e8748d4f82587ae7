"""What `build()` must find in how workflows are nested: state keys that do not fit, outputs and requests without a way.

Each problem names the executor and says what to do. Nothing here changes the graph or raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.graph.exactness import accepts
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec
from rehydrate.graph.problems import problem, problem_at
from rehydrate.graph.sub_requests import SubWorkflowRequestMessage
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import is_response, sends, takes


def nesting_problems(spec: GraphSpec) -> Iterator[BuildProblem]:
    """Yield the problems of all sub-workflows of a graph whose ends of edges are all known."""
    nodes = [executor for executor in spec.executors if isinstance(executor, WorkflowExecutor)]
    for executor in nodes:
        yield from _outputs(spec, executor)
        yield from _mappings(spec, executor)
        if executor.nesting.intercepts:
            yield from _requests(spec, executor)
    if not any(executor.nesting.intercepts for executor in nodes):
        yield from _responses(spec)


def _place(executor: Executor) -> str:
    return f"executor {executor.id!r}"


def _outputs(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[BuildProblem]:
    if executor.nesting.forwards == "message" and not spec.leaving.get(executor.id):
        what = 'has forward_outputs="message" but no outgoing edge'
        yield problem_at("forward-nowhere", _place(executor), what, 'add one, or use forward_outputs="output"')


def _requests(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[BuildProblem]:
    """A request goes to a successor that handles it; a join or a map waits for results, and a request is none."""
    for edge in spec.leaving.get(executor.id, ()):
        waits = edge.fan_in or edge.gathers or edge.into is not None
        if not waits and any(accepts(taken, SubWorkflowRequestMessage) for taken in takes(spec.by_id[edge.target])):
            return
    what = 'has requests="intercept" but no edge leads from it to an executor that handles SubWorkflowRequestMessage'
    yield problem_at("requests-not-taken", _place(executor), what, 'add one, or use requests="propagate"')


def _responses(spec: GraphSpec) -> Iterator[BuildProblem]:
    for executor in spec.executors:
        if any(is_response(hint) for hint in sends(executor, onward=True)):
            what = (
                'says that it sends SubWorkflowResponseMessage, but no sub-workflow beside it has requests="intercept"'
            )
            yield problem_at(
                "responses-nowhere", _place(executor), what, "give one that argument, or leave the type out"
            )


def _mappings(spec: GraphSpec, executor: WorkflowExecutor) -> Iterator[BuildProblem]:
    below = executor.definition.reducers
    for parent, child in executor.nesting.inputs.items():
        if _is_list(spec.reducers, parent) != _is_list(below, child):
            yield _mismatch(executor, "inputs", f"the parent's state key {parent!r} to the child's {child!r}")
    for child, parent in executor.nesting.outputs.items():
        if _is_list(below, child) != _is_list(spec.reducers, parent):
            yield _mismatch(executor, "outputs", f"the child's state key {child!r} to the parent's {parent!r}")


def _is_list(reducers: Mapping[str, Reducer], key: str) -> bool:
    reducer = reducers.get(key)
    return reducer is not None and reducer.name in LIST_REDUCERS


def _mismatch(executor: WorkflowExecutor, name: str, keys: str) -> BuildProblem:
    sentence = f"{name} of {_place(executor)} copies {keys}, of which only one is a list (reducer append or extend)"
    return problem("mapping-lists", _place(executor), sentence, "declare both as lists, or neither")
