"""One run of a step: its attempts by its policy, in the task that awaits it or in a thread, until it is remembered.

Nothing of it is seen before its result is saved; where a budget stands is in the record of the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import msgspec

from rehydrate.codecs import ValueCodec
from rehydrate.errors import EffectError, InvocationTimeoutError, NotStorableError, StepFailedError
from rehydrate.graph.step import CALLER, AnyStep, AnyValue, Running
from rehydrate.ids import outer_id
from rehydrate.model.events import AttemptFailed, LiveEvent, StepFinished, StepStarted
from rehydrate.model.passes import CallRecord
from rehydrate.model.sealed import Sealed

from .attempts import seconds_left, seconds_to_next
from .causes import failure_of
from .owner import hold
from .threads import ThreadCall, some_are_out, waits_for_thread

if TYPE_CHECKING:
    from .functional_pass import Pass
    from .remembering import Call


@dataclass(frozen=True)
class StepRun:
    """The running attempt of a step: its name, its number from 1 without attempts that were lost, a key to hand to
    outside systems, which is the same for every attempt, also after a restore, and the live objects of the call, of
    which one that was not given raises `MissingResourceError`. `emit(data)` streams progress, which is not kept."""

    name: str
    attempt: int
    effect_key: str
    resources: Mapping[str, AnyValue]
    emit: Callable[[object], object]


_RUNNING: Final[ContextVar[StepRun | None]] = ContextVar("rehydrate_running_step", default=None)


def current_step() -> StepRun:
    """Return what is known of the step whose code runs here. Raises `EffectError` outside of one."""
    found = _RUNNING.get()
    if found is None:
        raise EffectError("current_step()", "no step runs here", "Call it in the function of a @step.")
    return found


async def run_step(current: Pass, step: AnyStep, sealed: Sealed, call: Call, record: CallRecord) -> AnyValue:
    """Run a step until it has a result or has failed for good, and return a fresh copy of what it returned.

    `sealed` are its arguments. Raises `StepFailedError`, also for a result that cannot be stored.
    """
    current.waiting.running += 1
    task = asyncio.current_task()
    current.waiting.tasks.add(task)
    try:
        for value in list(current.memory.unsaved):  # its arguments may come from them
            await asyncio.shield(value)
        while True:
            await _until_due(current, step, record)
            current.waiting.tasks.add(task)  # also after a wait, which takes it out
            outcome = await _attempt(current, step, sealed, call, record)
            if isinstance(outcome, Sealed):
                return codec_of(current, step).open(outcome)
            record = outcome
    except asyncio.CancelledError:
        current.memory.give_up(call, record)
        raise
    finally:
        current.waiting.tasks.discard(task)
        del task  # as in `Waiting.wait`
        current.waiting.running -= 1
        current.changed()


def codec_of(current: Pass, step: AnyStep) -> ValueCodec:
    """Return what stores a step's arguments and results: it also knows the types of the step's annotations.

    Nothing else of the function may be of these, as a process that looks at the run may not know the step.
    """
    return current.around.codec.extended(step.hints)


async def _until_due(current: Pass, step: AnyStep, record: CallRecord) -> None:
    """Wait for the next attempt of a step that has failed."""
    if record.due is None or (left := seconds_left(step.policy, record.due, current.clock)) <= 0:
        return
    up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(left, partial(settle, up))
    current.retries[up] = record.due
    try:
        await current.waiting.wait(up)
    finally:
        timer.cancel()
        del current.retries[up]


async def _attempt(current: Pass, step: AnyStep, sealed: Sealed, call: Call, record: CallRecord) -> Sealed | CallRecord:
    """Make an attempt and save what came of it; return the result, or the record of a failure that is tried again."""
    slots = current.slots
    if slots is not None:
        await slots.acquire()
    if current.starts_no_step:
        if slots is not None:
            slots.release()
        await current.gone()
    current.waiting.executing += 1
    try:
        try:
            work, observed = _execute(current, step, sealed, call, record), current.around.channel.observed
            if observed is not None:
                work = observed.step(current.start, step.name, record.failed + 1, work)
            value = await work
        except (Exception, asyncio.CancelledError) as error:  # user code
            if isinstance(error, asyncio.CancelledError) and (current.closed or _is_cancelled()):
                raise
            again = seconds_to_next(step.policy, record.failed + 1, error)
            return await _after_failure(current, step, call, record, error, again)
        finally:
            if slots is not None:
                slots.release()
        try:
            result = codec_of(current, step).seal(value)
        except NotStorableError as error:  # it has done what it does, so it is not tried again
            where = f"the result of step {step.name!r}: {error.where}".removesuffix(": ")
            refused = NotStorableError(error.type, where, error.why)
            return await _after_failure(current, step, call, record, refused, None)
        order = current.order.come_back()
        await _save(current, call, msgspec.structs.replace(record, value=result, due=None, order=order))
        _emit(current, StepFinished, step=step.name)
        return result
    finally:
        current.waiting.executing -= 1
        if current.starts_no_step:
            current.changed()


def _emit(current: Pass, kind: Callable[..., LiveEvent], **facts: object) -> None:
    """Tell whoever listens."""
    if current.around.streaming:
        start = current.start
        where = {"path": current.path, "executor_id": current.body.id, "superstep": start.superstep}
        current.around.emit(kind(**where, activation=start.delivery.activation, live=True, **facts))


async def _save(current: Pass, call: Call, record: CallRecord) -> None:
    saved = current.memory.note(call, record)
    is_dropped = False
    try:
        if saved is not None:
            await saved
        if record.order:
            await current.order.turn(record.order)
    except GeneratorExit:  # the collector takes it, when its event loop is gone
        is_dropped = True
        raise
    finally:
        if not is_dropped:
            current.order.drop(record.order)


def _is_cancelled() -> bool:
    """Tell whether it is the task that is cancelled; else a step has raised what something else was cancelled by."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _after_failure(
    current: Pass, step: AnyStep, call: Call, record: CallRecord, error: BaseException, again: float | None
) -> CallRecord:
    """Record a failed attempt and return that, or raise where there is no further one in so many seconds."""
    failed = record.failed + 1
    failure = failure_of(error, "handler")
    _emit(current, AttemptFailed, step=step.name, attempt=failed, failure=failure, again=again)
    if again is not None:
        record = msgspec.structs.replace(record, failed=failed, due=current.clock.time() + again)
        await _save(current, call, record)
        return record
    order = current.order.come_back()
    raised = StepFailedError(current.where, step.name, failure.type, failure.text)
    record = msgspec.structs.replace(record, failed=failed, due=None, failure=failure, order=order)
    current.memory.failures.add(raised, call.name)  # also where the function ends before it has its turn
    await _save(current, call, record)
    current.memory.failures.add(raised, call.name)
    raise raised from error


