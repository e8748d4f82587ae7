"""The worker: it takes up runs that nobody drives and that could go on, and leaves all others alone."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    Service,
    SqliteCheckpointStorage,
    Status,
    Worker,
    drain,
    workflow,
)
from rehydrate.errors import (
    MissingResourceError,
    RehydrateError,
    RunFailedError,
    StoreBrokenError,
    StoreClosedError,
    StoreUnavailableError,
    WrongCallError,
)
from rehydrate.testing import Fault, FaultyStorage, claim_turns_again, run_virtually
from rehydrate.testing.store_contract import ManualClock
from tests.call.desk import Gate, Note, World, desk
from tests.call.process import crash_in_new_process

run = asyncio.run


def test_a_run_whose_process_died_is_taken_up(tmp_path: Path) -> None:
    """The next look of a worker finds it and brings it to its end."""
    crash_in_new_process(tmp_path, text="a", run_id="run", crashes=["clerk a"])

    async def scenario() -> None:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            told: list[tuple[str, object]] = []
            worker = Worker(Service(store, [desk(World())]), told=lambda run_id, end: told.append((run_id, end)))
            assert await worker.finish() == 1
            assert [(run_id, end.outputs) for run_id, end in told] == [("run", ["1: a"])]
            assert await worker.finish() == 0

    run(scenario())


def test_what_is_offered_to_runs_at_rest_is_taken(world, store):
    """One turn for each offer, until every inbox is empty; runs of other workflows are left alone."""
    flow = desk(world, store)

    async def scenario() -> None:
        for name in ("a", "b"):
            await flow.run(Note(name), run_id=name)
        await flow.offer("a", Note("x"))
        await flow.offer("a", Note("y"))
        await flow.offer("b", Note("z"))
        assert await Worker(Service(store, [])).finish() == 0
        assert await Worker(Service(store, [flow]), concurrency=1).finish() >= 2
        assert await store.runs(offered=True) == []
        assert [(await store.head(name)).header.status for name in ("a", "b")] == [Status.IDLE] * 2

    run(scenario())
    assert sorted(entry for entry in world.diary if entry.startswith("clerk")) == [
        "clerk a", "clerk b", "clerk x", "clerk y", "clerk z",
    ]  # fmt: skip


def test_a_run_that_somebody_drives_is_left_alone(world, store):
    """Also where something waits in its inbox: its own turn takes that."""
    flow = desk(world, store)

    async def scenario() -> None:
        gate = world.gates["clerk a"] = Gate()
        turn = asyncio.create_task(flow.run(Note("a"), run_id="run"))
        await gate.entered.wait()
        assert await Worker(Service(store, [flow])).finish() == 0
        gate.opened.set()
        await turn

    run(scenario())
    assert world.diary.count("clerk a") == 1


@workflow(types=[bool])
async def patient(text: str, ctx: FunctionalContext) -> str:
    """Asks, and goes on without an answer after an hour."""
    asked = asyncio.ensure_future(ctx.request_info(text, response_type=bool))
    slept = asyncio.ensure_future(ctx.sleep(3600))
    done, _ = await asyncio.wait({asked, slept}, return_when=asyncio.FIRST_COMPLETED)
    return "answered" if asked in done else "nobody answered"


def test_a_run_with_a_timer_that_is_up_is_taken_up():
    """Not before; then its function goes on, whoever was asked."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        paused = await patient.run("well?", run_id="run", checkpoint_storage=store)
        assert paused.status is Status.IDLE_WITH_PENDING_REQUESTS
        ends: list[object] = []
        worker = Worker(Service(store, [patient]), told=lambda _, end: ends.append(end))
        assert await worker.finish() == 0
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=3601)
        assert await worker.finish() == 1
        assert [end.outputs for end in ends] == [["nobody answered"]]

    run_virtually(scenario())


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"every": 0}, {"every": float("nan")}])
def test_a_worker_that_could_do_nothing_is_refused(options: dict[str, object]):
    """With no run at a time, or no time between looks, it is a mistake, which is told at once."""
    with pytest.raises(WrongCallError, match="would take up nothing"):
        Worker(Service(InMemoryCheckpointStorage(), [patient]), **options)


def test_a_worker_whose_clock_is_ahead_leaves_a_timer_alone_for_a_while():
    """By the workflow's own clock the timer is not up: the run is taken up once and then left, and not for ever."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        await patient.run("well?", run_id="run", checkpoint_storage=store)
        worker = Worker(Service(store, [patient]), clock=ManualClock(4e9))
        assert await worker.finish() == 1
        assert await worker.finish() == 0
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=1.5)
        assert await worker.finish() == 1

    run_virtually(scenario())


def test_a_run_that_fails_is_told_and_not_tried_for_ever(world, store):
    """A failure is the run's end until somebody goes on with it."""
    flow = desk(world, store)
    world.faults.add("clerk b")

    async def scenario() -> list[object]:
        await flow.run(Note("a"), run_id="run")
        await flow.offer("run", Note("b"))
        ends: list[object] = []
        worker = Worker(Service(store, [flow]), told=lambda _, end: ends.append(end))
        assert await worker.finish() == 1
        assert await worker.finish() == 0
        return ends

    assert [type(end) for end in run(scenario())] == [RunFailedError]


