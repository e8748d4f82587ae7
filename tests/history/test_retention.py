"""Pruning: what a retention lets go, what stays whatever it says, and that a dry run says what a real one does."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rehydrate import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    KeptCheckpoint,
    PrunedRun,
    Retention,
    RunHistory,
    Status,
    Workflow,
    WorkflowCheckpoint,
    prune,
)
from rehydrate.errors import RunFailedError, RunNotFoundError, WrongCallError
from rehydrate.model.checkpoint import At, Commit, Lease, Offer
from rehydrate.ports.clock import wall_clock
from tests.differential.drawing import draw
from tests.differential.harness import Replay, calls_of, reference_run, stored_checkpoints
from tests.history.flows import BIG, HUGE, SMALL, Claim, desk

run = asyncio.run
DAY = 86_400.0


class Days:
    """A clock that is set by hand, in days."""

    day = 0.0

    def time(self) -> float:
        return 1_000_000.0 + self.day * DAY

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)


@pytest.fixture
def clock():
    """The time of this process, set by hand."""
    days = Days()
    with wall_clock(days):
        yield days


async def chat(workflow: Workflow, run_id: str, clock: Days, turns: int = 3) -> None:
    """A run with one turn, of four checkpoints, on each day."""
    session = workflow.session(run_id)
    for _ in range(turns):
        await session.run(SMALL)
        clock.day += 1


async def everything(store: CheckpointStorage) -> dict[str, object]:
    """All that a store holds."""
    return {head.run_id: await store.archive(head.run_id) for head in await store.runs()}


def kept_of(pruned: PrunedRun) -> dict[int, tuple[str, ...]]:
    return {kept.number: kept.why for kept in pruned.kept}


async def both_ways(store: CheckpointStorage, retention: Retention, **options: object) -> tuple[PrunedRun, ...]:
    """Prune dry and in earnest; both say the same, and only the second one changes anything."""
    before = await everything(store)
    dry = await prune(store, retention, dry_run=True, **options)
    assert await everything(store) == before
    done = await prune(store, retention, **options)
    assert (dry.runs, dry.looked_at, dry.dry_run) == (done.runs, done.looked_at, True)
    assert done.dry_run is False
    return done.runs


def test_the_last_ones_stay_with_head_names_and_the_start_of_the_turn(store, clock):
    """Of twelve checkpoints the two newest stay, the named one, and the one that the newest turn began at."""

    async def story():
        await chat(desk(store), "r", clock)
        await RunHistory(store, "r").tag("good", 2)
        (pruned,) = await both_ways(store, Retention(keep_last=2))
        return pruned, [entry.number async for entry in RunHistory(store, "r")]

    pruned, left = run(story())
    assert pruned.kept == (
        KeptCheckpoint(2, ("named",)),
        KeptCheckpoint(7, ("start of the newest turn",)),
        KeptCheckpoint(10, ("last",)),
        KeptCheckpoint(11, ("head", "last")),
    )
    assert pruned.forgotten == (0, 1, 3, 4, 5, 6, 8, 9)
    assert (pruned.deleted, pruned.passed_over) == (False, "")
    assert left == [11, 10, 7, 2]


def test_the_young_ones_stay(store, clock):
    """By age alone: what is younger than a day stays, and so does the head of a run that is older."""

    async def story():
        await chat(desk(store), "new", clock, 2)
        first = await both_ways(store, Retention(keep_for=timedelta(days=1.5)))
        clock.day += 9
        return first, await both_ways(store, Retention(keep_for=timedelta(days=1.5)))

    (first,), (second,) = run(story())
    assert kept_of(first) == {
        3: ("start of the newest turn",),
        4: ("young",),
        5: ("young",),
        6: ("young",),
        7: ("head", "young"),
    }
    assert kept_of(second) == {3: ("start of the newest turn",), 7: ("head",)}


def test_either_rule_keeps_a_checkpoint(store, clock):
    """With both rules given, one that either keeps stays."""

    async def story():
        await chat(desk(store), "r", clock, 2)
        return await both_ways(store, Retention(keep_last=6, keep_for=timedelta(days=1.5)))

    (pruned,) = run(story())
    assert kept_of(pruned)[2] == ("last",)
    assert kept_of(pruned)[4] == ("last", "young")
    assert pruned.forgotten == (0, 1)


def test_a_repeated_call_is_answered_after_pruning(store, clock):
    """The recorded result of every key stays, and the newest turn, which failed, is still known when it comes again."""

    async def story():
        workflow = desk(store)
        session = workflow.session("r")
        for number in range(3):
            await session.run(Claim(f"c-{number}", 1), idempotency_key=f"k-{number}")
        await session.edit({"rate": 7}, reason="why")
        await session.run(SMALL)
        await session.edit({"rate": 5}, reason="why")
        base = session.checkpoint.checkpoint_id
        with pytest.raises(RunFailedError):
            await workflow.run(HUGE, checkpoint=base)
        (pruned,) = await both_ways(store, Retention(keep_last=1))
        again = [await workflow.session("r").run(Claim(f"c-{n}", 1), idempotency_key=f"k-{n}") for n in range(3)]
        with pytest.raises(RunFailedError) as failed:
            await workflow.run(HUGE, checkpoint=base)
        return pruned, again, failed.value.result

    pruned, again, failed = run(story())
    assert kept_of(pruned) == {
        3: ("recorded result",),
        7: ("recorded result",),
        11: ("recorded result",),
        17: ("start of the newest turn",),
        19: ("head", "last"),
    }
    assert [(result.replayed, result.outputs) for result in again] == [
        (True, [f"c-{n} within 1000: paid at 100%"]) for n in range(3)
    ]
    assert (failed.turn, failed.checkpoint.header.seq) == (5, 21)


def test_ended_runs_go_and_all_others_stay(store, clock):
    """Of eight old runs only the one goes that is at rest, is not asked anything, and that nobody holds on to."""

    async def story():
        workflow = desk(store)
        for run_id in ("ended", "named", "offered", "owned", "lost"):
            await workflow.run(SMALL, run_id=run_id)
        await workflow.run(BIG, run_id="asking")
        with pytest.raises(RunFailedError):
            await workflow.run(HUGE, run_id="failed")
        await RunHistory(store, "named").tag("good", 0)
        await store.offer(Offer("offered", "letter", b"come"))
        for run_id, seconds in (("owned", 100 * DAY), ("lost", 1.0)):
            head = await store.head(run_id)
            header = msgspec.structs.replace(
                head.header, checkpoint_id=f"{run_id} later", seq=9, previous_checkpoint_id=head.header.checkpoint_id
            )
            lease = Lease("somebody", head.epoch + 1, seconds, claim=True)
            await store.commit(Commit(header, head.header.checkpoint_id, lease))
        clock.day += 30
        await workflow.run(SMALL, run_id="young")
        told = await both_ways(store, Retention(delete_ended_after=timedelta(days=30)))
        return told, [head.run_id for head in await store.runs()], await store.archive("ended")

    told, left, archive = run(story())
    assert {pruned.run_id: pruned.passed_over for pruned in told if not pruned.deleted} == {
        "named": "a checkpoint of it has a name",
        "offered": "something waits in its inbox",
        "owned": "its owner lives",
    }
    assert [(pruned.run_id, pruned.forgotten) for pruned in told if pruned.deleted] == [
        ("ended", (0, 1, 2, 3)),
        ("lost", (0, 1, 2, 3, 9)),
    ]
    assert left == ["asking", "failed", "named", "offered", "owned", "young"]
    assert archive is None


def test_failed_runs_go_only_where_that_is_said(store, clock):
    """A run that can be continued is no ended one, unless its status is named."""

    async def story():
        with pytest.raises(RunFailedError):
            await desk(store).run(HUGE, run_id="failed")
        clock.day += 30
        first = await both_ways(store, Retention(delete_ended_after=timedelta(0)))
        named = Retention(delete_ended_after=timedelta(0), ended=(Status.FAILED, "IDLE"))
        return first, await both_ways(store, named)

    first, (second,) = run(story())
    assert first == ()
    assert (second.run_id, second.deleted) == ("failed", True)


def test_only_the_named_run_or_workflow_is_pruned(store, clock):
    """Others are not looked at; the run that was asked for is told of also where nothing goes."""

    async def story():
        await chat(desk(store), "a", clock)
        await chat(desk(store), "b", clock)
        none = await prune(store, Retention(keep_last=99), run_id="a")
        other = await prune(store, Retention(keep_last=1), workflow="other")
        one = await prune(store, Retention(keep_last=1), run_id="a", workflow="desk")
        with pytest.raises(RunNotFoundError):
            await prune(store, Retention(keep_last=1), run_id="c")
        with pytest.raises(WrongCallError):
            await prune(store, Retention(keep_last=1), run_id="a", workflow="other")
        return none, other, one, [len(await store.history(run_id)) for run_id in "ab"]

    none, other, one, left = run(story())
    assert [(len(pruned.kept), pruned.forgotten) for pruned in none.runs] == [(12, ())]
    assert (other.runs, other.looked_at) == ((), 0)
    assert (one.forgotten, one.looked_at, left) == (10, 1, [2, 12])


def test_a_summary_reads_well_and_progress_is_told(store, clock):
    """Each run is told when it is done, and the summary says in a few lines what went."""

    async def story():
        workflow = desk(store)
        for number in range(120):
            await workflow.run(SMALL, run_id=f"r-{number:03d}")
        clock.day += 1
        seen: list[str] = []
        summary = await prune(
            store,
            Retention(keep_last=4, delete_ended_after=timedelta(days=1)),
            dry_run=True,
            progress=lambda pruned: seen.append(pruned.run_id),
        )
        await workflow.session("chat").run(SMALL)
        sizes = [header.size for header in await store.history("chat")]
        return seen, summary, await prune(store, Retention(keep_last=1), run_id="chat"), sizes

    seen, summary, other, sizes = run(story())
    assert seen == [f"r-{number:03d}" for number in range(120)]
    assert (summary.looked_at, summary.forgotten, len(summary.deleted)) == (120, 480, 120)
    lines = str(summary).splitlines()
    assert lines[0] == f"would go: 0 checkpoints and 120 whole runs, of 120 runs; {summary.size:,} bytes"
    assert lines[1] == f"  r-000: deleted with 4 checkpoints, {summary.runs[0].size:,} bytes"
    assert len(lines) == 121
    assert other.size == sum(sizes[1:])
    assert str(other.runs[0]) == f"chat: 3 checkpoints forgotten, 1 kept, {sum(sizes[1:]):,} bytes"


class Changing(InMemoryCheckpointStorage):
    """A store in which others do something while a run is pruned."""

    meanwhile = None

    async def history(self, run_id, **options):
        page = await super().history(run_id, **options)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile(self)
        return page


async def _named(store):
    await store.tag("r", "late", (await store.load(At("r", 1))).header.checkpoint_id)


async def _gone(store):
    await store.delete("r")


async def _went_on(store):
    await desk(store).run(SMALL, checkpoint="latest", run_id="r")


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [(_named, [1, 3]), (_gone, []), (_went_on, [3, 4, 5, 6, 7])],
    ids=["named", "deleted", "gone on"],
)
def test_a_run_that_changes_meanwhile_stops_nothing(meanwhile, left):
    """A name that was given, a turn that began, a run that was deleted: nothing is lost of it, others are pruned."""

    async def story():
        store = Changing()
        for run_id in ("r", "s"):
            await desk(store).run(SMALL, run_id=run_id)
        store.meanwhile = meanwhile
        summary = await prune(store, Retention(keep_last=1))
        for number in left:
            assert await store.load(At("r", number)) is not None
        return summary, sorted(header.seq for header in await store.history("r"))

    summary, numbers = run(story())
    assert numbers == left
    assert [pruned.forgotten for pruned in summary.runs if pruned.run_id == "s"] == [(0, 1, 2)]


def test_a_run_that_went_on_is_not_deleted():
    """The head is looked at once more before a run goes."""

    class GoingOn(InMemoryCheckpointStorage):
        async def offers(self, run_id, **options):
            await _went_on(self)
            return await super().offers(run_id, **options)

    async def story():
        store = GoingOn()
        await desk(store).run(SMALL, run_id="r")
        return await prune(store, Retention(delete_ended_after=timedelta(0)))

    (pruned,) = run(story()).runs
    assert (pruned.deleted, pruned.passed_over) == (False, "it has changed meanwhile")


def test_a_damaged_checkpoint_lets_nothing_of_its_run_go(clock):
    """A run that cannot be read is passed over with the reason; the next one is pruned."""

    class Rotten(InMemoryCheckpointStorage):
        async def read(self, run_id, keys):
            found = await super().read(run_id, keys)
            return {key: data[:-1] for key, data in found.items()} if run_id == "r" else found

    async def story():
        store = Rotten()
        for run_id in ("r", "s"):
            await desk(store).run(SMALL, run_id=run_id)
        return await prune(store, Retention(keep_last=1))

    first, second = run(story()).runs
    assert "damaged" in first.passed_over
    assert (first.forgotten, second.forgotten) == ((), (0, 1, 2))


@pytest.mark.parametrize("seed", [2, 8])
def test_every_checkpoint_that_stays_of_a_nested_run_finishes(store, seed):
    """Scopes never outlive their parents nor are they lost without them: what is kept goes on as the run did."""

    async def story():
        calls = calls_of(draw(seed), store, chance=1)
        facts = await reference_run(calls, "r")
        checkpoints = await stored_checkpoints(store, "r")
        history = RunHistory(store, "r")
        for number in range(0, len(checkpoints), 7):
            await history.tag(f"n-{number}", number)
        pruned = (await prune(store, Retention(keep_last=3))).runs[0]
        wrong = []
        left = await stored_checkpoints(store, "r")
        for checkpoint in left:
            again = calls_of(draw(seed), None, chance=2)
            copy = WorkflowCheckpoint.from_bytes(checkpoint.to_bytes())
            wrong += await Replay(again, facts, copy).compare()
        return pruned, len(checkpoints), [checkpoint.header.seq for checkpoint in left], wrong

    pruned, count, left, wrong = run(story())
    assert wrong == []
    assert left == [kept.number for kept in pruned.kept]
    assert len(left) + len(pruned.forgotten) == count
    assert len(pruned.forgotten) > count // 2


WRONG = {
    "nothing": {},
    "none of them": {"keep_last": 0},
    "a bool": {"keep_last": True},
    "seconds": {"keep_for": 3600},
    "a negative age": {"delete_ended_after": timedelta(days=-1)},
    "one status as a text": {"keep_last": 1, "ended": "IDLE"},
    "an unknown status": {"keep_last": 1, "ended": ["DONE"]},
    "runs with questions": {"keep_last": 1, "ended": [Status.IDLE_WITH_PENDING_REQUESTS]},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_retention_is_refused(case):
    """What keeps all, or makes no sense, is an error when it is made."""
    with pytest.raises(WrongCallError):
        Retention(**WRONG[case])


def test_a_wrong_call_is_refused():
    """No store, no retention, or a time without a zone."""
    store = InMemoryCheckpointStorage()
    for arguments in ((None, Retention(keep_last=1)), ("runs.db", Retention(keep_last=1)), (store, 3)):
        with pytest.raises(WrongCallError):
            run(prune(*arguments))
    with pytest.raises(WrongCallError):
        run(prune(store, Retention(keep_last=1), now=datetime.now(UTC).replace(tzinfo=None)))
