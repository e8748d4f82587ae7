"""The work of each line: what is prepared, what stands inside the clock, and that the result is right.

Only the public calls are used. Bounds and floors are in `lines`.
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

from benchmarks import workflows
from benchmarks.measure import Stopwatch, Work
from rehydrate import Retry, SqliteCheckpointStorage, Workflow
from rehydrate.model.events import OutputYielded


def supersteps(count: int, *, retry: Retry | None = None, timeout: float | None = None) -> Work:
    """Supersteps of one executor without a store; its policies, if it has some, are never needed."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.loop_of(workflows.Count("count", retry=retry, timeout=timeout), count)
        with watch:
            result = await flow.run(count)
        assert result.outputs == [1]

    return work


def durable_supersteps(count: int) -> Work:
    """The same with a commit after each."""

    async def work(place: Path, watch: Stopwatch) -> None:
        await _loop_in_store(workflows.Count("count"), count, place, watch)

    return work


def growth(count: int) -> Work:
    """A list that grows by 1 KB a superstep."""

    async def work(place: Path, watch: Stopwatch) -> None:
        await _loop_in_store(workflows.Grow("grow"), count, place, watch)

    return work


async def _loop_in_store(node: workflows.Executor, count: int, place: Path, watch: Stopwatch) -> None:
    flow = workflows.loop_of(node, count)
    async with _store(place) as store:
        await store.runs()
        with watch:
            result = await flow.run(count, checkpoint_storage=store)
    assert result.outputs == [1]


def constant_state(saves: int) -> Work:
    """10 MB written once and `saves` small saves, all inside the clock; the values are made before."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.loop_of(workflows.Hold(_values(workflows.BIG_KEYS)), saves + 1)
        async with _store(place) as store:
            await store.runs()
            with watch:
                result = await flow.run(saves, checkpoint_storage=store)
        assert result.outputs == [0]

    return work


def constant_state_saves(saves: int, megabytes: int = workflows.BIG_KEYS) -> Work:
    """The small saves beside state alone: the clock starts when the state is committed."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.loop_of(workflows.Hold(_values(megabytes), watch), saves + 1)
        async with _store(place) as store:
            result = await flow.run(saves, checkpoint_storage=store)
            watch.stop()
        assert result.outputs == [0]

    return work


def fan_out(targets: int, *, durable: bool) -> Work:
    """One message to `targets` executors and one list from all of them."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = _fan_out(targets)
        if not durable:
            with watch:
                result = await flow.run(1)
        else:
            async with _store(place) as store:
                await store.runs()
                with watch:
                    result = await flow.run(1, checkpoint_storage=store)
        assert result.outputs == [targets]

    return work


def nested(depth: int) -> Work:
    """Restore a question `depth` scopes deep with a store that was just opened, answer it, finish."""

    async def work(place: Path, watch: Stopwatch) -> None:
        async with _store(place) as store:
            paused = await workflows.nested(depth).run(1, checkpoint_storage=store)
        flow = workflows.nested(depth)
        answer = paused.pending_requests[0].answer(5)
        async with _store(place) as store:
            with watch:
                result = await flow.run(checkpoint=paused.checkpoint_id, responses=[answer], checkpoint_storage=store)
        assert result.outputs == [5]

    return work


def restore(keys: int, megabytes: int = workflows.BIG_KEYS) -> Work:
    """Restore state with a new message and a store that was just opened, until the first output is there.

    The executor reads `keys` of the values, each of 1 MB.
    """

    async def work(place: Path, watch: Stopwatch) -> None:
        async with _store(place) as store:
            before = await workflows.alone(workflows.Recall(_values(megabytes))).run(-1, checkpoint_storage=store)
        flow = workflows.alone(workflows.Recall([]))
        async with _store(place) as store:
            watch.start()
            stream = flow.run(keys, checkpoint=before.checkpoint_id, checkpoint_storage=store, stream=True)
            async for event in stream:
                if isinstance(event, OutputYielded):
                    break
            watch.stop()
            result = await stream.result()
        assert result.outputs == [keys * workflows.KB]

    return work


def runs(count: int, supersteps_each: int) -> Work:
    """Durable runs at once, on one workflow and one store."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.loop_of(workflows.Count("count"), supersteps_each)
        async with _store(place) as store:
            await store.runs()
            with watch:
                results = await asyncio.gather(
                    *[flow.run(supersteps_each, checkpoint_storage=store) for _ in range(count)]
                )
        assert [result.outputs for result in results] == [[1]] * count

    return work


def rounds(count: int) -> Work:
    """Calls one after the other, each with the last checkpoint and an answer, each up to the next question."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.alone(workflows.AskAgain("ask"))
        async with _store(place) as store:
            result = await flow.run(0, checkpoint_storage=store)
            with watch:
                for number in range(count):
                    answer = result.pending_requests[0].answer(number)
                    result = await flow.run(
                        checkpoint=result.checkpoint_id, responses=[answer], checkpoint_storage=store
                    )
        assert [request.data for request in result.pending_requests] == [count]

    return work


def children(count: int) -> Work:
    """Child scopes that start in one superstep, without a store."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.children()
        with watch:
            result = await flow.run(count)
        assert result.outputs == [2 * number for number in range(count)]

    return work


def messages(count: int) -> Work:
    """Messages to one executor in one superstep, durable."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.messages()
        async with _store(place) as store:
            await store.runs()
            with watch:
                result = await flow.run(count, checkpoint_storage=store)
        assert result.checkpoint.state["seen"] == count

    return work


def live_events(count: int) -> Work:
    """Live events of one handler that nobody reads, without a store."""

    async def work(place: Path, watch: Stopwatch) -> None:
        flow = workflows.alone(workflows.Emit(watch))
        result = await flow.run(count)
        assert result.outputs == [count]

    return work


def _store(place: Path) -> SqliteCheckpointStorage:
    return SqliteCheckpointStorage(place / "runs.db")


@functools.lru_cache(maxsize=1)
def _values(megabytes: int) -> list[list[str]]:
    return workflows.values_of_a_megabyte(megabytes)


@functools.lru_cache(maxsize=1)
def _fan_out(targets: int) -> Workflow:
    """Built once: a thousand executors take far longer to build than to run."""
    return workflows.fan_out(targets)
