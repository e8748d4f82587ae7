"""Replay of a recorded run: today's code goes through the calls of an exported run, and each is to end as it did.

Each call begins at its recorded claim, which holds its input, so that what differs in one leads to nothing in the next.
Outside of the run nothing is recorded: what its handlers ask of the world is the test's to give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from rehydrate.errors import RunFailedError
from rehydrate.model.checkpoint import Stored
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import restored
from rehydrate.runtime.migrating import fitting
from rehydrate.runtime.program import Program
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.service.transfer import ExportPlace, import_run
from rehydrate.stores.memory import InMemoryCheckpointStorage

from .driving import Workflows, built
from .facts import compared, facts
from .recorded import RecordedCall, recorded_calls
from .restarting import staged_then, take_in

_WORDS: Final = ("recorded", "today")


@dataclass(frozen=True)
class Replayed:
    """What a replay has compared: how many calls of the run, and which not, with the reason."""

    run_id: str
    workflow: str
    calls: int
    passed_over: tuple[str, ...] = ()


class ReplayError(AssertionError):
    """Today's code makes something else of a recorded run; `differences` say what, by the call. Or there is nothing to
    compare, and there are none."""

    def __init__(self, run_id: str, found: Mapping[str, Sequence[str]], calls: int, passed_over: Sequence[str]) -> None:
        self.differences = {call: tuple(texts) for call, texts in found.items()}
        if not calls:
            lines = [f"no call of the recorded run {run_id!r} can be compared:", *(f"- {text}" for text in passed_over)]
            super().__init__("\n".join([*lines, "Record a run of which a call has come to its end."]))
            return
        lines = [f"{len(found)} of {calls} calls of the recorded run {run_id!r} end otherwise today:"]
        for call, texts in found.items():
            lines += [f"- {call}: {text}" for text in texts]
        lines.append("If that is meant, record the run anew: run it, and export_run(storage, run_id, place). Runs that")
        lines.append("wait in a store go on with today's code as well.")
        super().__init__("\n".join(lines))


async def replay(workflow: Workflows, place: ExportPlace, *, resources: Mapping[str, object] | None = None) -> Replayed:
    """Run the calls of an exported run again, each from its recorded input, and compare how each ends: outputs,
    requests, status, failures, and the state of every scope.

    A run of an older version is brought up by the workflow's migrations. A call that was interrupted or failed and was
    continued is one with its continuation. Raises `ReplayError`, what `import_run` raises, and what a restore raises
    where the run does not fit the workflow.
    """
    async with InMemoryCheckpointStorage() as store:
        run = await import_run(store, place)
        calls = await recorded_calls(store, run.run_id)
        found: dict[str, list[str]] = {}
        for call in calls:
            wrong = [] if call.passed_over else await _differences(built(workflow).program, store, call, resources)
            if wrong:
                found[str(call)] = wrong
    over = tuple(f"{call}: {call.passed_over}" for call in calls if call.passed_over)
    compared_calls = len(calls) - len(over)
    if found or not compared_calls:
        raise ReplayError(run.run_id, found, compared_calls, over)
    return Replayed(run.run_id, run.workflow, compared_calls, over)


async def _differences(
    program: Program, store: CheckpointStorage, call: RecordedCall, resources: Mapping[str, object] | None
) -> list[str]:
    end = await store.load(call.end.checkpoint_id)
    start = await store.load(call.start.checkpoint_id)
    assert start is not None and end is not None  # noqa: S101, PT018  (both have just been listed)
    recorded = fitting(program, restored(end))
    wanted = WorkflowRunResult(recorded, program.graph, program.codec, status=call.end.status)
    return compared(facts(wanted), facts(await _today(program, start, resources)), _WORDS)


async def _today(program: Program, start: Stored, resources: Mapping[str, object] | None) -> WorkflowRunResult:
    """Go on from a checkpoint, at its time."""
    header = start.header
    async with InMemoryCheckpointStorage() as store:
        await take_in(store, start)
        try:
            return await Runner(staged_then(program, store, start)).run(
                checkpoint=header.checkpoint_id, resources=resources
            )
        except RunFailedError as error:
            return cast("WorkflowRunResult", error.result)
