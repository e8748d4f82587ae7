"""The ways in which a call is stopped while it runs, and what each of them must give.

One attempt at a call is made here; what the run then stands at is for others to look at.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import cast

from rehydrate import RunStream, Status, WorkflowRunResult, drain
from rehydrate.errors import DrainingError, RunDrainedError
from rehydrate.model.events import Event
from rehydrate.runtime.draining import DrainSummary
from rehydrate.testing import claim_turns_again
from rehydrate.testing.virtual_time import VirtualLoop
from tests.differential.harness import Calls, ended
from tests.differential.moments import Trigger, Way, pause
from tests.differential.script import Step

RUN_ID = "stopped"
#: So often others may run before a run that was let go of must stand still.
_PATIENCE = 100_000
#: So many seconds a handler takes at most that is slow, and what comes of one that is not, by the time of its commit.
LONGEST, AT_ONCE = 6.0, 0.05


@dataclass
class Attempt:
    """What became of one attempt at a call: `result` where it gave one, `events` where all that was told is known.

    `end` names a stop that was made.
    """

    way: Way | None
    result: WorkflowRunResult | None = None
    events: list[Event] | None = field(default_factory=list)
    end: str = ""
    wrong: list[str] = field(default_factory=list)


async def attempt(calls: Calls, trigger: Trigger, number: int, step: Step, options: dict[str, object]) -> Attempt:
    """Make a call that is stopped where the trigger's moment comes in it."""
    given = calls.options(number, step, **options)
    made = Attempt(trigger.stop.way if trigger.stop is not None else None)
    match made.way:
        case None:
            made.result = await ended(calls.workflow.run(step.message, **given))
            made.events = list(made.result.events)
        case "drain":
            await _drained(made, trigger, calls, calls.workflow.run(step.message, **given))
        case "both":
            await _drained_and_cancelled(made, trigger, calls.workflow.run(step.message, **given))
        case "await":
            await _cancelled(made, trigger, calls.workflow.run(step.message, **given))
        case "result":
            made.events = None
            await _cancelled(made, trigger, calls.workflow.run(step.message, stream=True, **given).result())
        case "cancel":
            await _stream_cancelled(made, trigger, calls.workflow.run(step.message, stream=True, **given))
        case "leave":
            await _left(made, trigger, calls.workflow.run(step.message, stream=True, **given))
        case "drop":
            await _dropped(made, trigger, calls, step, given)
    return made


async def _drained(made: Attempt, trigger: Trigger, calls: Calls, work: Awaitable[WorkflowRunResult]) -> None:
    summaries: list[DrainSummary] = []
    began: list[float] = []
    loop = asyncio.get_running_loop()

    async def stop() -> None:
        assert trigger.stop is not None
        began.append(loop.time())
        summaries.append(await drain(trigger.stop.grace))
        began.append(loop.time())

    before = stopped(calls)
    trigger.arm(stop)
    told = ""
    try:
        made.result = await ended(work)
        made.events = list(made.result.events)
    except DrainingError:
        made.end = "refused"
    except RunDrainedError as error:
        made.result = cast("WorkflowRunResult", error.result)
        made.events, told = list(made.result.events), error.checkpoint_id
    finally:
        await trigger.done()
        claim_turns_again()
    if not summaries:
        return
    assert trigger.stop is not None
    runs = {run.run_id: (run.ended, run.checkpoint_id) for run in summaries[0].runs}
    how, saved = runs.get(made.result.run_id, ("", None)) if made.result is not None else ("", None)
    made.end = made.end or how
    if (told or None) != (saved if how in ("handed on", "cut off") else None) or (runs and not how):
        made.wrong.append(f"the drain said {runs} and the call {told!r}")
    if made.result is not None and told and made.result.status is not Status.RUNNING:
        made.wrong.append(f"a drained run is {made.result.status}")
    if how == "handed on" and stopped(calls) > before:
        made.wrong.append("the drain has stopped a handler in time")
    most = min(trigger.stop.grace, LONGEST if calls.slow else AT_ONCE)
    if isinstance(loop, VirtualLoop) and began[1] - began[0] > most + 1e-6:
        made.wrong.append(f"the drain took {began[1] - began[0]} seconds instead of {most}")


