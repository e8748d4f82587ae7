"""The proof of P1 must be able to fail: it sees what a broken load loses in functions and deep scopes, and its trees
contain everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import pytest
from _pytest.mark import ParameterSet

from rehydrate.codecs.records import decode_records
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.run import Run
from rehydrate.graph.executor import Executor
from rehydrate.ids import ABOVE_ROOT, depth_of, join_slot
from rehydrate.model.events import Event, TurnStarted
from rehydrate.model.passes import CallRecord, CallsRecord
from rehydrate.model.records import Key, Record, ScopeRecord
from rehydrate.runtime.events import Channel
from rehydrate.testing import run_virtually
from rehydrate.testing.virtual_time import StuckError
from tests.proof.tree_contents import named, node_plan, seen_in
from tests.proof.tree_jobs import Job, take, write
from tests.proof.trees import DEEP, DEEPEST, TreePlan, draw_tree

#: Trees that show, between them, everything that is broken below.
SEEDS = (70, 176, 197, 26)
#: So many calls that came back share a record here, so that short passes have such records.
PACK = 4
Change = Callable[[TreePlan, Key, Record], Record | None]


def lost(*kinds: str, depth: int = 0) -> Change:
    """A load that forgets all records of some kinds, from some depth on; no kinds are all kinds."""

    def change(plan: TreePlan, key: Key, record: Record) -> Record | None:
        below = key[0] != ABOVE_ROOT and depth_of(key[0]) >= depth
        return None if below and (not kinds or key[1] in kinds) else record

    return change


def lost_calls(kind: str) -> Change:
    """A load that forgets the calls of a kind in the functions inside graphs."""

    def change(plan: TreePlan, key: Key, record: Record) -> Record | None:
        if isinstance(record, CallsRecord) and key[0]:
            left = {name: call for name, call in record.calls.items() if call.kind != kind}
            return CallsRecord(left) if left else None
        return None if isinstance(record, CallRecord) and record.kind == kind and key[0] else record

    return change


def is_shared(plan: TreePlan, path: str) -> bool:
    """Tell whether a scope is the one of its node."""
    parent, _, segment = path.rpartition("/")
    graph = named(plan, parent) if path else ""
    return graph in plan.graphs and node_plan(plan, graph, segment.partition("#")[0]).nesting.shared


def anew(plan: TreePlan, key: Key, record: Record) -> Record | None:
    """A load after which a shared scope that had come to rest knows nothing of its earlier inputs."""
    if key[1] in ("state", "part", "instance", "counter"):
        return None if is_shared(plan, key[0]) else record
    return record


def numbered_anew(plan: TreePlan, key: Key, record: Record) -> Record | None:
    """A load after which a shared scope numbers its inputs anew."""
    if isinstance(record, ScopeRecord) and key[0] != ABOVE_ROOT and is_shared(plan, join_slot(key[0], key[2])):
        return msgspec.structs.replace(record, inputs=0)
    return record


BROKEN_LOADS: dict[str, Change] = {
    "lost call records in functions inside": lost("call", depth=1),
    "lost shared call records in functions inside": lost("calls", depth=1),
    "lost pass records in functions inside": lost("pass", depth=1),
    "lost read records in functions inside": lost("read", depth=1),
    **{
        f"lost {kind} calls in functions inside": lost_calls(kind) for kind in ("step", "question", "value", "workflow")
    },
    "deep scopes lost": lost(depth=DEEP),
    **{f"lost {kind} records of deep scopes": lost(kind, depth=DEEP) for kind in ("outbox", "counter", "instance")},
    **{f"lost {kind} records of deep scopes": lost(kind, depth=DEEP) for kind in ("join", "map", "pass", "rest")},
    "lost requests of deep scopes": lost("request", "requests", depth=DEEP),
    "lost state of deep scopes": lost("state", "part", depth=DEEP),
    "shared scopes anew": anew,
    "inputs of shared scopes numbered anew": numbered_anew,
}


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    """References of some trees, made by the engine as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rehydrate.engine.passes.PACK", PACK)
        return [run_virtually(write(seed, "")) for seed in SEEDS]


@pytest.fixture(autouse=True)
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few calls share a record."""
    monkeypatch.setattr("rehydrate.engine.passes.PACK", PACK)


def noticed(jobs: Iterable[Job], prepare: Callable[[Job], None] = lambda job: None) -> list[str]:
    """Name what is different in the first tree that shows anything."""
    for job in jobs:
        prepare(job)
        try:
            wrong = run_virtually(take(job, enough=1)).wrong
        except StuckError as error:
            wrong = [f"a run comes to no end: {error}"]
        if wrong:
            return wrong
    return []


def sampled(names: Iterable[str]) -> list[ParameterSet]:
    """Return every fourth name for the short form; the proofs have the others."""
    return [pytest.param(name, marks=[pytest.mark.proof] if at % 4 != 1 else []) for at, name in enumerate(names)]


def breaking(change: Change, patch: pytest.MonkeyPatch) -> Callable[[Job], None]:
    """Return what lets the loads of a job change what they read, and find nothing wrong with that."""

    def prepare(job: Job) -> None:
        plan = draw_tree(job.seed)

        def broken(records: dict[str, bytes]) -> list[tuple[Key, Record]]:
            changed = [(key, change(plan, key, record)) for key, record in decode_records(records)]
            return [(key, record) for key, record in changed if record is not None]

        patch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)

    patch.setattr("rehydrate.runtime.checkpoint.check_run", lambda run: ())
    return prepare


@pytest.mark.notices("P1")
@pytest.mark.parametrize("name", sampled(BROKEN_LOADS))
def test_a_load_that_loses_something_inside_is_noticed(
    name: str, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a restore forgets of functions in graphs, of deep scopes or of shared ones, some run differs."""
    assert noticed(jobs, breaking(BROKEN_LOADS[name], monkeypatch)) != []


