"""A random run that is stopped at moments, by a drain or a cancellation, and goes on each time from stored bytes.

What it comes to is compared call by call with the uninterrupted run. Nothing is handed over from before a stop but the
store (without one, the bytes of the checkpoint).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from random import Random
from typing import cast

import msgspec

from rehydrate import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowCheckpoint,
    WorkflowRunResult,
)
from rehydrate.codecs.checkpoints import encode_checkpoint
from rehydrate.engine.invariants import check_run
from rehydrate.model.checkpoint import Commit, Head
from rehydrate.model.events import Event, RequestOpened
from rehydrate.runtime.watch import CommandKind, Moment, Watched
from tests.differential.building import build
from tests.differential.facts import RunFacts, call_facts, differences, request_names
from tests.differential.harness import Calls, reference_run
from tests.differential.keeping import Names, followed_events, kept_differences, kept_events, wrong_in_store
from tests.differential.moments import OPENING, Stop, Ticks, Trigger, watched
from tests.differential.nodes import Journal
from tests.differential.plans import FamilyPlan
from tests.differential.script import Step, first_step, next_step
from tests.differential.ways import RUN_ID, Attempt, attempt

#: A call: what it brings, and its arguments.
Made = tuple[Step, dict[str, object]]


class LateStorage(InMemoryCheckpointStorage):
    """A store that lets others run before and after it writes."""

    def __init__(self, chance: int) -> None:
        super().__init__(keep_events=True)
        self._random = Random(chance)

    async def commit(self, commit: Commit) -> None:
        await self._let_others_run()
        await super().commit(commit)
        await self._let_others_run()

    async def _let_others_run(self) -> None:
        for _ in range(self._random.choice((0, 0, 1, 4))):
            await asyncio.sleep(0)


class Reference(msgspec.Struct):
    """An uninterrupted run: its facts, and how many commands of each kind it gave.

    `repeats`: invocations that had finished ran again in it, because what they had written was in conflict.
    """

    family: FamilyPlan
    facts: RunFacts
    commands: dict[str, int]
    repeats: bool


async def uninterrupted(family: FamilyPlan, *, keyed: bool = False) -> Reference:
    """Run a family's script; its store has to have kept what was told, without gap."""
    store, ticks = InMemoryCheckpointStorage(keep_events=True), Ticks()
    journal = Journal()
    calls = Calls(family, watched(build(family), ticks), store, chance=1, keyed=keyed, journal=journal)
    facts = await reference_run(calls, RUN_ID)
    kept = await kept_events(calls.workflow, store, RUN_ID)
    assert [event.sequence for event in kept] == [told.sequence for call in facts.calls for told in call.events]
    commands = {**ticks.counts, OPENING: len(facts.calls)}
    return Reference(family, facts, commands, repeats(journal) > 0)


def repeats(journal: Journal) -> int:
    """Count what came to its end again that had come to it before."""
    return len(journal.finished) - len(set(journal.finished))


class Handover(msgspec.Struct, tag=True):
    """A run that stands stopped in a SQLite file, in the call of this number, for another process to go on with."""

    reference: Reference
    database: str
    number: int
    chance: int
    names: list[dict[str, str]]


