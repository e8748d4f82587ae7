"""The harness of random programs must be able to fail: it sees what a broken load or pass loses, and its programs do
everything that a function can."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import count

import msgspec
import pytest
from _pytest.mark import ParameterSet

from rehydrate import InMemoryCheckpointStorage
from rehydrate.codecs.records import decode_records
from rehydrate.errors import InconsistentRunError
from rehydrate.ids import depth_of
from rehydrate.model.passes import CallRecord, PassRecord, ReadRecord
from rehydrate.model.records import Key, Record
from rehydrate.runtime.functional_context import RunningContext
from rehydrate.runtime.functional_pass import Pass
from rehydrate.runtime.remembering import Memory
from rehydrate.testing import run_virtually
from tests.differential.contents import seen_in_calls
from tests.differential.harness import reference_run, run_differences, stored_checkpoints
from tests.differential.stopping import Reference, from_bytes
from tests.functional.random_plans import draw_programs, kinds_of
from tests.functional.random_runs import RUN_ID, calls_of, uninterrupted, wrong_from

#: Seeds whose programs are small and show everything that is broken below, between them.
SEEDS = (7, 6, 23)
Change = Callable[[Key, Record], Record | None]
Taken = tuple[Reference, list[bytes]]


def lost(*kinds: str) -> Change:
    """A load that forgets all records of some kinds."""
    return lambda key, record: None if key[1] in kinds else record


def lost_calls(kind: str) -> Change:
    """A load that forgets the calls of a kind."""
    return lambda key, record: None if isinstance(record, CallRecord) and record.kind == kind else record


def numbered_anew(key: Key, record: Record) -> Record:
    """A load after which a pass numbers its questions anew."""
    return msgspec.structs.replace(record, asked=0) if isinstance(record, PassRecord) else record


def other_digests(key: Key, record: Record) -> Record:
    """A load after which no arguments are those of before."""
    return msgspec.structs.replace(record, digest=b"other") if isinstance(record, CallRecord) else record


def other_reads(key: Key, record: Record) -> Record:
    """A load after which a pass that waited finds what it has read not there."""
    return ReadRecord(None) if isinstance(record, ReadRecord) else record


BROKEN_LOADS: dict[str, Change] = {
    "lost pass records": lost("pass"),
    "lost call records": lost("call", "calls"),
    **{f"lost {kind} calls": lost_calls(kind) for kind in ("step", "question", "value", "workflow")},
    "lost request records": lost("request"),
    "questions numbered anew": numbered_anew,
    "arguments that are not compared right": other_digests,
    "other reads": other_reads,
}


async def _taken(seed: int) -> Taken:
    store = InMemoryCheckpointStorage()
    reference = await uninterrupted(draw_programs(seed), store)
    return reference, [checkpoint.to_bytes() for checkpoint in await stored_checkpoints(store, RUN_ID)]


@pytest.fixture(scope="module")
def references() -> list[Taken]:
    """Uninterrupted runs, by the engine as it is, with the bytes of their checkpoints."""
    return [run_virtually(_taken(seed)) for seed in SEEDS]


async def _differs(taken: Taken, step: int) -> bool:
    reference, checkpoints = taken
    for number, data in enumerate(checkpoints[::step]):
        calls = calls_of(reference.family, None, number)
        if await wrong_from(reference.facts, calls, from_bytes(data), None, 1):
            return True
    return False


def noticed(references: Iterable[Taken], step: int = 1) -> bool:
    """Tell whether going on from any checkpoint shows a difference, or is refused; stops at the first that does."""
    try:
        return any(run_virtually(_differs(taken, step)) for taken in references)
    except InconsistentRunError:
        return True


def sampled(names: Iterable[str]) -> list[ParameterSet]:
    """Return every third name for the short form; the proofs have the others."""
    return [pytest.param(name, marks=[pytest.mark.proof] if at % 3 else []) for at, name in enumerate(names)]


@pytest.mark.notices("P1")
@pytest.mark.parametrize("name", sampled(BROKEN_LOADS))
def test_a_load_that_loses_something_is_noticed(
    name: str, references: list[Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of a pass a restore forgets or changes, some run differs from its reference."""
    change = BROKEN_LOADS[name]

    def broken(records: dict[str, bytes]) -> list[tuple[Key, Record]]:
        changed = [(key, change(key, record)) for key, record in decode_records(records)]
        return [(key, record) for key, record in changed if record is not None]

    monkeypatch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)
    assert noticed(references)


