"""What saves cost, in bytes: measured on stores as they are, and held against what has changed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rehydrate import (
    CheckpointStorage,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    append,
    handler,
    response_handler,
)
from rehydrate.model.checkpoint import Commit

KB = 1024
#: Bytes that a save may cost beside what has changed: its header, and what rows and files add to that.
SAVE = 4 * KB
#: By kind: how often what is new may be written, and the exponent of growth. Small parts are merged once, which makes
#: two of it; the file store keeps every commit as it is, and SQLite packs what it keeps. Whole lists would be 80 times.
GROWTH = {"memory": (2.4, 1.15), "file": (3.7, 1.15), "sqlite": (1.6, 1.05)}
#: What a superstep writes.
Act = Callable[[WorkflowContext[int, int], int], None]


@dataclass
class Log:
    """A list between other fields."""

    name: str
    lines: list[str]
    closed: bool = False


def line(number: int) -> str:
    """One KB that no other number has."""
    return f"{number:08}".ljust(KB, "x")


#: Ways to set a list whole.
SHAPES: dict[str, Callable[[list[str]], object]] = {
    "a list": lambda lines: lines,
    "a dict": lambda lines: {"name": "log", "lines": lines, "closed": False},
    "a dataclass": lambda lines: Log("log", lines),
}


class Acting(Executor):
    """Does something in each superstep, so many times."""

    def __init__(self, act: Act) -> None:
        super().__init__("act")
        self.act = act

    @handler
    async def on_left(self, left: int, ctx: WorkflowContext[int, int | Log]) -> None:
        self.act(ctx, left)
        if left > 1:
            ctx.send_message(left - 1)


class Passing(Executor):
    """Sends on what it gets."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int]) -> None:
        ctx.send_message(number)


class Ending(Executor):
    """Takes what it gets."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext) -> None:
        ctx.set_state("last", number)


class Asking(Executor):
    """Asks at a negative number; goes round as often as a positive one says."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int]) -> None:
        for question in range(-number):
            ctx.request_info(question, response_type=int)
        if number > 1:
            ctx.send_message(number - 1)

    @response_handler
    async def on_answer(self, question: int, answer: int, ctx: WorkflowContext[int]) -> None:
        ctx.set_state("answer", answer)


class CountingStore(InMemoryCheckpointStorage):
    """Counts the bytes that it is given."""

    written = 0

    async def commit(self, commit: Commit) -> None:
        await super().commit(commit)
        self.written += sum(len(put.key) + len(put.data) for put in commit.puts)


def looping(act: Act, supersteps: int) -> Workflow:
    node = Acting(act)
    builder = WorkflowBuilder("loop", node, reducers={"grown": append}, max_supersteps=supersteps + 1)
    return builder.add_edge(node, node).build()


