"""The harness must be able to fail: it sees whatever a broken engine loses, and its graphs contain everything."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import count

import msgspec
import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.codecs.records import decode_records
from rehydrate.engine.run import Run
from rehydrate.errors import InconsistentRunError
from rehydrate.graph.executor import Executor
from rehydrate.model.records import (
    CounterRecord,
    JoinRecord,
    Key,
    Record,
    ScopeRecord,
)
from tests.differential.contents import seen_in_records
from tests.differential.drawing import DEEPEST, draw
from tests.differential.facts import RunFacts
from tests.differential.harness import calls_of, reference_run, run_differences, stored_checkpoints
from tests.differential.messages import mix
from tests.differential.spawning import Job, differences, write_job

Change = Callable[[Key, Record], Record | None]


def lost(*kinds: str) -> Change:
    """A load that forgets all records of some kinds."""
    return lambda key, record: None if key[1] in kinds else record


def shifted_counter(key: Key, record: Record) -> Record:
    """A load after which activations are numbered one too high."""
    return CounterRecord(record.value + 1) if isinstance(record, CounterRecord) else record


def forgotten_trail(key: Key, record: Record) -> Record:
    """A load after which joins hold messages of no input."""
    return msgspec.structs.replace(record, trail=()) if isinstance(record, JoinRecord) else record


def fresh_limit(key: Key, record: Record) -> Record:
    """A load after which a scope counts its supersteps anew."""
    return msgspec.structs.replace(record, used=0) if isinstance(record, ScopeRecord) else record


def forgotten_inputs(key: Key, record: Record) -> Record:
    """A load after which a scope numbers its inputs anew."""
    return msgspec.structs.replace(record, inputs=0) if isinstance(record, ScopeRecord) else record


BROKEN_LOADS: dict[str, Change] = {
    **{f"lost {kind} records": lost(kind) for kind in ("join", "outbox", "inbox", "instance", "request", "output")},
    **{f"lost {kind} records": lost(kind) for kind in ("map", "gather")},
    **{f"lost {kind} records": lost(kind) for kind in ("counter", "receipt", "rest", "limit")},
    "lost state": lost("state", "part"),
    "shifted counters": shifted_counter,
    "joins without trails": forgotten_trail,
    "superstep limits anew": fresh_limit,
    "inputs numbered anew": forgotten_inputs,
}


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    """References of some graphs that have every kind of record, made by the engine as it is."""
    return [write_job(draw(seed), None) for seed in (17, 26, 8, 14)]


def noticed(jobs: Iterable[Job]) -> bool:
    """Tell whether a replay of any checkpoint differs, or is refused; stops at the first graph that shows it."""
    try:
        return any(asyncio.run(differences(job)) for job in jobs)
    except InconsistentRunError:
        return True


@pytest.mark.notices("P1")
@pytest.mark.parametrize("name", BROKEN_LOADS)
def test_a_load_that_loses_something_is_noticed(name: str, jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kind of record a restore forgets or changes, some replay differs from its reference."""
    change = BROKEN_LOADS[name]

    def broken(records: dict[str, bytes]) -> list[tuple[Key, Record]]:
        changed = [(key, change(key, record)) for key, record in decode_records(records)]
        return [(key, record) for key, record in changed if record is not None]

    monkeypatch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)
    assert noticed(jobs)


@pytest.mark.notices("P1")
def test_an_instance_that_is_not_restored_is_noticed(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore hook that is not called shows in the messages of the executor."""

    async def broken(around: object, run: Run, prototype: Executor, start: object, before: object) -> Executor:
        return prototype.new_instance()

    monkeypatch.setattr("rehydrate.runtime.crew.make_instance", broken)
    assert noticed(jobs)


@pytest.mark.notices("P1")
def test_a_result_that_depends_on_who_came_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs with other finishing orders differ where handlers number what they do as they do it."""
    family = draw(14)
    runs: list[RunFacts] = []
    for chance in (1, 2):
        numbers = count()
        monkeypatch.setattr("tests.differential.nodes.mix", lambda *parts, numbers=numbers: mix(next(numbers), parts))
        runs.append(asyncio.run(reference_run(calls_of(family, None, chance), "run")))
    assert run_differences(*runs) != []


@pytest.mark.notices("P1")
def test_an_engine_that_is_not_broken_is_not_accused(jobs: list[Job]) -> None:
    """The same replays show nothing with the engine as it is."""
    assert not noticed(jobs)


async def seen_in(seed: int) -> set[str]:
    """Run a graph and name what its checkpoints, calls and events contain."""
    store = InMemoryCheckpointStorage()
    facts = await reference_run(calls_of(draw(seed), store, chance=1), "run")
    seen = {call.status for call in facts.calls}
    seen |= {event.text.split()[0] for call in facts.calls for event in call.events}
    for checkpoint in await stored_checkpoints(store, "run"):
        seen |= seen_in_records(checkpoint)
    return seen


@pytest.mark.proof
def test_the_random_graphs_contain_everything_that_can_go_wrong() -> None:
    """Within the seeds of the short form every kind of record, event, end and overlap occurs, at every depth."""
    wanted = {
        "map",
        "gather",
        "join",
        "outbox",
        "inbox",
        "instance",
        "request",
        "done",
        "rest",
        "limit",
        "failure",
        "part",
        "receipt",
    }
    wanted |= {f"request at depth {depth}" for depth in range(DEEPEST + 1)}
    wanted |= {f"join at depth {depth}" for depth in range(DEEPEST)}
    wanted |= {f"map at depth {depth}" for depth in range(DEEPEST)}
    wanted |= {f"outbox at depth {depth}" for depth in range(1, DEEPEST + 1)}
    wanted |= {f"attempt at depth {depth}" for depth in range(DEEPEST)}
    wanted |= {"attempts that failed 1 times", "attempts that failed 2 times"}
    wanted |= {"overlapping scopes", "some scopes wait while others run"}
    wanted |= {"IDLE", "IDLE_WITH_PENDING_REQUESTS", "FAILED", "LIMIT_REACHED"}
    wanted |= {"input", "inner requests on their way up", "inner requests delivered", "answers from inside"}
    wanted |= {"MessageDropped", "RequestsCancelled", "WorkDiscarded", "ScopeEnded", "OutputYielded"}
    seen: set[str] = set()
    for seed in range(30):
        seen |= asyncio.run(seen_in(seed))
    assert wanted - seen == set()
