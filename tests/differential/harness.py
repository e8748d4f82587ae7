"""The differential harness: one uninterrupted run as the reference, and the same run taken up from any checkpoint.

A replay may use nothing of the writer but the bytes of a checkpoint and the reference's facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rehydrate import CheckpointStorage, PendingRequest, Status, Workflow, WorkflowCheckpoint, WorkflowRunResult
from rehydrate.engine.invariants import check_run
from rehydrate.errors import RunFailedError
from rehydrate.model.events import RequestOpened
from rehydrate.runtime.checkpoint import restored
from rehydrate.runtime.requests import pending_requests
from tests.differential.building import build
from tests.differential.facts import (
    CallFacts,
    RunFacts,
    Told,
    call_facts,
    differences,
    event_differences,
    is_continuation_start,
    request_names,
)
from tests.differential.nodes import Weather
from tests.differential.plans import FamilyPlan
from tests.differential.script import STOPPED, Step, first_step, is_stormy, next_step


@dataclass(frozen=True)
class Calls:
    """Calls of one family's workflow on one store (or none); `chance` decides only how long handlers take."""

    family: FamilyPlan
    workflow: Workflow
    store: CheckpointStorage | None = None
    chance: int = 0

    def weather(self, number: int) -> dict[str, object]:
        """The resources of a call."""
        return {"weather": Weather(self.chance * 1000 + number, stormy=is_stormy(self.family, number))}

    async def call(self, number: int, step: Step, **options: object) -> WorkflowRunResult:
        """Make one call of the script; a run that fails gives its result too."""
        given = {**step.options, **options, "resources": self.weather(number), "checkpoint_storage": self.store}
        try:
            return await self.workflow.run(step.message, **given)
        except RunFailedError as error:
            assert isinstance(error.result, WorkflowRunResult)
            return error.result

    def reference(self, result: WorkflowRunResult) -> str | WorkflowCheckpoint:
        """How the next call names the checkpoint that it goes on from."""
        return result.checkpoint if self.store is None else result.checkpoint_id


async def reference_run(calls: Calls, run_id: str) -> RunFacts:
    """Run the script from its first call to its end, without any interruption."""
    family = calls.family
    found: list[CallFacts] = []
    ends: list[int] = []
    step: Step | None = first_step(family)
    options: dict[str, object] = {"run_id": run_id}
    while step is not None:
        result = await calls.call(len(found), step, **options)
        found.append(call_facts(result, result.events))
        ends.append(result.checkpoint.header.seq)
        options = {"checkpoint": calls.reference(result)}
        step = next_step(family, len(found), result.status, result.pending_requests)
    return RunFacts(found, ends)


async def stored_checkpoints(store: CheckpointStorage, run_id: str) -> list[WorkflowCheckpoint]:
    """Return every checkpoint of a run, oldest first, each read from its bytes."""
    found: list[WorkflowCheckpoint] = []
    for header in reversed(await store.history(run_id, limit=100_000)):
        stored = await store.load(header.checkpoint_id)
        assert stored is not None
        found.append(restored(stored.header, stored.records))
    return found