def no_open_questions(current: Memory) -> set[str]:
    """A pass that asks its open questions again."""
    return set()


def other_seed(current: Pass) -> str:
    """A pass whose random numbers are others whenever it goes on."""
    return f"{current.start.delivery.activation} {id(current)}"


def another_time(context: RunningContext) -> datetime:
    """A context that tells the time as it is, also where it told one before."""
    return datetime.fromtimestamp(context._pass.clock.time(), UTC)


BROKEN_PASSES: dict[str, tuple[str, object]] = {
    "questions asked again": ("remembering.Memory._open_questions", no_open_questions),
    "other random numbers": ("functional_pass.Pass.seed", property(other_seed)),
    "another time": ("functional_context.RunningContext.now", another_time),
    "called workflows called again": ("remembering.Memory.is_lost", lambda *_: True),
    "reads of what is there now": ("functional_context.RunningContext._reads", lambda _: {}),
}


@pytest.mark.notices("P1")
@pytest.mark.parametrize("name", sampled(BROKEN_PASSES))
def test_a_pass_that_goes_on_otherwise_is_noticed(
    name: str, references: list[Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that does not go on by its records differs from its reference, or from itself."""
    place, broken = BROKEN_PASSES[name]
    monkeypatch.setattr(f"rehydrate.runtime.{place}", broken)
    assert noticed(references)


def _orders_differ(seed: int) -> bool:
    runs = []
    for chance in (1, 2):
        calls = calls_of(draw_programs(seed), InMemoryCheckpointStorage(), chance)
        runs.append(run_virtually(reference_run(calls, RUN_ID)))
    return run_differences(*runs) != []


@pytest.mark.notices("P1")
def test_scopes_numbered_as_they_are_called_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with other finishing orders differ where a called scope is numbered by who called first."""
    assert not _orders_differ(4)
    numbers = count(1)
    monkeypatch.setattr("rehydrate.runtime.branches.called_number", lambda *_: next(numbers))
    assert _orders_differ(4)


@pytest.mark.notices("P1")
def test_an_engine_that_is_not_broken_is_not_accused(references: list[Taken]) -> None:
    """The same runs show nothing with the engine as it is."""
    assert not noticed(references, step=9)


async def _seen_in(seed: int) -> set[str]:
    store = InMemoryCheckpointStorage()
    reference = await uninterrupted(draw_programs(seed), store)
    seen = {call.status for call in reference.facts.calls}
    for checkpoint in await stored_checkpoints(store, RUN_ID):
        run = checkpoint.records
        for key, _ in run.records():
            seen |= {key[1], f"{key[1]} at depth {depth_of(key[0])}"} if not key[0].startswith("/") else set()
        seen |= seen_in_calls(run)
    return seen


def test_the_random_programs_do_everything_that_a_function_can() -> None:
    """Within the first seeds every kind of thing occurs, in branches too."""
    seen: set[str] = set()
    for seed in range(25):
        plan = draw_programs(seed)
        seen |= {kind for program in plan.programs.values() for kind in kinds_of(program.ops)}
        seen |= {"a graph above"} if plan.root in plan.houses else set()
    wanted = {"work", "threaded", "equal", "flaky", "broken", "raised in a branch", "slow", "stormy", "now", "random"}
    wanted |= {"uuid", "ask", "guarded", "timed", "sleep", "get", "set", "delete", "log", "sum", "lane", "call"}
    wanted |= {"gather", "asyncio", "exceptions", "group", "gather in a branch", "ask in a branch", "call in a branch"}
    wanted |= {"a graph above"}
    assert wanted - seen == set()


@pytest.mark.proof
def test_the_random_runs_contain_everything_that_can_go_wrong() -> None:
    """Within the first seeds every kind of record and end occurs, at every depth."""
    seen = set[str]().union(*(run_virtually(_seen_in(seed)) for seed in range(25)))
    wanted = {f"call of a {kind}" for kind in ("step", "question", "timer", "value", "workflow")}
    wanted |= {f"{kind} at depth {depth}" for kind in ("pass", "call", "request") for depth in (0, 1, 2)}
    wanted |= {"read", "receipt", "failed call", "1 failed", "2 failed", "two passes wait"}
    wanted |= {"IDLE", "IDLE_WITH_PENDING_REQUESTS", "FAILED"}
    assert wanted - seen == set()
