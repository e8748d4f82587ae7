"""What `benchmarks.stores` measures: one function per target, each gives rows with what was seen and the bound.

Only the public calls are used, the store protocol where rows are made without runs, and `restored`, which decodes a
head. It prints nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import store_flows, workflows
from benchmarks.measure import Stopwatch
from benchmarks.places import Place, Places
from rehydrate import Workflow, WorkflowRunResult
from rehydrate.model.checkpoint import Commit, Header, Latest, Lease, RequestRow, Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import restored

KB = 1024


@dataclass(frozen=True)
class Row:
    """One measured figure; `bound` is the highest that is right, or with `at_least` the lowest."""

    title: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def ok(self) -> bool | None:
        if self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


Rows = AsyncIterator[Row]


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the exponent of growth between the last two sizes."""
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


@dataclass(frozen=True)
class Grown:
    """What a run left on disk, in bytes, and took, in seconds; CPU time is that of all threads."""

    size: int
    wall: float
    cpu: float


async def _grown(places: Places, flow: Workflow, message: int) -> Grown:
    """Run once in an empty place."""
    with places.empty() as place:
        async with place.store() as store:
            await store.runs()
            watch = Stopwatch()
            with watch:
                await flow.run(message, checkpoint_storage=store)
        return Grown(place.size(), watch.wall, watch.cpu)


async def _empty(places: Places) -> int:
    with places.empty() as place:
        async with place.store() as store:
            await store.runs()
        return place.size()


async def growth(places: Places, largest: int) -> Rows:
    """A list that grows by 1 KB a superstep, through its reducer and set whole in three shapes."""
    empty = await _empty(places)
    sizes = [size for size in (100, 1_000, 10_000) if size <= largest]
    lines = [store_flows.line(number) for number in range(sizes[-1])]

    def flows() -> Iterator[tuple[str, Callable[[int], Workflow], bool]]:
        yield "update_state", lambda n: workflows.loop_of(workflows.Grow("grow"), n), True
        yield (
            "set_state, with a reducer",
            lambda n: store_flows.whole(lines[:n], store_flows.SHAPES["a list"], reducer=True),
            False,
        )
        for name, shape in store_flows.SHAPES.items():
            yield f"set_state, {name}", lambda n, shape=shape: store_flows.whole(lines[:n], shape), False

    for name, make, timed in flows():
        seen = [await _grown(places, make(size), size) for size in sizes]
        taken = [float(grown.size - empty) for grown in seen]
        shown = ", ".join(f"{n:,}: {grown.size / 1e6:.2f} MB" for n, grown in zip(sizes, seen, strict=True))
        yield Row(f"growth, {name}: bytes / new data", taken[-1] / (sizes[-1] * KB), "x", 1.5, note=shown)
        yield Row(f"growth, {name}: exponent of bytes", exponent(sizes, taken), "", 1.05)
        wall, cpu = exponent(sizes, [g.wall for g in seen]), exponent(sizes, [g.cpu for g in seen])
        shown = ", ".join(f"{n:,}: {grown.wall:.2f} s" for n, grown in zip(sizes, seen, strict=True))
        title, note = f"growth, {name}: exponent of time", f"{shown}; of CPU time {cpu:.2f}"
        yield Row(title, wall, "", 1.1 if timed else None, note=note)


async def edits(places: Places, megabytes: int) -> Rows:
    """A value in whose middle 1 KB changes in each superstep."""
    lines = [store_flows.line(number) for number in range(megabytes * KB)]
    times = 100
    for name, shape in store_flows.SHAPES.items():
        first = await _grown(places, store_flows.whole(lines, shape, edits=True), 0)
        grown = await _grown(places, store_flows.whole(lines, shape, edits=True), times)
        note = f"{times} changes, {grown.wall / times * 1000:.1f} ms each"
        title = f"1 KB in {megabytes} MB changed, {name}: bytes a save"
        yield Row(title, (grown.size - first.size) / times, "B", note=note)


