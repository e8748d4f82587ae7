"""A workflow whose messages say what handlers do, and calls of it in virtual time that can be stopped anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    add,
    append,
    handler,
)
from rehydrate.codecs.checkpoints import encode_checkpoint
from rehydrate.errors import RehydrateError, RunFailedError
from rehydrate.model.checkpoint import Commit, Latest
from tests.proof.superstep_model import EXECUTORS, Work

RUN_ID = "modelled"


@dataclass
class Weather:
    """What happens to invocations in one call, by the labels of their work, and what they read."""

    faults: Mapping[int, str] = field(default_factory=dict)
    chance: Random = field(default_factory=lambda: Random(0))
    reads: dict[int, list[list[object]]] = field(default_factory=dict)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def breathe(self) -> None:
        """Let others go on, or not."""
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            await asyncio.sleep(0)

    async def strike(self, label: int) -> None:
        """Do to an invocation that has done all that it does what is to be done to it."""
        match self.faults.get(label):
            case "fail":
                raise ConnectionError(f"work {label} fails")
            case "flaky" if len(self.reads[label]) == 1:
                raise ConnectionError(f"work {label} fails the first time")
            case "slow":
                await asyncio.get_running_loop().create_task(minute())
            case "cancel":
                self.entered.set()
                await asyncio.get_running_loop().create_future()


async def minute() -> None:
    """A minute of virtual time."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(60.0, over.set)
    await over.wait()


class Doer(Executor):
    """Does what its messages say."""

    @handler
    async def on_work(self, work: Work, ctx: WorkflowContext[Work, int]) -> None:
        weather: Weather = ctx.resources["weather"]
        seen: list[object] = []
        for op in work.ops:
            await weather.breathe()
            match op.kind:
                case "get":
                    seen.append(ctx.get_state(op.key))
                case "set":
                    ctx.set_state(op.key, [op.value] if op.key == "log" else op.value)
                case "delete":
                    ctx.delete_state(op.key)
                case "update":
                    ctx.update_state(op.key, op.value)
                case "yield":
                    ctx.yield_output(op.value)
        for target, each in work.sends:
            ctx.send_message(each, target_id=target)
        weather.reads.setdefault(work.label, []).append(seen)
        await weather.strike(work.label)


def doers(store: InMemoryCheckpointStorage) -> Workflow:
    """Three executors that can all send to one another: the second has a timeout, the third a second attempt."""
    made = [Doer("a"), Doer("b", timeout=5.0), Doer("c", retry=Retry(attempts=2, delay=1.0))]
    assert [each.id for each in made] == list(EXECUTORS)
    builder = WorkflowBuilder(
        "modelled", made[0], checkpoint_storage=store, reducers={"log": append, "sum": add}, max_supersteps=10_000
    )
    for source in made:
        for target in made:
            builder.add_edge(source, target)
    return builder.build()


class CrashingStore(InMemoryCheckpointStorage):
    """A store that stops at one of its next commits, before it or behind it."""

    left = 0
    late = False
    crashed = False

    async def commit(self, commit: Commit) -> None:
        self.left -= 1
        if self.left == 0:
            self.crashed = True
            if self.late:
                await super().commit(commit)
            raise OSError("the power is gone")
        await super().commit(commit)


class Seen(NamedTuple):
    """How a call ended, and how the stored run stands after it."""

    status: str
    outputs: list[int]
    reads: dict[int, list[list[object]]]
    checkpoint: WorkflowCheckpoint


async def called(store: CrashingStore, weather: Weather, work: Work | None, **options: object) -> Seen:
    """Make a call with everything built anew; cancel it where an invocation waits for that."""
    flow = doers(store)
    flow_run = flow.run(work, run_id=RUN_ID, resources={"weather": weather}, **options)
    call = asyncio.ensure_future(flow_run)
    entered = asyncio.ensure_future(weather.entered.wait())
    await asyncio.wait({call, entered}, return_when=asyncio.FIRST_COMPLETED)
    entered.cancel()
    if not call.done():
        call.cancel()
    status, outputs = await _end(call)
    store.left = 0
    stored = await store.load(Latest(RUN_ID))
    assert stored is not None
    checkpoint = WorkflowCheckpoint.from_bytes(encode_checkpoint(stored.header, stored.records))
    return Seen(status, outputs, weather.reads, checkpoint)


async def _end(call: asyncio.Future[object]) -> tuple[str, list[int]]:
    try:
        result = await call
        return result.status.value, result.outputs
    except asyncio.CancelledError:
        return "CANCELLED", []
    except RunFailedError as error:
        return error.result.status.value, error.result.outputs
    except (RehydrateError, OSError) as error:
        return f"{type(error).__name__}: {error}", []