class HandedOver(Exception):  # noqa: N818  (it is no error)
    """The run stands stopped for another process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StoppedRun:
    """One run of a script with its stops; `chance` decides all that is left to chance.

    `workflows`: two of the family, of which one goes on where the other has stopped.
    """

    def __init__(
        self,
        reference: Reference,
        store: CheckpointStorage | None,
        stops: Sequence[Stop] = (),
        chance: int = 0,
        *,
        slow: bool = False,
        workflows: Sequence[Workflow] = (),
    ) -> None:
        self.reference = reference
        self.store = store
        self.stops = list(stops)
        #: What became of each attempt that was stopped.
        self.ends: list[str] = []
        self.wrong: list[str] = []
        self.names: list[Names] = []
        self._hands_over = False
        self._random = Random(chance)
        self._journal = Journal()
        self._trigger = Trigger(self.stops[0] if self.stops else None)
        self._workflows = deque(watched(it, self._watch) for it in workflows or two_of(reference.family))
        self._calls = Calls(
            reference.family,
            self._workflows[0],
            store,
            durability="turn" if self._random.random() < 0.2 else "superstep",
            slow=slow,
            stubborn=self._random.random() < 0.5,
            journal=self._journal,
        )
        #: What was told, as long as nothing was told to nobody.
        self._told: list[Event] | None = []
        #: The newest checkpoint that is known, and what is to be surfaced by whoever goes on from it.
        self._at: str | None = None
        self._open: tuple[str, ...] | None = None

    async def run(self) -> list[str]:
        """Run it from the first call to its end; name what differs."""
        return await self._checked(self._follow(0, first_step(self.reference.family), {"run_id": RUN_ID}))

    async def hand_over(self, database: str) -> Handover | None:
        """Run it to its first stop that leaves something to go on with; `None` where there is none."""
        self._hands_over = True
        try:
            await self.run()
        except HandedOver as stopped:
            names = [dict(known) for known in self.names]
            return Handover(self.reference, database, stopped.number, self._random.randrange(1000), names)
        return None

    async def go_on(self, handover: Handover) -> list[str]:
        """Go on with a run that another process has left; name what differs."""
        self.names, self._told = list(handover.names), None
        stored = await self._head()
        return await self._checked(self._follow(handover.number, Step(), self._from(stored)))

    async def _checked(self, following: Coroutine[object, object, None]) -> list[str]:
        try:
            await following
        except HandedOver:
            raise
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
        return self.wrong

    async def _follow(self, number: int, step: Step | None, options: dict[str, object]) -> None:
        calls = self.reference.facts.calls
        while step is not None and number < len(calls):
            result = await self._call(number, step, options)
            found = call_facts(result, ())
            self.wrong += [f"call {number}: {text}" for text in differences(calls[number], found)]
            self.names.append(request_names(result.checkpoint.records))
            if self.wrong:
                return
            options, self._at = {"checkpoint": self._calls.reference(result)}, result.checkpoint_id
            number += 1
            step = next_step(self.reference.family, number, result.status, result.pending_requests)
        if step is not None or number != len(calls):
            self.wrong.append(f"the run is over after {number} calls instead of {len(calls)}")
        await self._compare_events()
        twice = repeats(self._journal)
        if twice and not self.reference.repeats:
            self.wrong.append(f"{twice} invocations ran again that had finished before a stop")

    async def _compare_events(self) -> None:
        expected, told = self.reference.facts.calls, self._told
        if self.store is None:
            if told is not None:
                self.wrong += kept_differences(told, expected, self.names)
            return
        self.wrong += await wrong_in_store(self._calls.workflow, self.store, RUN_ID, expected, self.names)
        if told is not None and told != await kept_events(self._calls.workflow, self.store, RUN_ID):
            self.wrong.append("other events were kept than told")

    async def _call(self, number: int, step: Step, options: dict[str, object]) -> WorkflowRunResult:
        """Make one call, and go on with it after each stop."""
        now, given = step, options
        while True:
            trigger = self._trigger
            following = self._following()
            made = await attempt(self._calls, trigger, number, now, given)
            self._note(made)
            if following is not None and (followed := await following):
                await self._compare_followed(followed)
            if trigger.fired:
                self._next_stop()
            if made.result is not None and made.result.status not in (Status.CANCELLED, Status.RUNNING):
                return made.result
            ended = await self._stopped(made, number)
            if isinstance(ended, WorkflowRunResult):
                return ended
            if ended is not None:
                now, given = self._again(ended, (step, options), (now, given))

    def _following(self) -> asyncio.Task[list[Event]] | None:
        """Let somebody follow the run, in some calls."""
        if self.store is None or self._random.random() < 0.7:
            return None
        turns = self._random.randrange(100)
        followed = followed_events(self._calls.workflow, self.store, RUN_ID, turns)
        return asyncio.get_running_loop().create_task(followed)

    async def _compare_followed(self, followed: list[Event]) -> None:
        """Who follows a run gets what is kept, and comes to an end with its turn."""
        assert self.store is not None
        kept = await kept_events(self._calls.workflow, self.store, RUN_ID)
        if followed != kept[: len(followed)]:
            self.wrong.append("a follower was told other events than were kept")

    def _next_stop(self) -> None:
        """Go on as a new process does: with another workflow, and handlers that take as long as they like."""
        self.stops.pop(0)
        self._trigger = Trigger(self.stops[0] if self.stops else None)
        self._workflows.rotate()
        self._calls = replace(self._calls, workflow=self._workflows[0], chance=self._random.randrange(1000))

    def _watch(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        self._trigger(kind, moment, turn)

    def _note(self, made: Attempt) -> None:
        self.wrong += made.wrong
        if made.events and self._open is not None:
            asked = [event.request_id for event in made.events if isinstance(event, RequestOpened)]
            surfaced = [request_id for request_id in asked if request_id in self._open]
            if surfaced != list(self._open):
                self.wrong.append(f"surfaced {surfaced} instead of {self._open}")
            self._open = None
        self.ends += [made.end] if made.end else []
        if made.events is None:
            self._told = self._open = None
        elif self._told is not None:
            self._told += made.events

    async def _stopped(self, made: Attempt, number: int) -> WorkflowRunResult | WorkflowCheckpoint | None:
        """Look at how a stopped run stands: it had ended, there is something to go on with, or nothing was claimed."""
        if self.store is None:
            return None if made.result is None else from_bytes(made.result.checkpoint.to_bytes())
        head = await self.store.head(RUN_ID)
        if head is None or head.header.checkpoint_id == self._at:
            return None
        self._at = head.header.checkpoint_id
        self._check_head(made, head)
        stored = await self._head()
        if head.header.checkpoint_id != stored.header.checkpoint_id:
            self.wrong.append("something was saved after the end")
        if stored.status not in (Status.CANCELLED, Status.RUNNING):
            self.ends.append("ended before")
            program = self._calls.workflow.program
            return WorkflowRunResult(stored, program.graph, program.codec)
        self.wrong += [f"invariant: {text}" for text in check_run(stored.records)]
        if self._hands_over:
            raise HandedOver(number)
        return stored

    def _check_head(self, made: Attempt, head: Head) -> None:
        if head.owner is not None:
            self.wrong.append(f"{head.owner} still owns the run")
        if made.way not in ("drain", "both") and head.header.status is Status.RUNNING:
            self.wrong.append("a cancelled run was left running")
        if made.result is not None and made.result.checkpoint_id != head.header.checkpoint_id:
            self.wrong.append(f"{made.result.checkpoint_id} was told and {head.header.checkpoint_id} is the head")

    async def _head(self) -> WorkflowCheckpoint:
        """Read the head from its bytes, once whatever might still run has had the time to."""
        assert self.store is not None
        for _ in range(30):
            await asyncio.sleep(0)
        head = await self.store.head(RUN_ID)
        stored = await self.store.load(head.header.checkpoint_id) if head is not None else None
        assert stored is not None
        return from_bytes(encode_checkpoint(stored.header, stored.records))

    def _again(self, stored: WorkflowCheckpoint, first: Made, newest: Made) -> Made:
        """Go on as a continuation, or by the same call once more; of continuations only the newest is known again."""
        self._open = stored.pending_request_ids
        if self.store is not None and self._random.random() < 0.3:
            return first if first[0] != Step() else newest
        return Step(), self._from(stored)

    def _from(self, stored: WorkflowCheckpoint) -> dict[str, object]:
        if self.store is None:
            return {"checkpoint": stored}
        if self._random.random() < 0.5:
            return {"checkpoint": stored.checkpoint_id}
        return {"checkpoint": "latest", "run_id": RUN_ID}


def two_of(family: FamilyPlan) -> list[Workflow]:
    """Build the workflow of a family twice."""
    return [build(family), build(family)]


def from_bytes(data: bytes) -> WorkflowCheckpoint:
    """Read a checkpoint as another process does."""
    return cast("WorkflowCheckpoint", WorkflowCheckpoint.from_bytes(data))


async def gone_on(handover: Handover) -> list[str]:
    """Go on with a run in its SQLite file; name what differs."""
    async with SqliteCheckpointStorage(handover.database, keep_events=True) as store:
        run = StoppedRun(handover.reference, store, chance=handover.chance)
        wrong = await run.go_on(handover)
    return [f"seed {handover.reference.family.seed}, in another process: {text}" for text in wrong]
