"""The health of a store with its runs: what stands still, what is damaged, what could go."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehydrate import (
    CheckpointStorage,
    Finding,
    FunctionalContext,
    HealthReport,
    InMemoryCheckpointStorage,
    Retention,
    RunFailedError,
    SqliteCheckpointStorage,
    check_health,
    workflow,
)
from rehydrate.model.checkpoint import CheckpointRef
from rehydrate.ports import Inspection
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.call.desk import Note, World, desk
from tests.stores.raw import change


def about(report: HealthReport, what: str) -> Finding:
    (one,) = [finding for finding in report.findings if finding.about == what]
    return one


def checked(store: CheckpointStorage, **options: object) -> HealthReport:
    return asyncio.run(check_health(store, **options))


@workflow(types=[bool])
async def patient(text: str, ctx: FunctionalContext) -> str:
    """Asks, and goes on without an answer after an hour."""
    asked = asyncio.ensure_future(ctx.request_info(text, response_type=bool))
    slept = asyncio.ensure_future(ctx.sleep(3600))
    await asyncio.wait({asked, slept}, return_when=asyncio.FIRST_COMPLETED)
    return text


def test_a_store_whose_runs_rest_is_well(world: World, store: CheckpointStorage) -> None:
    """Runs are counted by status, and each thing that was looked at is told."""
    flow = desk(world, store)
    asyncio.run(flow.run(Note("a"), run_id="one"))
    asyncio.run(flow.run(Note("well?"), run_id="two"))
    report = checked(store)
    assert report
    assert about(report, "runs").text == "2 runs: 1 IDLE, 1 IDLE_WITH_PENDING_REQUESTS."
    runs = [finding.about for finding in report.findings]
    assert runs[runs.index("runs") :] == ["runs", "orphaned runs", "timers", "inboxes", "records", "retention"]


def test_a_run_that_nobody_drives_is_a_problem() -> None:
    """Its owner is gone, or has handed it on; the next action is a worker. One that is driven is none."""
    clock = ManualClock()
    store = InMemoryCheckpointStorage(clock=clock)

    async def main() -> HealthReport:
        for run_id in ("lost", "left", "driven"):
            maker = CommitMaker(run_id)
            await store.commit(maker.claim({"a": b"x"}))
            if run_id == "left":
                await store.commit(maker.step({"a": b"y"}, seconds=0.0))
            if run_id == "lost":
                clock.now += 100.0
        return await check_health(store)

    told = about(asyncio.run(main()), "orphaned runs")
    assert told.level == "problem"
    assert told.text == (
        "nobody drives 1 run whose process is gone ('lost') and 1 run handed on by a process that was drained ('left')."
    )
    assert "rehydrate worker" in told.action


def test_a_timer_that_is_long_up_is_a_problem() -> None:
    """Not when it is due, but when nobody has looked for a minute."""
    store = InMemoryCheckpointStorage()
    asyncio.run(patient.run("well", run_id="run", checkpoint_storage=store))
    for late, level in ((3600 + 30, "ok"), (3600 + 90, "problem")):
        report = checked(store, now=datetime.now(UTC) + timedelta(seconds=late))
        assert about(report, "timers").level == level


def test_a_failed_run_and_a_full_inbox_are_noted(world: World, store: CheckpointStorage) -> None:
    """They are no problems of the store: somebody decides."""
    flow = desk(world, store)
    world.faults.add("clerk b")

    async def main() -> HealthReport:
        await flow.run(Note("a"), run_id="waiting")
        await flow.offer("waiting", Note("c"))
        with pytest.raises(RunFailedError):
            await flow.run(Note("b"), run_id="failed")
        return await check_health(store)

    report = asyncio.run(main())
    assert report
    assert (about(report, "failed runs").level, about(report, "inboxes").level) == ("note", "note")
    assert "'failed'" in about(report, "failed runs").text
    assert "'waiting'" in about(report, "inboxes").text


def test_a_damaged_head_is_found_and_a_damaged_past_if_all_is_asked_for(world: World, tmp_path: Path) -> None:
    """With the run, what is wrong, and where to look for what is whole."""
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteCheckpointStorage(path) as store:
            await desk(world, store).run(Note("a"), run_id="run")
            await desk(world, store).run(Note("b"), run_id="run", checkpoint="latest")
            await desk(world, store).run(Note("c"), run_id="whole")

    asyncio.run(main())

    def found(*, full: bool) -> Finding:
        async def look() -> HealthReport:
            async with SqliteCheckpointStorage(path) as store:
                return await check_health(store, full=full)

        return about(asyncio.run(look()), "records")

    assert found(full=True).level == "ok"
    first_step = "SELECT min(id) FROM rehydrate_record WHERE key LIKE '%step%' AND data IS NOT NULL"
    change(path, f"UPDATE rehydrate_record SET data = x'00' WHERE id = ({first_step})")
    assert (found(full=False).level, found(full=True).level) == ("ok", "problem")
    change(path, "UPDATE rehydrate_record SET data = x'00' WHERE id > 3")
    told = found(full=False)
    assert told.level == "problem"
    assert "'run'" in told.text


def test_a_run_that_is_deleted_while_it_is_looked_at_is_not_broken() -> None:
    """It was there when it was listed, and it is gone when its checkpoint is asked for."""

    class Emptied(InMemoryCheckpointStorage):
        async def inspect(self, ref: CheckpointRef) -> Inspection:
            await self.delete("run")
            return await super().inspect(ref)

    store = Emptied()
    asyncio.run(patient.run("well", run_id="run", checkpoint_storage=store))
    assert about(checked(store), "records").level == "ok"


def test_what_a_retention_would_let_go_is_told_and_stays(world: World, store: CheckpointStorage) -> None:
    """Without one, a long history is what is noted."""
    flow = desk(world, store)
    asyncio.run(flow.run(Note("a"), run_id="run"))
    told = about(checked(store, retention=Retention(keep_last=1)), "retention")
    assert (told.level, told.text.startswith("would go: 2 checkpoints and 0 whole runs, of 1 run;")) == ("note", True)
    assert len(asyncio.run(store.history("run"))) == 3
    assert about(checked(store), "retention").level == "ok"


def test_a_place_that_is_no_store_is_told_and_left(tmp_path: Path) -> None:
    """Its runs are not looked at, as that would make one."""

    async def main() -> HealthReport:
        async with SqliteCheckpointStorage(tmp_path / "none.db") as store:
            return await check_health(store)

    report = asyncio.run(main())
    assert not report
    assert [finding.about for finding in report.findings] == ["file"]
    assert list(tmp_path.iterdir()) == []
    assert str(report).startswith("problem: file: there is no store at ")