def skipped(channel: Channel, events: Sequence[Event]) -> Sequence[Event]:
    """The first event after a start is not told."""
    at = 1 if isinstance(events[0], TurnStarted) else 0
    return [*events[:at], *events[at + 1 :]]


def repeated(channel: Channel, events: Sequence[Event]) -> Sequence[Event]:
    """The last of the first events is told twice."""
    return [*events, events[-1]]


def miscounted(channel: Channel, events: Sequence[Event]) -> Sequence[Event]:
    """The events of a call are numbered one too high."""
    channel.sequence += 1
    return events


@pytest.mark.notices("P1")
@pytest.mark.parametrize("broken", [skipped, repeated, miscounted])
def test_events_that_are_off_by_one_are_noticed(
    broken: Callable[[Channel, Sequence[Event]], Sequence[Event]], jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event too few, one too many, and a gap in the numbers show in the first call of a replay."""
    publish, begun = Channel.publish, set[Channel]()

    def told(self: Channel, events: Sequence[Event], *, again: bool = False) -> None:
        if events and not again and self not in begun:
            begun.add(self)
            events = broken(self, events)
        publish(self, events, again=again)

    monkeypatch.setattr(Channel, "publish", told)
    assert any("event" in text for text in noticed(jobs))


@pytest.mark.notices("P1")
def test_a_restored_run_that_goes_on_with_a_live_instance_is_noticed(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instance that outlives its run and is used again knows what the restored run never did."""
    living: dict[tuple[str, str], Executor] = {}

    async def broken(around: object, run: Run, prototype: Executor, start: StartInvocation, before: object) -> Executor:
        return living.setdefault((start.path, prototype.id), prototype.new_instance())

    monkeypatch.setattr("rehydrate.runtime.crew.make_instance", broken)
    assert noticed(jobs) != []


@pytest.mark.notices("P1")
def test_an_engine_that_is_not_broken_is_not_accused(jobs: list[Job]) -> None:
    """The same replays show nothing with the engine as it is."""
    assert noticed(jobs) == []


#: Trees that contain everything, between them.
FULL = (3, 28, 31, 32, 41, 70, 114, 116, 127, 131, 133, 139, 145, 149, 153)
FULL += (165, 166, 167, 169, 170, 176, 179, 186, 188, 206, 350, 368)
RECORDS = "map gather join outbox inbox instance request done rest limit failure part receipt input timer attempt"
WORK = "work threaded equal flaky broken slow stormy now random uuid"
OTHER = "ask guarded timed sleep get set delete log sum lane call gather asyncio exceptions group"
EVENTS = "MessageDropped RequestsCancelled WorkDiscarded ScopeEnded OutputYielded"


def wanted() -> set[str]:
    """All that must occur: at which depth which scopes and records stand, what functions do, and how calls end."""
    found = {*RECORDS.split(), "pass", "call", "calls", "read", "requests", *EVENTS.split()}
    found |= {f"{what} in a function" for what in (*WORK.split(), *OTHER.split())}
    found |= {f"{what} in a branch in a function" for what in ("ask", "call", "gather", "raised")}
    kinds = ("function in a graph", "graph in a function", "graph in a graph", "request", "pass", "outbox")
    found |= {f"{kind} at depth {depth}" for kind in kinds for depth in range(1, DEEPEST + 1)}
    kinds = ("join", "map", "overlapping scopes", "shared scope", "attempt")
    found |= {f"{kind} at depth {depth}" for kind in kinds for depth in range(1, 7)}
    found |= {f"shared {what} in a graph with several inputs" for what in ("function", "graph")}
    found |= {f"call of a {kind}" for kind in ("step", "question", "timer", "value", "workflow")}
    found |= {"attempts that failed 1 times", "attempts that failed 2 times", "1 failed", "2 failed", "failed call"}
    found |= {"some scopes wait while others run", "two passes wait"}
    found |= {"inner requests on their way up", "inner requests delivered", "answers from inside"}
    return found | {"IDLE", "IDLE_WITH_PENDING_REQUESTS", "FAILED", "LIMIT_REACHED"}


@pytest.mark.proof
def test_the_random_trees_contain_everything_that_can_go_wrong() -> None:
    """In some trees of the long form every kind of scope, record, step, event and end occurs, down to depth eight."""
    seen = set[str]().union(*(run_virtually(seen_in(seed)) for seed in FULL))
    assert wanted() - seen == set()
