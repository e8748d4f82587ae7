"""Records for runs that were made elsewhere: open questions and state, without the inner state of sub-workflows.

Only what `WorkflowCheckpoint.legacy` needs. Such a run is restored as far as it goes, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rehydrate.codecs import type_name
from rehydrate.engine.requests import pack_requests
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import part_name
from rehydrate.errors import CaptureError, EffectError
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.ids import ABOVE_ROOT, child_path, slot
from rehydrate.model.records import (
    CounterRecord,
    InputRecord,
    Key,
    PartRecord,
    Record,
    RequestRecord,
    RunRecord,
    ScopeRecord,
    StateRecord,
    TurnRecord,
)
from rehydrate.model.sealed import Items
from rehydrate.model.signatures import signature_record

from .program import Program


@dataclass(frozen=True)
class LegacyRequest:
    """A question that was open: the executor that asked, what it asked, and the type of the answer."""

    executor_id: str
    data: object
    response_type: object


@dataclass(frozen=True)
class ExecutionContext:
    """One execution of a sub-workflow: the executor it runs in, its open questions, and executions further down."""

    executor_id: str
    pending_requests: Sequence[LegacyRequest] = ()
    execution_contexts: Sequence[ExecutionContext] = field(default=())


def legacy_run(
    program: Program,
    state: Mapping[str, object],
    pending_requests: Sequence[LegacyRequest],
    execution_contexts: Sequence[ExecutionContext],
) -> Run:
    """Return the records of a run at rest. Raises `CaptureError` where something has no place in the workflow."""
    graph = program.graph
    delta: dict[Key, Record | None] = {
        ("", "run", ""): RunRecord(
            program.ids.new_id(), graph.name, graph.version, program.signature_digest, legacy=True
        ),
        ("", "signature", ""): signature_record(graph.signature),
        ("", "turn", ""): TurnRecord(1, None, "legacy", 1),
    }
    _put_state(delta, program, state)
    _put_scope(delta, program, graph, "", (), ExecutionContext("", pending_requests, execution_contexts))
    run = Run()
    run.apply(delta_of(delta))
    pack_requests(run, graph.requests_apart)
    return run


def _put_state(delta: dict[Key, Record | None], program: Program, state: Mapping[str, object]) -> None:
    for key, value in state.items():
        reducer = program.graph.reducers.get(key)
        if reducer is not None and reducer.name in LIST_REDUCERS and isinstance(value, list):
            items = Items(*program.codec.seal_items(cast("list[object]", value)))
            delta[("", "part", part_name(key, 0))] = PartRecord(items)
            delta[("", "state", key)] = StateRecord(None, items.count, 1, 1)
        else:
            delta[("", "state", key)] = StateRecord(program.codec.seal(value))


def _put_scope(
    delta: dict[Key, Record | None],
    program: Program,
    graph: Definition,
    path: str,
    trail: tuple[int, ...],
    context: ExecutionContext,
) -> None:
    parent, segment = slot(path)
    inputs = max(1, len(context.execution_contexts)) if parent == ABOVE_ROOT else 1
    delta[(parent, "scope", segment)] = ScopeRecord(trail, inputs=inputs, superstep=1, allowance=1, used=1)
    for number, request in enumerate(context.pending_requests, start=1):
        name = f"{request.executor_id}#{number}?0"
        delta[(path, "request", name)] = _request(program, graph, path, number, request)
        delta[(path, "counter", request.executor_id)] = CounterRecord(number)
    counts: dict[str, int] = {}
    for index, inner in enumerate(context.execution_contexts, start=1):
        child = graph.children.get(inner.executor_id)
        if child is None:
            raise CaptureError(
                f"{path or 'the root'} has no sub-workflow {inner.executor_id!r}.", "Name a WorkflowExecutor's id."
            )
        counts[inner.executor_id] = number = counts.get(inner.executor_id, 0) + 1
        below = child_path(path, inner.executor_id, number)
        of_message = (index if not path else 1,)
        shared = graph.nesting[inner.executor_id].shared
        if shared and number > 1:
            raise CaptureError(f"{below} is a second execution of a shared sub-workflow.", "Name one execution of it.")
        if shared:
            delta[(below, "input", "1")] = InputRecord(of_message)
        _put_scope(delta, program, child, below, () if shared else of_message, inner)
    for executor_id, number in counts.items():
        delta[(path, "counter", executor_id)] = CounterRecord(number)


def _request(program: Program, graph: Definition, path: str, activation: int, request: LegacyRequest) -> RequestRecord:
    executor = graph.executors.get(request.executor_id)
    where = f"{path or 'the root'}"
    if executor is None:
        raise CaptureError(f"{where} has no executor {request.executor_id!r}.", "Name an executor of the workflow.")
    try:
        spec = executor.response_handler_for(request.data, request.response_type)
    except EffectError as error:
        raise CaptureError(f"nothing takes an answer to it: {error}", "Ask for what a handler answers.") from error
    sealed = program.codec.seal(request.data)
    return RequestRecord(request.executor_id, activation, 0, sealed, type_name(request.response_type), spec.name, (1,))
