"""Facts of a driven run: what must be the same however often its process ended.

Ids, times, numbers of checkpoints and events are left out. Must not call anything of the user's but `repr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.result import WorkflowRunResult

from .driving import Driven


def differences(expected: Driven, found: Driven) -> list[str]:
    """Name what differs between two ways of driving a run, call by call."""
    if len(expected.results) != len(found.results):
        return [f"the uninterrupted run took {len(expected.results)} call(s), this one {len(found.results)}"]
    wrong: list[str] = []
    for number, (one, other) in enumerate(zip(expected.results, found.results, strict=True), start=1):
        wanted, had = facts(one), facts(other)
        wrong += [
            f"call {number}: {name}: {wanted.get(name, 'nothing')} uninterrupted, {had.get(name, 'nothing')} here"
            for name in [*wanted, *(name for name in had if name not in wanted)]
            if wanted.get(name) != had.get(name)
        ]
    return wrong


def facts(result: WorkflowRunResult) -> dict[str, str]:
    """Return what a call left, as texts by what they are."""
    found = {"status": result.status.value, "outputs": repr(result.outputs)}
    asked = [f"{request.path}/{request.executor_id}: {request.data!r}" for request in result.pending_requests]
    found["requests"] = repr(asked)
    found.update(_states(result.checkpoint, ""))
    return found


def _states(checkpoint: WorkflowCheckpoint, path: str) -> Iterator[tuple[str, str]]:
    """Yield the state of every scope and instance."""
    place = f" of {path}" if path else ""
    for key, value in sorted(checkpoint.state.items()):
        yield f"state {key!r}{place}", repr(value)
    for executor_id, state in sorted(checkpoint.executor_states.items()):
        below = state.get("sub_workflow_checkpoint")
        if not isinstance(below, Mapping):
            yield f"what executor {executor_id!r}{place} keeps", repr(state)
            continue
        for number, inner in cast("Mapping[int, WorkflowCheckpoint]", below).items():
            yield from _states(inner, f"{path}/{executor_id}#{number}".lstrip("/"))
