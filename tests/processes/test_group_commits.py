"""Commits of several runs share a transaction; one that loses its compare-and-set undoes only itself (section 5)."""

import asyncio
import struct

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.errors import CommitConflictError, IdempotencyKeyError
from rehydrate.model.checkpoint import Latest
from tests.processes.shop import Order, shop

NAMES = [f"r{number:03}" for number in range(100)]
#: The runs that are taken over: the first, the last, two beside each other, and some between.
TAKEN = ["r000", "r031", "r032", "r050", "r077", "r099"]


class Gate:
    """Tools that let executors wait at one entry until the gate is opened, once all are there."""

    def __init__(self, entry: str, expected: int) -> None:
        self.entry = entry
        self.expected = expected
        self.full = asyncio.Event()
        self.opened = asyncio.Event()
        self.passed: list[str] = []

    async def at(self, ctx, entry: str) -> None:
        self.passed.append(f"{ctx.run_id} {entry}")
        if entry == self.entry:
            self.expected -= 1
            if not self.expected:
                self.full.set()
            await self.opened.wait()


class OpenGate(Gate):
    """Tools that let nobody wait."""

    def __init__(self) -> None:
        super().__init__("", 0)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """A store of each kind."""
    found = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
    yield found
    asyncio.run(found.close())


def transactions(folder) -> int:
    """Count the transactions in the WAL beside a file: frames that carry the size of the database."""
    data = (folder / "runs.db-wal").read_bytes()
    page = struct.unpack(">I", data[8:12])[0]
    salt = data[16:24]
    frames = [data[place : place + 24] for place in range(32, len(data), 24 + page)]
    return sum(1 for frame in frames if frame[8:16] == salt and frame[4:8] != b"\0\0\0\0")


async def begin(workflow, gate):
    """Start all runs and return their calls once all of them wait at the gate."""
    calls = [
        asyncio.create_task(workflow.run(Order(f"order {name}"), run_id=name, resources={"tools": gate}))
        for name in NAMES
    ]
    await gate.full.wait()
    return calls


async def outputs(workflow):
    """Return what each run has to say in the end."""
    tools = {"tools": OpenGate()}
    results = [await workflow.run(checkpoint="latest", run_id=name, resources=tools) for name in NAMES]
    return [result.outputs for result in results]


@pytest.mark.parametrize("entry", ["take", "clerk", "ship"])
def test_of_many_runs_that_commit_at_once_only_those_fail_that_lost_their_head(store, entry):
    """Six of a hundred are taken over while they wait; the others' commits, in the same transactions, all hold."""

    async def main() -> None:
        workflow, gate = shop(store), Gate(entry, len(NAMES))
        calls = await begin(workflow, gate)
        tools = {"tools": OpenGate()}
        for name in TAKEN:
            call = workflow.run(checkpoint="latest", run_id=name, takeover=True, resources=tools)
            assert (await call).outputs == [f"1 of 1: order {name}"]
        taken = [await store.load(Latest(name)) for name in TAKEN]
        gate.opened.set()
        results = dict(zip(NAMES, await asyncio.gather(*calls, return_exceptions=True), strict=True))
        lost = [name for name, result in results.items() if isinstance(result, BaseException)]
        assert lost == TAKEN
        assert {type(results[name]) for name in lost} == {CommitConflictError}
        assert [await store.load(Latest(name)) for name in TAKEN] == taken
        assert await outputs(workflow) == [[f"1 of 1: order {name}"] for name in NAMES]
        for name in TAKEN:
            assert [passed for passed in gate.passed if passed.startswith(name)][-1] == f"{name} {entry}"

    asyncio.run(main())


def test_runs_that_commit_at_once_share_transactions(tmp_path):
    """The ends of a hundred runs, and six commits that are refused, take less than twenty transactions."""

    async def main() -> None:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            workflow, gate = shop(store), Gate("ship", len(NAMES))
            calls = await begin(workflow, gate)
            for name in TAKEN:
                await workflow.run(checkpoint="latest", run_id=name, takeover=True, resources={"tools": OpenGate()})
            before = transactions(tmp_path)
            gate.opened.set()
            await asyncio.gather(*calls, return_exceptions=True)
            # Some may be on their way before the others are there.
            assert 1 <= transactions(tmp_path) - before < 20

    asyncio.run(main())


def test_of_two_new_runs_with_one_key_that_are_claimed_at_once_one_exists(store):
    """Fifty keys, each with two runs, beside fifty runs without: of a claim that is refused nothing is there."""
    tools = {"tools": OpenGate()}

    async def main() -> None:
        workflow = shop(store)
        keyed = [(f"{name} {side}", f"key {name}") for name in NAMES[:50] for side in ("left", "right")]
        calls = [
            workflow.run(Order(run_id), run_id=run_id, idempotency_key=key, resources=tools) for run_id, key in keyed
        ]
        calls += [workflow.run(Order(run_id), run_id=run_id, resources=tools) for run_id in NAMES[50:]]
        results = await asyncio.gather(*calls, return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert [type(error) for error in refused] == [IdempotencyKeyError] * 50
        ended = {result.run_id: result.outputs for result in results if not isinstance(result, BaseException)}
        assert ended == {run_id: [f"1 of 1: {run_id}"] for run_id in ended}
        assert sorted(run_id.split()[0] for run_id in ended) == NAMES
        assert [header.run_id for header in await store.runs(limit=200)] == sorted(ended)

    asyncio.run(main())