def test_a_run_that_cannot_be_taken_up_is_tried_again_later(world, caplog: pytest.LogCaptureFixture) -> None:
    """After a second, then two, four, and so on; each time it is logged and told."""

    async def scenario() -> list[float]:
        store = InMemoryCheckpointStorage()
        flow = desk(world, store, resources={"client": str})
        await flow.run(Note("a"), run_id="run", resources={"client": "c"})
        await flow.offer("run", Note("b"))
        loop, times = asyncio.get_running_loop(), list[float]()

        def told(run_id: str, end: RehydrateError) -> None:
            assert (run_id, type(end)) == ("run", MissingResourceError)
            times.append(round(loop.time()))
            if len(times) == 4:
                working.cancel()

        worker = Worker(Service(store, [flow]), every=0.5, told=told)
        begun = round(loop.time())
        working = asyncio.ensure_future(worker.run())
        await asyncio.wait([working])
        return [time - begun for time in times]

    assert run_virtually(scenario()) == [0, 1, 3, 7]
    assert "run 'run' could not be taken up" in caplog.text


def test_a_store_that_goes_away_is_asked_again_and_the_worker_goes_on(world, caplog: pytest.LogCaptureFixture) -> None:
    """After a second, then two, four; what was offered meanwhile is taken when the store is back."""

    async def scenario() -> float:
        store = FaultyStorage(InMemoryCheckpointStorage())
        flow = desk(world, store)
        await flow.run(Note("a"), run_id="run")
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        worker = Worker(Service(store, [flow]), every=0.5, told=lambda run_id, end: ended.set())
        begun, working = loop.time(), asyncio.ensure_future(worker.run())
        await asyncio.wait([working], timeout=0.1)
        store.faults = (Fault(call="runs"),)
        await flow.offer("run", Note("b"))
        await asyncio.wait([working], timeout=5)
        store.faults = ()
        await ended.wait()
        working.cancel()
        await asyncio.wait([working])
        return loop.time() - begun

    # Looks at 0 and 0.5, the failed ones with pauses of 1, 2 and 4 seconds.
    assert run_virtually(scenario()) == pytest.approx(7.5, abs=0.01)
    told = [record.getMessage() for record in caplog.records if record.name == "rehydrate.worker"]
    assert told == [
        f"the store could not be looked into (StoreUnavailableError); it is asked again in {seconds} s"
        for seconds in (1, 2, 4)
    ]


@pytest.mark.parametrize(
    ("number", "error"),
    [(1, StoreUnavailableError("s", "p", "f")), (4, StoreBrokenError("s", "p", "f")), (4, StoreClosedError("s"))],
)
def test_a_worker_ends_where_its_store_will_never_answer(world, number: int, error: Exception) -> None:
    """One that could not be reached from the beginning, and an object that is broken or closed."""

    async def scenario() -> None:
        # A look asks three times for runs.
        store = FaultyStorage(InMemoryCheckpointStorage(), Fault(call="runs", number=number, error=error))
        await Worker(Service(store, [desk(world, store)])).run()

    with pytest.raises(type(error)):
        run_virtually(scenario())


def test_an_error_of_who_is_told_does_not_end_the_worker(world, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged by its name, and the next run is taken up."""

    async def scenario() -> list[str]:
        store = InMemoryCheckpointStorage()
        flow = desk(world, store)
        for name in ("a", "b"):
            await flow.run(Note(name), run_id=name)
        heard, both = list[str](), asyncio.Event()

        def told(run_id: str, end: object) -> None:
            heard.append(run_id)
            if len(heard) == 2:
                both.set()
            raise LookupError("of who was told")

        working = asyncio.ensure_future(Worker(Service(store, [flow]), told=told).run())
        await flow.offer("a", Note("x"))
        await asyncio.wait([working], timeout=5)
        await flow.offer("b", Note("y"))
        await both.wait()
        working.cancel()
        await asyncio.wait([working])
        return heard

    assert run_virtually(scenario()) == ["a", "b"]
    assert "run 'a' was taken up, and LookupError was raised beside it" in caplog.text


def test_a_drained_process_takes_up_nothing(world, store):
    """Its worker ends, and what waits is for another process."""
    flow = desk(world, store)

    async def scenario() -> None:
        await flow.run(Note("a"), run_id="run")
        await flow.offer("run", Note("b"))
        await drain(grace=0)
        worker = Worker(Service(store, [flow]))
        await worker.run()
        assert len(await store.offers("run")) == 1

    try:
        run(scenario())
    finally:
        claim_turns_again()
