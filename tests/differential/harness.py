"""The differential harness: one uninterrupted run as the reference, and the same run taken up from any checkpoint.

A replay may use nothing of the writer but the bytes of a checkpoint and the reference's facts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import cast

from rehydrate import CheckpointStorage, PendingRequest, Status, Workflow, WorkflowCheckpoint, WorkflowRunResult
from rehydrate.codecs.checkpoints import encode_checkpoint
from rehydrate.engine.invariants import check_run
from rehydrate.errors import RunFailedError
from rehydrate.model.events import RequestOpened
from rehydrate.runtime.pending import PendingRequests
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
    tail_differences,
    told,
)
from tests.differential.nodes import Journal, Weather
from tests.differential.plans import FamilyPlan
from tests.differential.script import MOST_CALLS, STOPPED, Step, first_step, is_stormy, next_step


@dataclass(frozen=True)
class Calls:
    """Calls of one family's workflow on one store (or none); `chance` decides only how long handlers take.

    `keyed`: every call that brings something has an idempotency key. `slow`, `stubborn`, `turns`, `journal`: see
    `Weather`.
    """

    family: FamilyPlan
    workflow: Workflow
    store: CheckpointStorage | None = None
    chance: int = 0
    keyed: bool = False
    durability: str = "superstep"
    slow: bool = False
    stubborn: bool = False
    journal: Journal | None = None
    turns: Sequence[int] = (0, 0, 1, 2, 5, 9)

    def weather(self, number: int) -> dict[str, object]:
        """The resources of a call."""
        chance, stormy = self.chance * 1000 + number, is_stormy(self.family, number)
        kinds = {"slow": self.slow, "stubborn": self.stubborn, "turns": self.turns}
        return {"weather": Weather(chance, stormy=stormy, **kinds, journal=self.journal)}

    def options(self, number: int, step: Step, **options: object) -> dict[str, object]:
        """The arguments of a call."""
        given = {**step.options, **options, "resources": self.weather(number), "checkpoint_storage": self.store}
        given["durability"] = self.durability
        if self.keyed and (step.message is not None or "responses" in given):
            given["idempotency_key"] = f"call {number}"
        return given

    async def call(self, number: int, step: Step, **options: object) -> WorkflowRunResult:
        """Make one call of the script; a run that fails gives its result too."""
        return await ended(self.workflow.run(step.message, **self.options(number, step, **options)))

    def reference(self, result: WorkflowRunResult) -> str | WorkflowCheckpoint:
        """How the next call names the checkpoint that it goes on from."""
        return result.checkpoint if self.store is None else result.checkpoint_id


async def ended(work: Awaitable[WorkflowRunResult]) -> WorkflowRunResult:
    """Wait for the end of a call; a run that failed gives its result too."""
    try:
        return await work
    except RunFailedError as error:
        return cast("WorkflowRunResult", error.result)


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


def run_differences(one: RunFacts, other: RunFacts) -> list[str]:
    """Compare two runs of one script call by call."""
    wrong = [f"{len(other.calls)} calls instead of {len(one.calls)}"] if len(one.calls) != len(other.calls) else []
    for number, (expected, found) in enumerate(zip(one.calls, other.calls, strict=False)):
        different = differences(expected, found) + event_differences(expected.events, found.events)
        wrong += [f"call {number}: {text}" for text in different]
    return wrong


async def stored_checkpoints(store: CheckpointStorage, run_id: str) -> list[WorkflowCheckpoint]:
    """Return every checkpoint of a run, oldest first, each read from its bytes."""
    found: list[WorkflowCheckpoint] = []
    for header in reversed(await store.history(run_id, limit=100_000)):
        stored = await store.load(header.checkpoint_id)
        assert stored is not None
        found.append(WorkflowCheckpoint.from_bytes(encode_checkpoint(stored.header, stored.records)))
    return found


@dataclass(frozen=True)
class Replay:
    """A run taken up from one checkpoint and driven to the end, compared call by call with the reference.

    `fork`: under a run id of its own. `further`: so many calls of the script follow the first one, if it has so many.
    `captured`: in which call the checkpoint was read out of the live run; then its number of events says nothing.
    `numbered`: the events that follow are numbered on from those of the checkpoint, which is so in its own run only.
    """

    calls: Calls
    facts: RunFacts
    checkpoint: WorkflowCheckpoint
    fork: str | None = None
    further: int = MOST_CALLS
    captured: int | None = None
    numbered: bool = True

    @property
    def number(self) -> int:
        """The call that the checkpoint belongs to."""
        if self.captured is not None:
            return self.captured
        return next(index for index, end in enumerate(self.facts.ends) if self.checkpoint.header.seq <= end)

    @property
    def at_end(self) -> bool:
        """Whether that call had ended."""
        return self.checkpoint.status is not Status.RUNNING

    async def compare(self) -> list[str]:
        """Name everything in which the replay differs from the reference; nothing where all is the same."""
        where = f"seed {self.calls.family.seed}, checkpoint {self.checkpoint.header.seq}"
        wrong = [f"invariant: {text}" for text in check_run(self.checkpoint.records)]
        try:
            wrong += await self._follow()
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
        return [f"{where}: {text}" for text in wrong]

    async def _follow(self) -> list[str]:
        number = self.number
        if self.at_end and self._goes_on_at_once():
            return await self._from(number + 1, self.checkpoint, self._pending())
        result = await self.calls.call(number, Step(), **self._taken_up())
        expected = self.facts.calls[number]
        found = call_facts(result, result.events)
        wrong = [f"call {number}: {text}" for text in differences(expected, found)]
        wrong += [f"call {number}: {text}" for text in self._tail(expected, result) + self._numbers(result)]
        return wrong + await self._from(number + 1, result.checkpoint, result.pending_requests, result)

    def _goes_on_at_once(self) -> bool:
        """A call that stopped can only be followed by the next one; of the others every second one is."""
        return self.checkpoint.status in STOPPED or self.checkpoint.header.seq % 2 == 1

    def _taken_up(self) -> dict[str, object]:
        options: dict[str, object] = {"checkpoint": self.checkpoint}
        return options if self.fork is None else {**options, "fork": True, "run_id": self.fork}

    def _pending(self) -> PendingRequests:
        program = self.calls.workflow.program
        return PendingRequests(self.checkpoint.records, program.graph, program.codec)

    def _tail(self, expected: CallFacts, result: WorkflowRunResult) -> list[str]:
        """Compare what the first call told with what the reference told after the checkpoint."""
        surfaced, rest = split_surfaced(self.checkpoint, result)
        wanted = open_names(self.checkpoint)
        wrong = [] if surfaced == wanted else [f"surfaced {surfaced} instead of {wanted}"]
        if self.at_end:
            return wrong
        if self.captured is not None:
            return wrong + tail_differences(expected.events, rest)
        tail = [event for event in expected.events if event.sequence > self.checkpoint.header.events]
        return wrong + event_differences(tail, rest)

    def _numbers(self, result: WorkflowRunResult) -> list[str]:
        """Say so where events are not numbered on from those of the checkpoint; a fork numbers its own.

        Where nothing was left to do nothing is committed, and what is told again has the last number.
        """
        if self.captured is not None or not self.numbered:
            return []
        numbers = [event.sequence for event in result.events if not event.live]
        last = 0 if self.fork is not None else self.checkpoint.header.events
        idle = self.at_end and self.fork is None and self.checkpoint.status not in STOPPED
        wanted = [last + (0 if idle else place) for place in range(1, len(numbers) + 1)]
        return [] if numbers == wanted else [f"events are numbered {numbers} instead of {wanted}"]

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
        last = number + self.further
        while step is not None and number < min(last, len(self.facts.calls)):
            result = await self.calls.call(number, step, **options)
            expected, found = self.facts.calls[number], call_facts(result, result.events)
            wrong += [f"call {number}: {text}" for text in differences(expected, found)]
            wrong += [f"call {number}: {text}" for text in event_differences(expected.events, found.events)]
            options = {"checkpoint": self.calls.reference(result)}
            number += 1
            step = next_step(self.calls.family, number, result.status, result.pending_requests)
        if number < last and (step is None) != (number == len(self.facts.calls)):
            wrong.append(f"the run is over after {number} calls instead of {len(self.facts.calls)}")
        return wrong


def split_surfaced(checkpoint: WorkflowCheckpoint, result: WorkflowRunResult) -> tuple[list[str], list[Told]]:
    """Take apart what a continuation told: the open requests that it surfaced again, and what it did."""
    known = set(open_names(checkpoint))
    names = request_names(result.checkpoint.records)
    surfaced: list[str] = []
    rest: list[Told] = []
    committed = [event for event in result.events if not event.live]
    for event, text in zip(committed, told(committed, names), strict=True):
        name = names.get(event.request_id, "") if isinstance(event, RequestOpened) else ""
        if name in known:
            surfaced.append(name)
        elif not is_continuation_start(event):
            rest.append(text)
    return surfaced, rest


def open_names(checkpoint: WorkflowCheckpoint) -> list[str]:
    """Return the inner names of the open requests, in their order."""
    names = request_names(checkpoint.records)
    return [names[request_id] for request_id in checkpoint.pending_request_ids]


def calls_of(family: FamilyPlan, store: CheckpointStorage | None, chance: int) -> Calls:
    """Build a family anew, as a process does that knows nothing of others."""
    return Calls(family, build(family), store, chance)
