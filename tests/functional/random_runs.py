"""Runs of random programs: the uninterrupted one as the reference, and what other ways to the same end differ in.

All of it is in virtual time, in which steps take seconds or none, in another order in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import msgspec

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, WorkflowCheckpoint, WorkflowRunResult
from rehydrate.codecs.checkpoints import encode_checkpoint
from rehydrate.codecs.records import decode_records
from rehydrate.engine.reading import next_due, scopes
from rehydrate.engine.run import Run, birth_of
from rehydrate.errors import StaleCheckpointError
from rehydrate.ids import outer_id
from rehydrate.model.checkpoint import key_text
from rehydrate.model.passes import CallRecord
from rehydrate.testing.driving import Crash
from tests.differential.facts import RunFacts, call_facts, differences, record_facts, request_names
from tests.differential.harness import Calls, Replay, reference_run, stored_checkpoints
from tests.differential.keeping import Names, wrong_in_store
from tests.differential.messages import Question, answer_to
from tests.differential.moments import OPENING, Ticks, pause, watched
from tests.differential.nodes import Journal
from tests.differential.plans import ScriptPlan
from tests.differential.script import STOPPED, Step, first_step, next_step
from tests.differential.stopping import Reference, from_bytes, repeats
from tests.functional.random_plans import ProgramsPlan
from tests.functional.random_programs import build_programs

RUN_ID: Final = "reference"
#: How often a question is answered, and not waited with.
ANSWERED: Final = 0.6
MOST_CALLS_IN_ORDER: Final = 500


def calls_of(plan: ProgramsPlan, store: CheckpointStorage | None, chance: int, *, keyed: bool = False) -> Calls:
    """Build the workflows of a plan anew, as a process does that knows nothing of others."""
    return Calls(plan, build_programs(plan), store, chance, keyed=keyed, slow=True, journal=Journal())


async def uninterrupted(plan: ProgramsPlan, store: CheckpointStorage, *, keyed: bool = False) -> Reference:
    """Run a plan's script; no step may come to its end twice in it."""
    ticks = Ticks()
    calls = calls_of(plan, store, chance=1, keyed=keyed)
    watched(calls.workflow, ticks)
    facts = await reference_run(calls, RUN_ID)
    assert calls.journal is not None
    return Reference(plan, facts, {**ticks.counts, OPENING: len(facts.calls)}, repeats(calls.journal) > 0)


def remembered(run: Run, birth: str | None = None) -> set[str]:
    """Return the effect keys that steps have whose results are in the records; in a fork it has another birth."""
    birth = birth_of(run) if birth is None else birth
    found: set[str] = set()
    for path in scopes(run):
        known: dict[str, CallRecord] = dict(run.table(path, "call"))
        for pack in run.table(path, "calls").values():
            known |= pack.calls
        for name, record in known.items():
            if record.kind == "step" and record.value is not None:
                found.add(outer_id(birth, f"step {path}/{name}"))
    return found


async def newest(store: CheckpointStorage, run_id: str) -> Run | None:
    """Return the records of a run as they were saved last."""
    head = await store.head(run_id)
    stored = await store.load(head.header.checkpoint_id) if head is not None else None
    return None if stored is None else from_bytes(encode_checkpoint(stored.header, stored.records)).records


async def saved_steps(store: CheckpointStorage, run_id: str) -> set[str]:
    """Return the effect keys of the steps whose results are in the store."""
    run = await newest(store, run_id)
    return set() if run is None else remembered(run)


async def wrong_from_checkpoints(
    reference: Reference, store: CheckpointStorage, chosen: Callable[[int], bool]
) -> list[str]:
    """Take up the checkpoints of a reference, each in new workflows, as forks and without any store."""
    wrong: list[str] = []
    for checkpoint in await stored_checkpoints(store, RUN_ID):
        number = checkpoint.header.seq
        if chosen(number):
            alone = number % 4 == 1
            calls = calls_of(reference.family, None if alone else store, 2 + number)
            wrong += await wrong_from(reference.facts, calls, checkpoint, None if alone else f"again {number}", 1)
    return wrong


