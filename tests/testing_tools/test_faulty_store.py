"""`FaultyStorage`: chosen calls of a store fail, lose their reply, come late or come twice."""

import asyncio
from collections import Counter

import pytest

from rehydrate import InMemoryCheckpointStorage, RunHistory, SqliteCheckpointStorage, Status, WorkflowBuilder, executor
from rehydrate.errors import CommitConflictError, SaveFailedError, StoreFullError, StoreUnavailableError
from rehydrate.testing import Fault, FaultyStorage, run_virtually
from rehydrate.testing.contract_runs import RUN_CHECKS
from rehydrate.testing.store_contract import StoreContract
from tests.testing_tools.flows import desk


@pytest.mark.proof
class TestFaultyStorage(StoreContract):
    """Where nothing goes wrong it is the store inside; the long form."""

    @pytest.fixture
    def make_store(self):
        return lambda *, clock: FaultyStorage(InMemoryCheckpointStorage(clock=clock), Fault("fails", number=10_000))


def test_where_nothing_goes_wrong_it_is_the_store_inside():
    """It passes what the store inside passes."""

    async def scenario():
        for check in RUN_CHECKS:
            await check(lambda *, clock: FaultyStorage(InMemoryCheckpointStorage(clock=clock)))

    run_virtually(scenario())


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
    yield made
    run_virtually(made.close())


def counted():
    """Return a workflow of two executors, and how often each ran."""
    ran = Counter()

    @executor(id="first")
    async def first(text: str) -> str:
        ran["first"] += 1
        return text

    @executor(id="second")
    async def second(text: str) -> str:
        ran["second"] += 1
        return text

    return WorkflowBuilder("two", first).add_chain([first, second]).build(), ran


@pytest.mark.parametrize(
    ("does", "number", "raised", "written", "ran"),
    [
        ("fails", 1, StoreUnavailableError, 0, (1, 1)),
        ("loses reply", 1, StoreUnavailableError, 1, (1, 1)),
        ("fails", 2, SaveFailedError, 1, (2, 1)),
        ("loses reply", 2, SaveFailedError, 2, (1, 1)),
        ("fails", 3, SaveFailedError, 2, (1, 2)),
        ("loses reply", 3, SaveFailedError, 3, (1, 1)),
        ("repeats", 2, CommitConflictError, 2, (1, 1)),
    ],
)
def test_a_save_that_fails_stops_its_run_and_the_same_call_goes_on(store, does, number, raised, written, ran):
    """Before it was written or after, at the claim or later: what is written is there, and nothing of it runs again."""

    async def scenario():
        workflow, counts = counted()
        faulty = FaultyStorage(store, Fault(does, number=number))
        with pytest.raises(raised):
            await workflow.run("a", run_id="r", idempotency_key="k", checkpoint_storage=faulty)
        there = await store.history("r")
        result = await workflow.run("a", run_id="r", idempotency_key="k", checkpoint_storage=faulty)
        return len(there), result, (counts["first"], counts["second"]), faulty

    there, result, counts, faulty = run_virtually(scenario())
    assert (there, counts) == (written, ran)
    assert (result.outputs, result.status) == (["a"], Status.IDLE)
    assert faulty.happened == [f"commit {number} {does}"]


def test_a_reply_that_is_lost_at_the_end_of_a_turn_is_a_recorded_result(store):
    """The same call finds what it could not be told."""

    async def scenario():
        workflow, counts = counted()
        faulty = FaultyStorage(store, Fault("loses reply", when=lambda commit: commit.header.status is Status.IDLE))
        with pytest.raises(SaveFailedError):
            await workflow.run("a", run_id="r", idempotency_key="k", checkpoint_storage=faulty)
        return await workflow.run("a", run_id="r", idempotency_key="k", checkpoint_storage=faulty), counts

    result, counts = run_virtually(scenario())
    assert (result.replayed, result.outputs, counts["second"]) == (True, ["a"], 1)


def test_any_error_and_any_call_can_be_chosen():
    """A disk without room for large commits, a history that cannot be read; each time a copy of the error."""
    full = StoreFullError("runs.db", "the disk is full", "Free space on it.")

    async def scenario():
        large = Fault(when=lambda commit: any(len(put.data) > 5000 for put in commit.puts), error=full)
        faulty = FaultyStorage(InMemoryCheckpointStorage(), large, Fault(call="history", error=full))
        workflow, _ = counted()
        await workflow.run("small", run_id="r", checkpoint_storage=faulty)
        raised = []
        for call in (
            workflow.run("large" * 2000, checkpoint_storage=faulty),
            RunHistory(faulty, "r").entries(),
            RunHistory(faulty, "r").entries(),
        ):
            with pytest.raises(StoreFullError) as caught:
                await call
            raised.append(caught.value)
        return raised, faulty

    raised, faulty = run_virtually(scenario())
    assert len({id(error) for error in (full, *raised)}) == 4
    assert faulty.happened == ["commit 4 fails", "history 1 fails", "history 2 fails"]
    assert faulty.counts["commit"] == 4


def test_chance_is_the_same_for_one_seed():
    """So a failure can be had again."""

    async def happened(seed):
        faulty = FaultyStorage(InMemoryCheckpointStorage(), Fault(call="head", chance=0.3), seed=seed)
        for _ in range(50):
            try:
                await faulty.head("r")
            except StoreUnavailableError:
                continue
        return faulty.happened

    first, again, other = (run_virtually(happened(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert 5 < len(first) < 25


def test_a_slow_store_takes_virtual_time():
    """Each commit comes later, and the run takes so much longer."""

    async def scenario():
        workflow, _ = counted()
        faulty = FaultyStorage(InMemoryCheckpointStorage(), Fault("delays", seconds=100))
        result = await workflow.run("a", checkpoint_storage=faulty)
        return result.outputs, faulty.counts, asyncio.get_running_loop().time()

    outputs, counts, seconds = run_virtually(scenario())
    assert (outputs, counts["commit"], seconds) == (["a"], 3, 300.0)


def test_a_run_with_questions_goes_on_over_a_store_that_fails_often():
    """A caller that makes the same call again comes to the end, whichever commits were lost."""

    async def again(call):
        while True:
            try:
                return await call()
            except (StoreUnavailableError, SaveFailedError, CommitConflictError):
                continue

    async def scenario(seed):
        faults = [Fault(does, chance=0.2) for does in ("fails", "loses reply", "repeats")]
        store, workflow = FaultyStorage(InMemoryCheckpointStorage(), *faults, seed=seed), desk()
        first = await again(lambda: workflow.run("a b", idempotency_key="one", checkpoint_storage=store))
        answers = [request.answer("yes") for request in first.pending_requests]
        options = {"checkpoint": first.checkpoint_id, "responses": answers, "idempotency_key": "two"}
        last = await again(lambda: workflow.run(**options, checkpoint_storage=store))
        return last.outputs, len(store.happened)

    ends = [run_virtually(scenario(seed)) for seed in range(10)]
    assert {tuple(outputs) for outputs, _ in ends} == {("a: yes!", "b: yes!")}
    assert sum(faults for _, faults in ends) > 20


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"call": "comit"}, "no call 'comit'"),
        ({"number": 0}, "numbered from 1"),
        ({"chance": 2.0}, "between 0 and 1"),
    ],
)
def test_a_fault_that_could_never_happen_is_refused(given, said):
    """A slip in a test would otherwise be a test that shows nothing."""
    with pytest.raises(ValueError, match=said):
        Fault(**given)
