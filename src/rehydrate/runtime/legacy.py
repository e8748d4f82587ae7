"""Records for runs that were made elsewhere: open questions, state and messages on their way, as far as they are known.

Only what `WorkflowCheckpoint.legacy` needs. Such a run is restored as far as it goes, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rehydrate.engine.requests import name_of, pack_requests
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import part_name
from rehydrate.errors import CaptureError
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.ids import check_key, child_path, slot
from rehydrate.model.records import (
    CounterRecord,
    InputRecord,
    InstanceRecord,
    Key,
    PartRecord,
    Record,
    RunRecord,
    ScopeRecord,
    StateRecord,
    TurnRecord,
)
from rehydrate.model.sealed import Items
from rehydrate.model.signatures import signature_record

from .legacy_messages import ONE_INPUT, LegacyMessage, LegacyRequest, Placing, go_on, request_record
from .program import Program


@dataclass(frozen=True)
class ExecutionContext:
    """One execution of a sub-workflow: the executor it runs in, its open questions, and executions further down.

    `state` and `executor_states` (what save hooks gave, by executor) are what is known of the rest; `messages` were on
    their way in it, or held by its joins.
    """

    executor_id: str
    pending_requests: Sequence[LegacyRequest] = ()
    execution_contexts: Sequence[ExecutionContext] = field(default=())
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    executor_states: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, "Mapping[str, object]"])
    messages: Sequence[LegacyMessage] = ()


def legacy_run(program: Program, root: ExecutionContext) -> Run:
    """Return the records of a run. Raises `CaptureError` where something has no place in the workflow."""
    graph = program.graph
    scopes = _Scopes(program)
    scopes.put(graph, "", root)
    delta: dict[Key, Record | None] = {
        ("", "run", ""): RunRecord(
            program.ids.new_id(), graph.name, graph.version, program.signature_digest, legacy=True
        ),
        ("", "signature", ""): signature_record(graph.signature),
        ("", "turn", ""): TurnRecord(1, None, "legacy", 1),
        **scopes.delta,
    }
    run = Run()
    run.apply(delta_of(delta))
    for path, (definition, messages) in scopes.messages.items():
        placing = Placing(run, program, path, definition)
        for message in messages:
            placing.put(message)
        placing.finish()
    go_on(run, program, scopes.messages)
    pack_requests(run, graph.requests_apart)
    return run


class _Scopes:
    """The records of scopes at rest, and the messages that are to be put into them, by path."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.delta: dict[Key, Record | None] = {}
        self.messages: dict[str, tuple[Definition, Sequence[LegacyMessage]]] = {}

    def put(self, graph: Definition, path: str, context: ExecutionContext, *, shared: bool = False) -> None:
        """Put a scope and all below it."""
        parent, segment = slot(path)
        trail = () if shared or not path else ONE_INPUT
        self.delta[parent, "scope", segment] = ScopeRecord(trail, inputs=1, superstep=1, allowance=1, used=1)
        if shared:
            self.delta[path, "input", "1"] = InputRecord(ONE_INPUT)
        if context.messages:
            self.messages[path] = (graph, context.messages)
        self._put_state(graph, path, context)
        for number, request in enumerate(context.pending_requests, start=1):
            record = request_record(self._program, graph, path, number, request)
            self.delta[path, "request", name_of(record)] = record
            self.delta[path, "counter", request.executor_id] = CounterRecord(number)
        counts: dict[str, int] = {}
        for inner in context.execution_contexts:
            name = inner.executor_id
            child = graph.children.get(name)
            if child is None:
                raise CaptureError(
                    f"{path or 'the root'} has no sub-workflow {name!r}.", "Name a WorkflowExecutor's id."
                )
            counts[name] = number = counts.get(name, 0) + 1
            below = child_path(path, name, number)
            is_shared = graph.nesting[name].shared
            if is_shared and number > 1:
                text = f"{below} is a second execution of a shared sub-workflow."
                raise CaptureError(text, "Name one execution of it.")
            self.put(child, below, inner, shared=is_shared)
        for name, number in counts.items():
            self.delta[path, "counter", name] = CounterRecord(number)

    def _put_state(self, graph: Definition, path: str, context: ExecutionContext) -> None:
        codec = self._program.codec
        for key, value in context.state.items():
            reducer = graph.reducers.get(check_key(key, "state key"))
            if reducer is not None and reducer.name in LIST_REDUCERS and isinstance(value, list):
                items = Items(*codec.seal_items(cast("list[object]", value)))
                self.delta[path, "part", part_name(key, 0)] = PartRecord(items)
                self.delta[path, "state", key] = StateRecord(None, items.count, 1, 1)
            else:
                self.delta[path, "state", key] = StateRecord(codec.seal(value))
        for executor_id, kept in context.executor_states.items():
            executor = graph.executors.get(executor_id)
            if executor is None or not executor.has_instance_state:
                raise CaptureError(
                    f"{path or 'the root'} has no executor {executor_id!r} with state of its own.",
                    "Override on_checkpoint_save and on_checkpoint_restore there, or leave its state out.",
                )
            self.delta[path, "instance", executor_id] = InstanceRecord(codec.seal(dict(kept)))