async def _execute(current: Pass, step: AnyStep, sealed: Sealed, call: Call, record: CallRecord) -> object:
    """Call the function with fresh copies of its arguments, and wait as long as its policy says."""
    args, kwargs = cast("tuple[tuple[object, ...], dict[str, object]]", codec_of(current, step).open(sealed))
    # Its seed tells a pass from all others, also once a migration has given its scope another path.
    key = outer_id(current.around.birth, f"step {current.seed}:{call.name}")
    timeout = step.policy.timeout if step.policy is not None else None
    _emit(current, StepStarted, step=step.name, attempt=record.failed + 1)
    began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    caller = CALLER.set(None)
    emit = current.context.inner.emit
    running = _RUNNING.set(StepRun(step.name, record.failed + 1, key, current.around.resources, emit))
    try:
        if not step.is_async:
            place = (current.around.birth, current.path, f"{current.number}:{call.name}", 0)
            await _thread_is_back(place)
            function = cast("Callable[..., object]", partial(step.function, *args, **kwargs))
            work: Running[object] = ThreadCall(place, partial(settle, began), function).result()
        else:
            work = _called(cast("Awaitable[object]", step.function(*args, **kwargs)))
            began.set_result(None)
        if timeout is None:
            return await work
        task = asyncio.get_running_loop().create_task(work)
    finally:
        CALLER.reset(caller)
        _RUNNING.reset(running)
    return await in_time(task, began, timeout, current.where, step.name)


async def _called(given: Awaitable[object]) -> object:
    return await given


async def in_time(
    task: asyncio.Task[object], began: asyncio.Future[None], seconds: float, where: str, step: str
) -> object:
    """Wait for a task so long from when it began; one that takes longer is cancelled and left, whatever it makes of
    that."""
    try:
        await asyncio.wait({task, began}, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _leave(task)
        raise
    if done:
        return task.result()
    _leave(task)
    raise InvocationTimeoutError(where, seconds, step)


def _leave(task: asyncio.Task[object]) -> None:
    hold(task)
    task.add_done_callback(lambda left: left.cancelled() or left.exception())  # seen: nobody waits for it
    task.cancel()


async def _thread_is_back(place: tuple[str, str, str, int]) -> None:
    """Wait for the thread that an earlier attempt may have left behind."""
    if not some_are_out():
        return
    back: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if waits_for_thread(place, partial(settle, back)):
        await back


def settle(future: asyncio.Future[None]) -> None:
    """Let whoever waits for a future go on."""
    if not future.done():
        future.set_result(None)