async def constant(places: Places, saves: int) -> Rows:
    """Small saves beside 10 MB and without them."""
    sizes: list[float] = []
    seconds: list[float] = []
    big = workflows.values_of_a_megabyte()
    for values in ([], big):
        before = (await _grown(places, workflows.loop_of(workflows.Hold(values), 2), 0)).size
        taken: list[float] = []
        size = 0
        for _ in range(3):
            started = _Mark()
            flow = workflows.loop_of(workflows.Hold(values, started), saves + 1)
            size = (await _grown(places, flow, saves)).size
            taken.append(started.elapsed())
        sizes.append((size - before) / saves)
        seconds.append(statistics.median(taken) / saves)
    yield Row("10 MB that stay: bytes a save more", sizes[1] - sizes[0], "B", 4 * KB, note=f"{sizes[0]:.0f} B without")
    note = f"{seconds[0] * 1000:.2f} ms without"
    yield Row("10 MB that stay: time a save more", (seconds[1] - seconds[0]) * 1000, "ms", 2.0, note=note)


class _Mark(Stopwatch):
    """Notes when the saves begin; they end with the run, a moment before this is asked."""

    def elapsed(self) -> float:
        self.stop()
        return self.wall


async def head(places: Places, supersteps: int) -> Rows:
    """Loading the head after many supersteps and after ten, with the same state."""
    lines = [store_flows.line(supersteps - number) for number in range(supersteps)]
    pairs = {
        "a counter": (workflows.loop_of(workflows.Count("count"), supersteps), supersteps),
        "a list of 1 KB a superstep": (workflows.loop_of(workflows.Grow("grow"), supersteps), supersteps),
    }
    tens = {
        "a counter": (workflows.loop_of(workflows.Count("count"), 10), 10),
        "a list of 1 KB a superstep": (store_flows.extending(10, lines), 0),
    }
    for name, of_many in pairs.items():
        with places.empty() as one, places.empty() as other:
            found = [(place, await _filled(place, *given)) for place, given in ((one, of_many), (other, tens[name]))]
            # In turn, so that a slow moment of the machine hits both.
            taken = [[await _loaded(place, run_id) for place, run_id in found] for _ in range(9)]
        many, few = (statistics.median(times) for times in zip(*taken, strict=True))
        note = f"{many * 1000:.1f} ms after {supersteps:,}, {few * 1000:.1f} ms after 10"
        yield Row(f"head of {supersteps:,} supersteps / of 10, {name}", many / few, "x", 1.5, note=note)


async def _filled(place: Place, flow: Workflow, message: int) -> str:
    async with place.store() as store:
        return (await flow.run(message, checkpoint_storage=store)).run_id


async def _loaded(place: Place, run_id: str) -> float:
    async with place.store() as store:
        await store.head(run_id)
        started = time.perf_counter()
        stored = await store.load(Latest(run_id))
        assert stored is not None
        restored(stored)
        return time.perf_counter() - started


async def pipeline(places: Places, nodes: int) -> Rows:
    """A row of nodes, one superstep each, several times: what is there before the second run is not counted."""
    flow = store_flows.pipeline(nodes)
    runs = 10
    with places.empty() as place:
        async with place.store() as store:
            await flow.run(0, checkpoint_storage=store)
        first = place.size()
        async with place.store() as store:
            results = [await flow.run(0, checkpoint_storage=store) for _ in range(runs)]
            saves = await store.history(results[-1].run_id, limit=nodes)
        assert results[-1].outputs == [nodes - 1]
        size = (place.size() - first) / (runs * nodes)
    written = statistics.mean(header.size for header in saves)
    title = f"a pipeline of {nodes} nodes: bytes a superstep"
    yield Row(f"{title}, records", written, "B", 300, note="as the store is given them, with the message")
    yield Row(f"{title}, on disk", size, "B", 300, note="with headers, indexes, signatures, and room in pages")