async def _drained_and_cancelled(made: Attempt, trigger: Trigger, work: Awaitable[WorkflowRunResult]) -> None:
    """Drain, and cancel the task that awaits the result somewhat later: it ends in one way or the other."""
    task = asyncio.ensure_future(ended(work))

    async def stop() -> None:
        assert trigger.stop is not None
        draining = asyncio.get_running_loop().create_task(drain(trigger.stop.grace))
        for _ in range(trigger.stop.lag):
            await asyncio.sleep(0)
        await pause(trigger.stop.seconds)
        task.cancel()
        await draining

    trigger.arm(stop)
    try:
        await asyncio.wait([task])
        await trigger.done()
    finally:
        claim_turns_again()
    made.events = None
    if task.cancelled():
        made.end = "both: cancelled"
        return
    match task.exception():
        case None:
            made.result = task.result()
        case RunDrainedError() as error:
            made.result, made.end = cast("WorkflowRunResult", error.result), "both: handed on"
        case DrainingError():
            made.end = "refused"
        case error:
            raise error


def stopped(calls: Calls) -> int:
    """How many handlers were stopped so far."""
    return 0 if calls.journal is None else len(calls.journal.stopped)


async def _cancelled(made: Attempt, trigger: Trigger, work: Awaitable[WorkflowRunResult]) -> None:
    """Cancel the task that awaits a call's result."""
    task = asyncio.ensure_future(ended(work))

    async def stop() -> None:
        task.cancel()

    trigger.arm(stop)
    await asyncio.wait([task])
    await trigger.done()
    if task.cancelled():
        made.events, made.end = None, f"{made.way}: cancelled"
        return
    made.result = task.result()
    if made.events is not None:
        made.events = list(made.result.events)
    if made.result.status is Status.CANCELLED:
        made.wrong.append("the caller was not told that it was cancelled")


async def _stream_cancelled(made: Attempt, trigger: Trigger, stream: RunStream) -> None:
    """Cancel a stream by its method, while another task reads it to its end."""
    told: list[WorkflowRunResult] = []

    async def stop() -> None:
        told.append(await stream.cancel())

    trigger.arm(stop)
    made.events = [event async for event in stream if not event.live]
    await trigger.done()
    made.result = await ended(stream.result())
    made.end = f"cancel: {made.result.status.value}" if told else ""
    if told and told[0].checkpoint_id != made.result.checkpoint_id:
        made.wrong.append("cancel() and result() told of different checkpoints")


async def _left(made: Attempt, trigger: Trigger, stream: RunStream) -> None:
    """Leave `async with` at the first event after the moment."""
    leaves = asyncio.Event()

    async def stop() -> None:
        leaves.set()

    trigger.arm(stop)
    made.events = None
    async with stream:
        async for _ in stream:
            if leaves.is_set():
                break
    await trigger.done()
    made.result = await ended(stream.result())
    made.end = f"leave: {made.result.status.value}" if leaves.is_set() else ""


async def _dropped(made: Attempt, trigger: Trigger, calls: Calls, step: Step, given: dict[str, object]) -> None:
    """Let go of a stream at the first event after the moment, and wait until nobody drives its run."""
    leaves = asyncio.Event()

    async def stop() -> None:
        leaves.set()

    trigger.arm(stop)
    made.events = None
    stream = calls.workflow.run(step.message, stream=True, **given)
    async for _ in stream:
        if leaves.is_set():
            break
    else:
        made.result = await ended(stream.result())
    await trigger.done()
    if made.result is not None:
        return
    del stream
    made.end = "drop"
    assert calls.store is not None
    for turn in range(_PATIENCE):
        head = await calls.store.head(RUN_ID)
        if head is None or head.owner is None:
            return
        if turn == 100:
            gc.collect()
        await asyncio.sleep(0)
    made.wrong.append("a run that was let go of goes on")
