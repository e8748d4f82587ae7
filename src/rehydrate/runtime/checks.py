"""Checks of a call against a definition and of a checkpoint against it, before anything is claimed.

Each raises its own error; none of them changes or loads anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import cast

from rehydrate.engine import reading
from rehydrate.engine.run import Run
from rehydrate.errors import (
    CheckpointCorruptError,
    ForeignCheckpointError,
    GraphChangedError,
    MessageTypeError,
    MissingResourceError,
    ResourceTypeError,
)
from rehydrate.graph.definition import Definition
from rehydrate.graph.hints import describe, has_runtime_check, is_protocol, matches
from rehydrate.graph.signature import differences
from rehydrate.ids import scope_of, slot
from rehydrate.model.records import InboxRecord, JoinRecord, RequestRecord, RunRecord, SignatureRecord, StepRecord

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


def check_definition(graph: Definition, checkpoint: WorkflowCheckpoint) -> None:
    """Raise where a checkpoint is another workflow's, or was made with another graph, or lacks a part of its tree."""
    run = checkpoint.records
    if checkpoint.workflow_name != graph.name:
        raise ForeignCheckpointError(
            checkpoint.checkpoint_id, f"workflow {checkpoint.workflow_name!r}", f"workflow {graph.name!r}"
        )
    record = run.get("", "run", "")
    signature = run.get("", "signature", "")
    if not isinstance(record, RunRecord) or not isinstance(signature, SignatureRecord):
        raise CheckpointCorruptError(f"checkpoint {checkpoint.checkpoint_id!r}", "it has no run or signature record")
    if record.signature != hashlib.sha256(graph.signature.encode()).hexdigest():
        changed = differences(signature.text, graph.signature)
        raise GraphChangedError(graph.name, (*changed, *homeless(run, graph)))
    missing = missing_scopes(run, graph)
    if missing and not record.legacy:
        raise CheckpointCorruptError(
            f"checkpoint {checkpoint.checkpoint_id!r}", f"the inner state of {', '.join(missing)} is missing"
        )


def homeless(run: Run, graph: Definition) -> tuple[str, ...]:
    """Return the waiting work (messages, requests) whose executor is not in the graph, one line each."""
    found: list[str] = []
    for path in reading.scopes(run):
        here = _graph_at(graph, path)
        parent, segment = slot(path)
        step = run.get(parent, "step", segment)
        where = f"{path}/" if path else ""
        if isinstance(step, StepRecord):
            found += [
                f"{where}{delivery.executor}: a message waits for it and it is not there"
                for delivery in step.deliveries
                if here is None or delivery.executor not in here.executors
            ]
        for record in run.table(path, "request").values():
            executor = cast("RequestRecord", record).executor
            if here is None or executor not in here.executors:
                found.append(f"{where}{executor}: an open request waits for it and it is not there")
        found += _homeless_held(run, path, here)
    return tuple(dict.fromkeys(found))


def _homeless_held(run: Run, path: str, here: Definition | None) -> list[str]:
    """Return what joins hold and what came from outside for executors that are not there."""
    where = f"{path}/" if path else ""
    found: list[str] = []
    for record in run.table(path, "join").values():
        held = cast("JoinRecord", record)
        if here is None or held.join not in here.joins:
            found.append(f"{where}{held.join}: a message from {held.source!r} waits in its join and it is not there")
    for record in run.table(path, "inbox").values():
        waiting = cast("InboxRecord", record)
        if here is None or waiting.executor not in here.executors:
            found.append(f"{where}{waiting.executor}: something from outside waits for it and it is not there")
    return found


def _graph_at(graph: Definition, path: str) -> Definition | None:
    for segment in path.split("/") if path else ():
        child = graph.children.get(scope_of(segment)[0])
        if child is None:
            return None
        graph = child
    return graph


def missing_scopes(run: Run, graph: Definition) -> list[str]:
    """Return the sub-workflows that an unfinished superstep started and whose scope is not in the records."""
    found: list[str] = []
    for path in reading.unfinished_scopes(run):
        if run.table(path, "limit"):
            continue
        here = _graph_at(graph, path)
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
