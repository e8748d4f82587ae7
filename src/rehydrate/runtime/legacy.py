"""Records for runs that were made elsewhere: open questions, state and messages on their way, as far as they are known.

Only what `WorkflowCheckpoint.legacy` needs. Such a run is restored as far as it goes, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rehydrate.codecs import type_name
from rehydrate.engine.requests import name_of, pack_requests
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import part_name
from rehydrate.errors import CaptureError, EffectError
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.ids import ABOVE_ROOT, check_key, child_path, slot
from rehydrate.model.records import (
    CounterRecord,
    InputRecord,
    InstanceRecord,
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

from .legacy_messages import Placing
from .program import Program


@dataclass(frozen=True)
class LegacyRequest:
    """A question that was open: the executor that asked, what it asked, and the type of the answer."""

    executor_id: str
    data: object
    response_type: object


@dataclass(frozen=True)
class LegacyMessage:
    """A message that was on its way, or that a join held.

    From an executor (`source`) it takes the edges that it takes here, or the one to `target`. Without one it came from
    outside: to `target`, else to the start executor. With `answers` it is the answer to that question.
    """

    data: object
    source: str = ""
    target: str = ""
    answers: LegacyRequest | None = None


@dataclass(frozen=True)
class ExecutionContext:
    """One execution of a sub-workflow: the executor it runs in, its open questions, and executions further down.

    `state` and `executor_states` (what save hooks gave, by executor) are what is known of the rest.
    """

    executor_id: str
    pending_requests: Sequence[LegacyRequest] = ()
    execution_contexts: Sequence[ExecutionContext] = field(default=())
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    executor_states: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, "Mapping[str, object]"])


def legacy_run(program: Program, root: ExecutionContext, messages: Sequence[LegacyMessage] = ()) -> Run:
    """Return the records of a run. Raises `CaptureError` where something has no place in the workflow."""
    graph = program.graph
    delta: dict[Key, Record | None] = {
        ("", "run", ""): RunRecord(
            program.ids.new_id(), graph.name, graph.version, program.signature_digest, legacy=True
        ),
        ("", "signature", ""): signature_record(graph.signature),
        ("", "turn", ""): TurnRecord(1, None, "legacy", 1),
    }
    _put_scope(delta, program, graph, "", (), root)
    run = Run()
    run.apply(delta_of(delta))
    if messages:
        _put_messages(run, program, messages)
    pack_requests(run, graph.requests_apart)
    return run


def _put_messages(run: Run, program: Program, messages: Sequence[LegacyMessage]) -> None:
    placing = Placing(run, program)
    answered: dict[str, int] = {}
    for message in messages:
        request = message.answers
        if request is None:
            placing.put(message)
            continue
        counter = run.get("", "counter", request.executor_id)
        before = counter.value if isinstance(counter, CounterRecord) else 0
        number = answered[request.executor_id] = answered.get(request.executor_id, before) + 1
        record = request_record(program, program.graph, "", number, request)
        placing.put_answer(message.data, record)
    placing.finish()


def _put_state(
    delta: dict[Key, Record | None], program: Program, graph: Definition, path: str, context: ExecutionContext
) -> None:
    for key, value in context.state.items():
        reducer = graph.reducers.get(check_key(key, "state key"))
        if reducer is not None and reducer.name in LIST_REDUCERS and isinstance(value, list):
            items = Items(*program.codec.seal_items(cast("list[object]", value)))
            delta[(path, "part", part_name(key, 0))] = PartRecord(items)
            delta[(path, "state", key)] = StateRecord(None, items.count, 1, 1)
        else:
            delta[(path, "state", key)] = StateRecord(program.codec.seal(value))
    for executor_id, kept in context.executor_states.items():
        executor = graph.executors.get(executor_id)
        if executor is None or not executor.has_instance_state:
            raise CaptureError(
                f"{path or 'the root'} has no executor {executor_id!r} with state of its own.",
                "Override on_checkpoint_save and on_checkpoint_restore there, or leave its state out.",
            )
        delta[(path, "instance", executor_id)] = InstanceRecord(program.codec.seal(dict(kept)))


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
    _put_state(delta, program, graph, path, context)
    for number, request in enumerate(context.pending_requests, start=1):
        record = request_record(program, graph, path, number, request)
        delta[(path, "request", name_of(record))] = record
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


def request_record(
    program: Program, graph: Definition, path: str, activation: int, request: LegacyRequest
) -> RequestRecord:
    """Return the record of an open question. Raises `CaptureError` where nobody takes an answer to it."""
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