async def restore(places: Places, keys: int) -> Rows:
    """10 MB restored in a fresh process to the first output, and read and decoded without the library."""
    with places.empty() as place:
        async with place.store() as store:
            flow = workflows.alone(workflows.Recall(workflows.values_of_a_megabyte()))
            before = await flow.run(-1, checkpoint_storage=store)
        taken: dict[str, list[float]] = {"bare": [], "restore": []}
        for _ in range(5):
            for what, seconds in taken.items():
                seconds.append(_in_a_fresh_process(what, places.kind, place, before.run_id, keys))
    bare, ours = (statistics.median(taken[what]) * 1000 for what in ("bare", "restore"))
    read = "all read by the handler" if keys else "not read by the handler"
    title = f"10 MB restored / read and decoded bare, {read}"
    yield Row(title, ours / bare, "x", 1.5 if places.kind == "sqlite" else None, note=f"{ours:.1f} ms / {bare:.1f} ms")


def _in_a_fresh_process(what: str, kind: str, place: Place, run_id: str, keys: int) -> float:
    asked = json.dumps([what, kind, place.name, run_id, keys])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.restored", asked],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    return float(done.stdout)


async def runs(places: Places, count: int) -> Rows:
    """Runs of five supersteps at once, and what is left of them in memory."""
    flow = workflows.loop_of(workflows.Count("count"), 5)

    async def crowd() -> float:
        with places.empty() as place:
            async with place.store() as store:
                await store.runs()
                started = time.perf_counter()
                await asyncio.gather(*[flow.run(5, checkpoint_storage=store) for _ in range(count)])
                return time.perf_counter() - started

    async def left() -> int:
        await asyncio.sleep(0)
        gc.collect()
        return len(gc.get_objects())

    await crowd()
    before = await left()
    seconds = [await crowd() for _ in range(3)]
    after = await left()
    rate = count / statistics.median(seconds)
    yield Row(f"{count:,} runs of five supersteps at once", rate, "runs/s", 1000, at_least=True)
    yield Row("objects that three times as many runs leave", after - before, "", 100, note=f"{before:,} before")


async def requests(places: Places, count: int) -> Rows:
    """Answering one request beside many others in the store, and in a run that has many."""
    in_one = max(count // 100, 1)
    flow = store_flows.asking()
    with places.empty() as place:
        async with place.store() as store:
            for number in range(100):
                await store.commit(_crowd(number, in_one))
            small = [await flow.run(1, checkpoint_storage=store) for _ in range(20)]
            large = await flow.run(in_one, checkpoint_storage=store)
            title = f"answering one of {count:,} requests in the store"
            yield Row(title, await _answered(flow, store, small) * 1000, "ms", 5.0)
            title = f"answering one of {in_one:,} requests in one run"
            yield Row(title, await _answered(flow, store, [large] * 5) * 1000, "ms", 5.0)
            for name, run_id in {"the store": None, "one run": large.run_id}.items():
                yield Row(
                    f"a page of a hundred open requests of {name}", await _paged(store, run_id) * 1000, "ms", 10.0
                )


async def _answered(flow: Workflow, store: CheckpointStorage, paused: list[WorkflowRunResult]) -> float:
    taken: list[float] = []
    for number, result in enumerate(paused):
        request_id = result.pending_requests[number % len(result.pending_requests)].request_id
        started = time.perf_counter()
        await flow.run(responses={request_id: 1}, checkpoint_storage=store)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


async def _paged(store: CheckpointStorage, run_id: str | None) -> float:
    taken: list[float] = []
    after: str | None = None
    for _ in range(20):
        started = time.perf_counter()
        page = await store.requests(run_id=run_id, after=after, limit=100)
        taken.append(time.perf_counter() - started)
        after = page[-1].request_id if page else None
    return statistics.median(taken)


def _crowd(number: int, requests: int) -> Commit:
    """A run that has open requests and no records: the rows are what is asked about."""
    run_id = f"crowd-{number:04}"
    header = Header(
        run_id=run_id, workflow="crowd", checkpoint_id=f"checkpoint-{number}", seq=0, previous_checkpoint_id=None,
        status=Status.IDLE_WITH_PENDING_REQUESTS, turn=1, superstep=1, created=0.0, pending=requests, events=0,
        records=0, digest=bytes(32),
    )  # fmt: skip
    rows = tuple(RequestRow(f"{run_id}-{n:06}", run_id, "", "open") for n in range(requests))
    return Commit(header=header, expected=None, lease=Lease("nobody", 1, 0.0, claim=True), requests=rows)
