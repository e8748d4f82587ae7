"""What is measured of calls."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, executor
from rehydrate.errors import CommitConflictError, RunFailedError, StaleCheckpointError
from tests.observers.claims import Claim, payment
from tests.observers.kit import Sdk


@pytest.fixture
def sdk() -> Sdk:
    """An SDK of its own for each test."""
    return Sdk()


def test_a_run_is_measured_from_its_question_to_its_end(sdk: Sdk) -> None:
    """Two calls, six commits, one restore, six supersteps of which two in the sub-workflow; no request is left."""
    flow = payment(sdk.observer(), store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        paused = await flow.run(Claim("c-1", 5000))
        assert sdk.measured()["open_request.count",] == 1
        await flow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])

    asyncio.run(scenario())
    assert sdk.measured() == {
        ("run.duration", "IDLE_WITH_PENDING_REQUESTS"): 1,
        ("run.duration", "IDLE"): 1,
        ("superstep.duration",): 4,
        ("superstep.duration", "review"): 2,
        ("checkpoint.save.duration",): 6,
        ("checkpoint.save.size",): 6,
        ("checkpoint.restore.duration",): 1,
        ("open_request.count",): 0,
    }


def test_units_and_bytes_are_those_of_the_store(sdk: Sdk) -> None:
    """Seconds, bytes and counted things by their UCUM names; the bytes of all commits are those of the headers."""
    store = InMemoryCheckpointStorage()
    asyncio.run(payment(sdk.observer(), store=store).run(Claim("c-1", 5000), run_id="r"))
    data = sdk.reader.get_metrics_data()
    found = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert {name: metric.unit for name, metric in found.items()} == {
        "rehydrate.run.duration": "s",
        "rehydrate.superstep.duration": "s",
        "rehydrate.checkpoint.save.duration": "s",
        "rehydrate.checkpoint.save.size": "By",
        "rehydrate.open_request.count": "{request}",
    }
    (point,) = found["rehydrate.checkpoint.save.size"].data.data_points
    assert point.sum == sum(header.size for header in asyncio.run(store.history("r")))
    assert dict(point.attributes) == {"rehydrate.workflow.name": "payment"}


def test_a_recorded_result_is_counted_as_replayed(sdk: Sdk) -> None:
    """The same call with its key again runs nothing and is counted; the first is not."""
    flow = payment(sdk.observer(), store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        for _ in range(3):
            await flow.run(Claim("c-1", 1), idempotency_key="k")

    asyncio.run(scenario())
    assert sdk.measured()["replayed_turns",] == 2
    assert sdk.measured()["run.duration", "IDLE"] == 3
    assert [span.attributes["rehydrate.turn.replayed"] for span in sdk.named("workflow.run") if not span.parent] == [
        False,
        True,
        True,
    ]


def test_conflicts_are_counted_by_what_they_met(sdk: Sdk, tmp_path) -> None:
    """A stale checkpoint, a commit that lost against a takeover, and writes to one key are each one conflict."""
    flow = payment(sdk.observer())

    async def scenario() -> None:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            first = await flow.run(Claim("a", 1), checkpoint_storage=store)
            await flow.run(Claim("b", 1), checkpoint=first, checkpoint_storage=store)
            with pytest.raises(StaleCheckpointError):
                await flow.run(Claim("c", 1), checkpoint=first, checkpoint_storage=store)
            await lose(store)

    async def lose(store: SqliteCheckpointStorage) -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()

        @executor(id="slow")
        async def slow(text: str) -> str:
            if not entered.is_set():
                entered.set()
                await go_on.wait()
            return text

        contested = WorkflowBuilder("contested", slow, observers=[sdk.observer()]).build()
        first = asyncio.ensure_future(contested.run("x", run_id="r", checkpoint_storage=store))
        await entered.wait()
        await contested.run(run_id="r", checkpoint="latest", takeover=True, checkpoint_storage=store)
        go_on.set()
        with pytest.raises(CommitConflictError):
            await first

    asyncio.run(scenario())
    conflicts = {key[1:]: count for key, count in sdk.measured().items() if key[0] == "conflicts"}
    assert conflicts == {("StaleCheckpointError",): 1, ("CommitConflictError",): 1}


def test_writes_that_conflict_are_counted(sdk: Sdk) -> None:
    """Two executors that write one key in one superstep are a conflict of that type."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    def writer(name: str):
        @executor(id=name)
        async def write(text: str, ctx: WorkflowContext) -> None:
            ctx.set_state("key", name)

        return write

    builder = WorkflowBuilder("writes", start, observers=[sdk.observer()])
    flow = builder.add_fan_out_edges(start, [writer("a"), writer("b")]).build()
    with pytest.raises(RunFailedError):
        asyncio.run(flow.run("x"))
    measured = sdk.measured()
    assert {key: count for key, count in measured.items() if key[0] == "conflicts"} == {
        ("conflicts", "StateConflictError"): 1
    }
    assert measured["run.duration", "StateConflictError", "FAILED"] == 1
