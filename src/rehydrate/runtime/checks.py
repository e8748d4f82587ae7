"""Checks of a call against a definition and of a checkpoint against it, before anything is claimed.

Each raises its own error; none of them changes or loads anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from rehydrate.engine import reading
from rehydrate.engine.migration.homes import definition_at, homeless
from rehydrate.engine.plan import step_key
from rehydrate.engine.run import Run
from rehydrate.errors import (
    CheckpointCorruptError,
    ForeignCheckpointError,
    InconsistentRunError,
    MessageTypeError,
    MissingResourceError,
    ResourceTypeError,
)
from rehydrate.graph.definition import Definition
from rehydrate.graph.hints import describe, has_runtime_check, is_protocol, matches
from rehydrate.ids import slot
from rehydrate.model.records import RunRecord, SignatureRecord, StepRecord

from .checkpoint import WorkflowCheckpoint
from .outlets import takes


def check_message(graph: Definition, message: object) -> None:
    """Raise `MessageTypeError` where the start executor does not take this message."""
    if takes(graph, graph.start, message):
        return
    owner, start = graph, graph.start
    while start in owner.children:
        owner = owner.children[start]
        start = owner.start
    taken = tuple(describe(spec.message) for spec in owner.executors[start].handlers)
    raise MessageTypeError(graph.name, graph.start, type(message).__name__, taken)


def check_resources(graph: Definition, given: Mapping[str, object]) -> None:
    """Raise `MissingResourceError` where a declared resource was not given, at any depth."""
    missing = sorted(declared_resources(graph).keys() - given.keys())
    if missing:
        raise MissingResourceError(tuple(missing), f" of workflow {graph.name!r}, which declares them")
    for key, kind in declared_resources(graph).items():
        unknowable = is_protocol(kind) and not has_runtime_check(kind)
        if not unknowable and not matches(given[key], kind):
            raise ResourceTypeError(key, describe(kind), type(given[key]).__name__)


def declared_resources(graph: Definition) -> dict[str, type]:
    """Return the resources that a tree of definitions declares."""
    found = dict(graph.resources)
    for child in graph.children.values():
        found.update(declared_resources(child))
    return found


def check_workflow(graph: Definition, checkpoint: WorkflowCheckpoint) -> None:
    """Raise where a checkpoint is another workflow's, or does not say with what graph it was made."""
    run = checkpoint.records
    if checkpoint.workflow_name != graph.name:
        raise ForeignCheckpointError(
            checkpoint.checkpoint_id, f"workflow {checkpoint.workflow_name!r}", f"workflow {graph.name!r}"
        )
    record = run.get("", "run", "")
    if not isinstance(record, RunRecord) or not isinstance(run.get("", "signature", ""), SignatureRecord):
        raise CheckpointCorruptError(f"checkpoint {checkpoint.checkpoint_id!r}", "it has no run or signature record")


def check_tree(graph: Definition, checkpoint: WorkflowCheckpoint) -> None:
    """Raise where a checkpoint lacks a part of its tree; only a legacy one may."""
    missing = () if checkpoint.is_legacy else missing_scopes(checkpoint.records, graph)
    if missing:
        raise CheckpointCorruptError(
            f"checkpoint {checkpoint.checkpoint_id!r}", f"the inner state of {', '.join(missing)} is missing"
        )


def check_homes(graph: Definition, checkpoint: WorkflowCheckpoint) -> None:
    """Raise where something waits in a checkpoint for which its own graph has no place: nobody ever wrote that."""
    lines = (*homeless(checkpoint.records, graph), *_askers(checkpoint.records, graph))
    if lines:
        raise InconsistentRunError(tuple(f"I35: what waits has its place in the graph ({line})" for line in lines))


def _askers(run: Run, graph: Definition) -> Iterator[str]:
    """Give what has asked, or gets an answer, and cannot: it is not there, or a sub-workflow, which asks inside."""
    for path in reading.scopes(run):
        here = definition_at(graph, path)
        step: StepRecord | None = run.get(*step_key(path))
        asking = {record.executor for record in run.table(path, "request").values()}
        asking |= {group.executor for pack in run.table(path, "requests").values() for group in pack.groups}
        asking |= {record.executor for record in run.table(path, "inbox").values() if record.kind == "answer"}
        asking |= {item.executor for item in (step.deliveries if step is not None else ()) if item.kind == "answer"}
        for executor in sorted(asking):
            if here is None or executor not in here.executors or executor in here.children:
                yield f"{path or 'the root'}: {executor!r:.80} asks"


def missing_scopes(run: Run, graph: Definition) -> list[str]:
    """Return the sub-workflows that an unfinished superstep started and whose scope is not in the records."""
    found: list[str] = []
    for path in reading.unfinished_scopes(run):
        if run.table(path, "limit"):
            continue
        here = definition_at(graph, path)
        parent, segment = slot(path)
        step = cast("StepRecord", run.get(parent, "step", segment))
        for delivery in step.deliveries:
            if here is None or delivery.executor not in here.children:
                continue
            number = 1 if here.nesting[delivery.executor].shared else delivery.activation
            name = f"{delivery.executor}#{number}"
            if run.get(path, "scope", name) is None:
                found.append(f"{path}/{name}" if path else name)
    return found