@dataclass(frozen=True)
class Replay:
    """A run taken up from one checkpoint and driven to the end, compared call by call with the reference.

    `fork`: under a run id of its own. `exact`: the checkpoint holds just what its number of events says.
    """

    calls: Calls
    facts: RunFacts
    checkpoint: WorkflowCheckpoint
    fork: str | None = None
    exact: bool = True

    async def differences(self) -> list[str]:
        """Name everything in which the replay differs from the reference; nothing where all is the same."""
        where = f"seed {self.calls.family.seed}, checkpoint {self.checkpoint.header.seq}"
        wrong = [f"invariant: {text}" for text in check_run(self.checkpoint.records)]
        try:
            wrong += await self._follow()
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
        return [f"{where}: {text}" for text in wrong]

    async def _follow(self) -> list[str]:
        number = next(index for index, end in enumerate(self.facts.ends) if self.checkpoint.header.seq <= end)
        at_end = self.checkpoint.header.seq == self.facts.ends[number]
        if at_end and self._goes_on_at_once():
            return await self._from(number + 1, self.checkpoint, self._pending())
        result = await self.calls.call(number, Step(), **self._taken_up())
        expected = self.facts.calls[number]
        found = call_facts(result, result.events)
        wrong = [f"call {number}: {text}" for text in differences(expected, found)]
        wrong += self._tail(number, expected, result, at_end=at_end)
        return wrong + await self._from(number + 1, result.checkpoint, result.pending_requests, result)

    def _goes_on_at_once(self) -> bool:
        """A call that stopped can only be followed by the next one; of the others every second one is."""
        return self.checkpoint.status in STOPPED or self.checkpoint.header.seq % 2 == 1

    def _taken_up(self) -> dict[str, object]:
        options: dict[str, object] = {"checkpoint": self.checkpoint}
        return options if self.fork is None else {**options, "fork": True, "run_id": self.fork}

    def _pending(self) -> tuple[PendingRequest, ...]:
        program = self.calls.workflow.program
        return pending_requests(self.checkpoint.records, program.graph, program.codec)

    def _tail(self, number: int, expected: CallFacts, result: WorkflowRunResult, *, at_end: bool) -> list[str]:
        """Compare what the first call told with what the reference told after the checkpoint."""
        names = set(request_names(self.checkpoint.records).values()) & {
            f"{path}" for path in _open_names(self.checkpoint)
        }
        found = call_facts(result, result.events).events
        surfaced: list[str] = []
        rest: list[Told] = []
        opened = request_names(result.checkpoint.records)
        for event, told in zip([e for e in result.events if not e.live], found, strict=True):
            name = opened.get(event.request_id) if isinstance(event, RequestOpened) else None
            if name in names:
                surfaced.append(str(name))
            elif not is_continuation_start(event):
                rest.append(told)
        wrong = []
        if sorted(surfaced) != sorted(names):
            wrong.append(f"call {number}: surfaced {sorted(surfaced)} instead of {sorted(names)}")
        if at_end:
            return wrong
        return wrong + [f"call {number}: {text}" for text in self._compare(expected.events, rest)]

    def _compare(self, expected: Sequence[Told], found: Sequence[Told]) -> list[str]:
        if self.exact:
            after = self.checkpoint.header.events
            return event_differences([event for event in expected if event.sequence > after], found)
        return []

    async def _from(
        self,
        number: int,
        checkpoint: WorkflowCheckpoint,
        requests: Sequence[PendingRequest],
        before: WorkflowRunResult | None = None,
    ) -> list[str]:
        """Make the calls of the script from a number on and compare each."""
        wrong: list[str] = []
        status = self.checkpoint.status if before is None else before.status
        options = self._taken_up() if before is None else {"checkpoint": self.calls.reference(before)}
        step = next_step(self.calls.family, number, status, requests)
        while step is not None and number < len(self.facts.calls):
            result = await self.calls.call(number, step, **options)
            expected, found = self.facts.calls[number], call_facts(result, result.events)
            wrong += [f"call {number}: {text}" for text in differences(expected, found)]
            wrong += [f"call {number}: {text}" for text in event_differences(expected.events, found.events)]
            options = {"checkpoint": self.calls.reference(result)}
            number += 1
            step = next_step(self.calls.family, number, result.status, result.pending_requests)
        if (step is None) != (number == len(self.facts.calls)):
            wrong.append(f"the run is over after {number} calls instead of {len(self.facts.calls)}")
        return wrong


def _open_names(checkpoint: WorkflowCheckpoint) -> list[str]:
    names = request_names(checkpoint.records)
    return [names[request_id] for request_id in checkpoint.pending_request_ids]


def replays(calls: Calls, facts: RunFacts, checkpoints: Sequence[WorkflowCheckpoint]) -> list[Replay]:
    """Return a replay of each checkpoint: forked where there is a store."""
    return [
        Replay(calls, facts, checkpoint, None if calls.store is None else f"again {checkpoint.header.seq}")
        for checkpoint in checkpoints
    ]


def calls_of(family: FamilyPlan, store: CheckpointStorage | None, chance: int) -> Calls:
    """Build a family anew, as a process does that knows nothing of others."""
    return Calls(family, build(family), store, chance)


def is_resting(status: Status) -> bool:
    """Tell whether a call ended with nothing left unfinished."""
    return status not in STOPPED
