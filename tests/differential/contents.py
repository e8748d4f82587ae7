"""What checkpoints of random runs contain, in words, so that a test can say what all of them together must show."""

from __future__ import annotations

from collections import Counter

from rehydrate import WorkflowCheckpoint
from rehydrate.engine.run import Run
from rehydrate.ids import ABOVE_ROOT, depth_of, scope_of
from rehydrate.model.effects import Respond
from rehydrate.model.passes import CallRecord, PassRecord
from rehydrate.model.records import DoneRecord, OutboxRecord, StepRecord


def seen_in_records(checkpoint: WorkflowCheckpoint) -> set[str]:
    """Name what a checkpoint contains: kinds of records, and how deep; scopes side by side; attempts that failed."""
    run = checkpoint.records
    seen: set[str] = set()
    for _, record in run.records():
        match record:
            case OutboxRecord() if record.request:
                seen.add("inner requests on their way up")
            case StepRecord() if any(delivery.kind == "request" for delivery in record.deliveries):
                seen.add("inner requests delivered")
            case DoneRecord() if any(isinstance(effect, Respond) for effect in record.effects):
                seen.add("answers from inside")
            case _:
                pass
    for path, kind in run.tables:
        depth = depth_of(path) if path != ABOVE_ROOT else 0
        seen |= {kind, f"{kind} at depth {depth}"}
        if kind == "attempt":
            records = run.table(path, kind).values()
            seen |= {f"attempts that failed {record.failed} times" for record in records if record.due is not None}
        segments = [segment for segment in run.table(path, "scope") if segment]
        stepping = run.table(path, "step").keys()
        for number in Counter(scope_of(segment)[0] for segment in segments).values():
            seen |= {"overlapping scopes", f"overlapping scopes at depth {depth}"} if number > 1 else set()
        if segments and stepping and not stepping >= set(segments):
            seen.add("some scopes wait while others run")
    return seen


def seen_in_calls(run: Run) -> set[str]:
    """Name what functions remember in a run: kinds of calls, calls that failed, and passes that wait side by side."""
    seen: set[str] = set()
    waiting: list[str] = []
    for key, record in run.records():
        match record:
            case CallRecord():
                seen |= {f"call of a {record.kind}", f"{record.failed} failed"}
                seen |= {"failed call"} if record.failure else set()
            case PassRecord() if record.payload:
                waiting.append(key[0])
            case _:
                pass
    return seen | ({"two passes wait"} if len(waiting) > len(set(waiting)) else set())