async def wrong_from(
    facts: RunFacts, calls: Calls, checkpoint: WorkflowCheckpoint, fork: str | None, further: int
) -> list[str]:
    """Take up one checkpoint, as a fork or as it is; name what differs, and steps that ran again."""
    wrong = await Replay(calls, facts, checkpoint, fork, further).compare()
    known = remembered(checkpoint.records)
    if fork is not None and known:
        assert calls.store is not None
        found = await calls.store.read(fork, [key_text("", "run", "")])
        known = remembered(checkpoint.records, birth_of(Run(decode_records(found)))) if found else set()
    assert calls.journal is not None
    twice = known & set(calls.journal.finished)
    where = f"seed {calls.family.seed}, checkpoint {checkpoint.header.seq}"
    return [*wrong, *([f"{where}: {len(twice)} finished steps ran again"] if twice else [])]


@dataclass(frozen=True)
class CrashAt:
    """The process ends at the `number`-th command of a kind, from 1; `command` is that kind and the moment."""

    command: str
    number: int


def crash_points(reference: Reference, every: int) -> list[CrashAt]:
    """Return every n-th of all points of a run, in the order of their kinds."""
    points = [
        CrashAt(command, number)
        for command, count in sorted(reference.commands.items())
        if command != OPENING
        for number in range(1, count + 1)
    ]
    return points[reference.family.seed % every :: every]


class CrashingRun:
    """One run of a script whose process ends at some points, one after the other; the call that broke is made again.

    `chance` decides what is left to it: how long steps take, and by which call the run is taken up.
    """

    def __init__(self, reference: Reference, store: CheckpointStorage, points: Sequence[CrashAt], chance: int) -> None:
        self.reference = reference
        self.store = store
        self._points = list(points)
        self._seen = 0
        self._random = Random(chance)
        self._calls = calls_of(reference.family, store, chance, keyed=True)
        watched(self._calls.workflow, self._watch)
        self.crashes = 0
        self.wrong: list[str] = []

    def _watch(self, kind: str, moment: str, turn: object) -> None:
        del turn
        if not self._points or self._points[0].command != f"{kind} {moment}":
            return
        self._seen += 1
        if self._seen == self._points[0].number:
            self._seen = 0
            self._points.pop(0)
            self.crashes += 1
            raise Crash(f"{moment} {kind}")

    async def run(self) -> list[str]:
        """Run to the end and name what differs."""
        try:
            await self._follow()
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
        return self.wrong

    async def _follow(self) -> None:
        expected, names = self.reference.facts.calls, list[Names]()
        step: Step | None = first_step(self.reference.family)
        options: dict[str, object] = {"run_id": RUN_ID}
        while step is not None and len(names) < len(expected) and not self.wrong:
            number = len(names)
            result = await self._call(number, step, options)
            if result is None:
                return
            found = call_facts(result, ())
            self.wrong += [f"call {number}: {text}" for text in differences(expected[number], found)]
            names.append(request_names(result.checkpoint.records))
            options = {"checkpoint": result.checkpoint_id}
            step = next_step(self.reference.family, len(names), result.status, result.pending_requests)
        if self.wrong:
            return
        if len(names) != len(expected) or step is not None:
            self.wrong.append(f"{len(names)} calls instead of {len(expected)}")
        self.wrong += await wrong_in_store(self._calls.workflow, self.store, RUN_ID, expected, names)

    async def _call(self, number: int, step: Step, options: dict[str, object]) -> WorkflowRunResult | None:
        """Make one call, and after a crash make it again. There is no result where the call had failed: that makes a
        difference by design, since whoever learns of it makes a further call."""
        given, told, seen, known = options, step, 0, set[str]()
        while True:
            assert self._calls.journal is not None
            try:
                result = await self._calls.call(number, told, **given)
            except Crash:
                self._check(seen, known)
                seen, known = len(self._calls.journal.finished), await saved_steps(self.store, RUN_ID)
                head = await self.store.head(RUN_ID)
                if head is not None and head.header.status in STOPPED:
                    return None
                self._anew()
                continue
            except StaleCheckpointError:  # a continuation that had ended well, of which nobody learned
                assert told == Step()
                given = {"run_id": RUN_ID, "checkpoint": "latest"}
                continue
            self._check(seen, known)
            return result

    def _anew(self) -> None:
        """Be another process."""
        workflow = watched(build_programs(self.reference.family), self._watch)
        self._calls = replace(self._calls, workflow=workflow, chance=self._random.randrange(1000))

    def _check(self, seen: int, known: set[str]) -> None:
        assert self._calls.journal is not None
        twice = known & set(self._calls.journal.finished[seen:])
        self.wrong += [f"{len(twice)} steps ran again whose results were saved"] if twice else []