def cost_of(act: Act, supersteps: int, kind: str, folder: Path) -> int:
    """Return the bytes that a run leaves on a store of this kind, over an empty one; in memory, those it was given."""

    async def run() -> int:
        store: CheckpointStorage
        if kind == "memory":
            store = CountingStore()
        elif kind == "file":
            store = FileCheckpointStorage(folder / "store")
        else:
            store = SqliteCheckpointStorage(folder / "store" / "runs.db")
        await looping(act, supersteps).run(supersteps, checkpoint_storage=store)
        await store.close()
        return store.written if isinstance(store, CountingStore) else size(folder / "store")

    (folder / "store").mkdir(parents=True)
    return asyncio.run(run())


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def wrong_with_constant(kind: str, folder: Path, saves: int, megabytes: int = 10) -> list[str]:
    """Save a small key beside much that stays, and without it."""
    values = [[line(1000 * number + each) for each in range(KB)] for number in range(megabytes)]

    def act(held: list[list[str]]) -> Act:
        def hold(ctx: WorkflowContext[int, int], left: int) -> None:
            for number, value in enumerate(held if ctx.superstep == 1 else []):
                ctx.set_state(f"held {number}", value)
            ctx.set_state("left", left)

        return hold

    spent: list[int] = []
    for name, held in (("without", []), ("with", values)):
        first = cost_of(act(held), 1, kind, folder / f"{name} 1")
        spent.append((cost_of(act(held), saves + 1, kind, folder / f"{name} {saves}") - first) // saves)
    without, beside = spent
    wrong = [f"{beside} bytes a save beside {megabytes} MB"] if beside > SAVE * (2 if kind != "memory" else 1) else []
    return wrong + ([f"{beside - without} bytes a save more"] if beside - without > SAVE else [])


def grows(ctx: WorkflowContext[int, int], left: int) -> None:
    """A list grows by what is contributed."""
    ctx.update_state("grown", line(left))


def set_whole(shape: Callable[[list[str]], object]) -> Act:
    """A list that is one line longer is set whole, in some shape."""

    def act(ctx: WorkflowContext[int, int], left: int) -> None:
        ctx.set_state("set", shape([line(number) for number in range(1, ctx.superstep + 1)]))

    return act


def wrong_with_growth(act: Act, kind: str, folder: Path, most: int) -> list[str]:
    """Let a list grow by 1 KB in each superstep, in a short and in a long run."""
    few, (times, steepest) = most // 4, GROWTH[kind]
    one, other = (cost_of(act, count, kind, folder / str(count)) for count in (few, most))
    new = (most - few) * KB
    wrong = [f"{other - one} bytes for {new} new ones"] if other - one > times * new else []
    exponent = math.log(other / one) / math.log(most / few)
    return wrong + ([f"bytes grow with exponent {exponent:.2f}"] if exponent > steepest else [])


def wrong_with_one_text(kind: str, folder: Path, saves: int) -> list[str]:
    """Set the same 100 KB in each superstep."""
    text = "".join(line(number) for number in range(100))
    spent = cost_of(lambda ctx, left: ctx.set_state("text", text), saves, kind, folder)
    most = len(text) * 1.1 + saves * SAVE + (256 * KB if kind == "sqlite" else 0)
    return [f"{spent} bytes for one text of {len(text)}"] if spent > most else []


async def sizes_of(flow: Workflow, message: int, before: int = 0) -> list[int]:
    """Return the bytes of records of each save of a call, oldest first; of the second one where one comes before it."""
    store, seq = InMemoryCheckpointStorage(), -1
    options: dict[str, object] = {"run_id": "r", "checkpoint_storage": store}
    if before:
        seq = (await flow.run(before, **options)).checkpoint.header.seq
        options |= {"checkpoint": "latest", "on_pending": "keep"}
    await flow.run(message, **options)
    headers = await store.history("r", limit=100_000)
    return [header.size for header in reversed(headers) if header.seq > seq][1:-1]


def pipeline(nodes: int) -> Workflow:
    """Nodes in a row."""
    row: list[Executor] = [*(Passing(f"node {number}") for number in range(nodes - 1)), Ending("last")]
    return WorkflowBuilder("pipeline", row[0], max_supersteps=nodes + 1).add_chain(row).build()


def asking(most: int) -> Workflow:
    """One executor that asks, and that goes round."""
    node = Asking("ask")
    return WorkflowBuilder("asking", node, max_supersteps=most + 2).add_edge(node, node).build()


def wrong_with_engine_data(nodes: int, supersteps: int, requests: int) -> list[str]:
    """Compare saves of small and large graphs, of early and late supersteps, beside few and many open requests."""
    few = asyncio.run(sizes_of(pipeline(10), 1))
    many = asyncio.run(sizes_of(pipeline(nodes), 1))
    wrong = [f"{max(many)} bytes a save with {nodes} nodes, {max(few)} with 10"] if max(many) > max(few) + 16 else []
    wrong += [f"{max(many)} bytes a superstep"] if max(many) > 300 else []
    steps = asyncio.run(sizes_of(asking(supersteps), supersteps))
    wrong += [f"{steps[-1]} bytes a save late, {steps[5]} early"] if steps[-1] > steps[5] + 16 else []
    one, all_ = (asyncio.run(sizes_of(asking(10), 10, before=-count)) for count in (3, requests))
    late = f"{max(all_)} bytes a save beside {requests} requests, {max(one)} beside 3"
    return wrong + ([late] if max(all_) > max(one) + 16 else [])