async def wrong_after_crashes(
    plan: ProgramsPlan, every: int, make_store: Callable[[str], CheckpointStorage], crashes: int = 1
) -> list[str]:
    """End the process at every n-th point of a run, and a few more after it, and go on with each to the end."""
    reference = await uninterrupted(plan, InMemoryCheckpointStorage(), keyed=True)
    wrong: list[str] = []
    random = Random(plan.seed)
    for index, point in enumerate(crash_points(reference, every)):
        further = [CrashAt(random.choice(sorted(reference.commands)), random.randint(1, 5)) for _ in range(crashes - 1)]
        store = make_store(str(index))
        run = CrashingRun(reference, store, [point, *further], index)
        found = await run.run()
        await store.close()
        wrong += [f"seed {plan.seed}, {point}, then {further}: {text}" for text in found]
    return wrong


async def answered_in_order(plan: ProgramsPlan, chance: int) -> tuple[dict[str, str], int]:
    """Run a plan, answering one question at a time in an order left to chance, or going on once some time has passed.

    Returns what no order changes, and how often the run went on with a timer and without an answer.
    """
    calm = msgspec.structs.replace(plan, script=ScriptPlan(fuel=plan.script.fuel))
    calls, random = calls_of(calm, InMemoryCheckpointStorage(), chance), Random(chance)
    result = await calls.call(0, first_step(calm), run_id=RUN_ID)
    number = asked = timed = 0
    while result.pending_requests or next_due(result.checkpoint.records) is not None:
        number += 1
        assert number < MOST_CALLS_IN_ORDER, "the run comes to no end"
        step = Step()
        if result.pending_requests and random.random() < ANSWERED:
            request = random.choice(result.pending_requests)
            assert isinstance(request.data, Question)
            step = Step(options={"responses": [request.answer(answer_to(request.data))]})
            asked += 1
        else:
            timed += next_due(result.checkpoint.records) is not None
            await pause(random.choice((0.0, 1.0, 30.0)))
        result = await calls.call(number, step, checkpoint=result.checkpoint_id)
    state = {key: text for key, text in record_facts(result.checkpoint.records).items() if " state " in key}
    facts = {"outputs": repr(result.outputs), "status": result.status.value, "questions": str(asked), **state}
    assert calls.journal is not None
    return {**facts, "run twice": str(repeats(calls.journal))}, timed


async def wrong_when_repeated(plan: ProgramsPlan) -> list[str]:
    """Make each call of a plan's script twice: the second time it gives what it gave, and nothing runs."""
    calls, wrong = calls_of(plan, InMemoryCheckpointStorage(), 1, keyed=True), list[str]()
    assert calls.journal is not None
    step: Step | None = first_step(plan)
    options: dict[str, object] = {"run_id": RUN_ID}
    number = 0
    while step is not None:
        result = await calls.call(number, step, **options)
        if result.status not in STOPPED and step != Step():
            seen = len(calls.journal.finished)
            again = await calls.call(number, step, **options)
            told = differences(call_facts(result, ()), call_facts(again, ()))
            wrong += [f"call {number}: {text}" for text in told]
            if not again.replayed or again.checkpoint_id != result.checkpoint_id:
                wrong.append(f"call {number} was not known again")
            if len(calls.journal.finished) > seen:
                wrong.append(f"call {number} ran steps when it was made again")
        options = {"checkpoint": result.checkpoint_id}
        number += 1
        step = next_step(plan, number, result.status, result.pending_requests)
    return wrong
