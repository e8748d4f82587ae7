"""The invocations that run now, or wait for their next attempt: their tasks, instances, and what chains have written.

All of it can be made again from the records. It tells the actor what finished or broke and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Final, cast

import msgspec

from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import Input, InvocationBroken, InvocationFinished
from rehydrate.engine.plan import ChainKey, chain_key, invocation_name, step_key
from rehydrate.errors import InvocationTimeoutError
from rehydrate.graph.executor import Executor
from rehydrate.graph.function_body import FunctionBody
from rehydrate.model.effects import SetState, UpdateState
from rehydrate.model.events import Event, ScopeEnded
from rehydrate.model.records import DoneRecord, StepRecord
from rehydrate.model.sealed import Sealed
from rehydrate.ports import Clock

from .attempts import after_failure, seconds_to_wait
from .context import Surroundings
from .events import started
from .functional_pass import Pass
from .invocation import Invocation, make_instance
from .owner import hold
from .passes import Passes
from .remembering import Tell, nobody
from .sleeping import sleeps_until
from .state_view import ChainWrites
from .threads import some_are_out, waits_for_thread


class _Chain:
    """What a chain has written so far in a superstep, and its newest saved instance state.

    `last`: the activation that was handled last in it.
    """

    __slots__ = ("instance", "last", "writes")

    def __init__(self) -> None:
        self.last = 0
        self.writes: ChainWrites = {}
        self.instance: Sealed | None = None

    def add(self, activation: int, done: DoneRecord | InvocationFinished) -> None:
        """Take in the next finished invocation."""
        self.last = activation
        if done.instance is not None:
            self.instance = done.instance
        for effect in done.effects:
            if isinstance(effect, SetState):
                self.writes[effect.key] = [effect]  # it replaces all before it
            elif isinstance(effect, UpdateState):
                self.writes.setdefault(effect.key, []).append(effect)


#: Of an invocation that has no chain; nothing is ever added to it.
_NO_CHAIN: Final = _Chain()


class Crew:
    """Starts invocations and tells what became of them."""

    def __init__(self, around: Surroundings, tell: Tell, clock: Clock, max_concurrency: int | None) -> None:
        self.around = around
        self._tell = tell
        self._clock = clock
        self._slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        #: Attempts that somebody waits for; one that is left goes on unseen.
        self._tasks: dict[asyncio.Task[None], Invocation | Pass | None] = {}
        self._deadlines: dict[asyncio.Task[None], asyncio.TimerHandle] = {}
        #: Invocations that wait for their next attempt.
        self._waiting: dict[tuple[str, str, int], asyncio.TimerHandle] = {}
        #: By scope: the number of its superstep, and the chains of that.
        self._chains: dict[str, tuple[int, dict[ChainKey, _Chain]]] = {}
        self._instances: dict[str, dict[str, Executor]] = {}
        #: Passes of functions that run.
        self.passes = Passes()
        self._stopped = False
        self._at_rest: Callable[[], None] | None = None
        #: Scopes that are stopped, with all below them.
        self._over: list[str] = []
        self._context = copy_context()

    def is_working(self) -> bool:
        """Tell whether any invocation runs."""
        return bool(self._tasks)

    def sleeps_until(self) -> float | None:
        """Return when the first attempt begins, in seconds since the epoch, where nothing is done but to wait."""
        if self._stopped or self._at_rest is not None:
            return None
        return sleeps_until(self._tasks.values(), self._waiting.values(), self._clock)

    @property
    def is_stopped(self) -> bool:
        """Whether invocations that still run are not heard any more."""
        return self._stopped

    def begin(self, start: StartInvocation) -> None:
        """Start an invocation in a task of its own, once it is due; waiting for that holds no slot."""
        if self._starts_nothing(start.path):
            return
        if start.due is not None and (seconds := seconds_to_wait(self.around, start, self._clock)) > 0:
            place = (start.path, start.delivery.executor, start.delivery.activation)
            self._waiting[place] = asyncio.get_running_loop().call_later(seconds, self._due, place, start)
            return
        self._begin_now(start)

    def _due(self, place: tuple[str, str, int], start: StartInvocation) -> None:
        del self._waiting[place]
        self._begin_now(start)

    def _begin_now(self, start: StartInvocation) -> None:
        """Start an invocation, once the thread is back that an earlier attempt may have left behind."""
        if self._starts_nothing(start.path):
            return
        if some_are_out():
            place = (self.around.birth, start.path, start.delivery.executor, start.delivery.activation)
            if waits_for_thread(place, partial(self._begin_now, start)):
                return
        loop = asyncio.get_running_loop()
        # An invocation may be begun from the task of the one before it, whose context variables are not its own.
        self._tasks[loop.create_task(self._invoke(start), context=self._context.copy())] = None

    def hold(self, at_rest: Callable[[], None]) -> None:
        """Start no handler any more; `at_rest` is called whenever those that run have finished."""
        self._at_rest = at_rest
        for task, invocation in list(self._tasks.items()):
            if isinstance(invocation, Pass):
                invocation.hold()
            elif invocation is None:  # it waits: for its first step, for a slot, for its instance
                task.add_done_callback(self._gone)
                task.cancel()

    def stop(self, why: str) -> None:
        """Stop all invocations: their contexts are closed at once, whatever the handlers make of it."""
        if self._stopped:
            return  # a second cancellation would interrupt handlers that clean up after the first
        self._stopped = True
        self._tell = nobody  # else crew and actor hold each other, and the run is there until the collector comes
        self._at_rest = None
        for timer in (*self._waiting.values(), *self._deadlines.values()):
            timer.cancel()
        self._waiting.clear()
        for task, invocation in list(self._tasks.items()):
            if invocation is not None:
                invocation.leave(why)
            hold(task)  # one that swallows this may go on for long, and nobody else has it
            task.cancel()

    def stop_scope(self, path: str, why: str) -> None:
        """Stop the invocations in a scope and below it; nothing is told of them any more."""
        self._over.append(path)
        for place, timer in list(self._waiting.items()):
            if self._is_over(place[0]):
                timer.cancel()
                del self._waiting[place]
        for task, invocation in list(self._tasks.items()):
            if invocation is not None and self._is_over(invocation.start.path):
                invocation.leave(why)
                hold(task)
                task.cancel()

    def _starts_nothing(self, path: str) -> bool:
        """Tell whether nothing is started in a scope any more."""
        return self._stopped or self._at_rest is not None or (bool(self._over) and self._is_over(path))

    def _is_over(self, path: str) -> bool:
        return any(path == over or path.startswith(f"{over}/") for over in self._over)

    async def _invoke(self, start: StartInvocation) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        slots = self._slots
        if slots is not None and self.around.outlets.graph_at(start.path).body == start.delivery.executor:
            slots = None  # its steps take them
        told = None
        try:
            if slots is not None:
                await slots.acquire()
            try:
                work, observed = self._run(start, task), self.around.channel.observed
                told = await (work if observed is None else observed.process(start, self.around.run, work))
            finally:
                if slots is not None and task in self._tasks:  # else it was left, and has given its slot back
                    slots.release()
        finally:
            self._tasks.pop(task, None)
            if self._deadlines and (deadline := self._deadlines.pop(task, None)) is not None:
                deadline.cancel()
            self._tell_if_at_rest()
        if told is not None and not self._stopped and not (self._over and self._is_over(start.path)):
            self._tell(*told)

    async def _run(self, start: StartInvocation, task: asyncio.Task[None]) -> tuple[Input, BaseException | None] | None:
        """Run an invocation and return what is to be told of it."""
        delivery = start.delivery
        try:
            chain = _NO_CHAIN if start.alone else self._chain(start)
            executor = self.around.outlets.graph_at(start.path).executors[delivery.executor]
            policy = executor.attempt_policy
            if executor.has_instance_state:
                executor = await self._instance(start, executor, chain)
            if self._starts_nothing(start.path):
                return None
            if isinstance(executor, FunctionBody):
                return await self._run_pass(start, task, executor, chain)
            invocation = Invocation(self.around, start, executor, chain.writes)
            self._tasks[task] = invocation
            if policy is not None and policy.timeout is not None:
                invocation.began = partial(self._give_time, task, start, policy.timeout)
            if self.around.streaming:
                self.around.emit(started(start.path, delivery.executor, start.superstep, delivery.activation))
            finished, refused = await invocation.run()
        except (KeyboardInterrupt, SystemExit):  # asyncio hands these to the loop's caller
            raise
        except BaseException as error:  # user code; whatever it raised, the run must hear of it
            if self._stopped or task not in self._tasks or self._was_held(task, error) or self._is_over(start.path):
                return None
            return self._break(start, error)
        if task not in self._tasks:
            return None
        if not start.alone:
            chain.add(delivery.activation, finished)
        return finished, refused

    async def _run_pass(
        self, start: StartInvocation, task: asyncio.Task[None], body: FunctionBody, chain: _Chain
    ) -> tuple[Input, BaseException | None] | None:
        """Run a pass of a function to its next wait or its end; `None` where it was held."""
        current = Pass(self.around, start, body, chain.writes, self._hear, self._clock, self._slots)
        self._tasks[task] = current
        self.passes.add(current)
        if self.around.streaming:
            self.around.emit(started(start.path, body.id, start.superstep, start.delivery.activation))
        try:
            finished = await current.run()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # user code
            if self._stopped or task not in self._tasks or self._is_over(start.path):
                return None
            broken, cause = self._break(start, error)
            if isinstance(broken, InvocationBroken):
                broken = msgspec.structs.replace(broken, calls=current.memory.failures.to_repeat(error))
            return broken, cause
        finally:
            self.passes.remove(current)
        if finished is None or task not in self._tasks:
            return None
        if not start.alone:
            chain.add(start.delivery.activation, finished)
        return finished, None

    def _hear(self, item: Input, cause: BaseException | None) -> None:
        """Take in what a running pass tells."""
        self._tell(item, cause)

    def _was_held(self, task: asyncio.Task[None], error: BaseException) -> bool:
        """Tell whether an attempt was called off before its handler had begun."""
        held = self._at_rest is not None and isinstance(error, asyncio.CancelledError)
        return held and self._tasks[task] is None

    def _gone(self, task: asyncio.Task[None]) -> None:
        """Forget a task that was called off; before its first step it runs nothing that would."""
        self._tasks.pop(task, None)
        self._tell_if_at_rest()

    def _tell_if_at_rest(self) -> None:
        if self._at_rest is not None and not self._tasks:
            self._at_rest()

    def _give_time(self, task: asyncio.Task[None], start: StartInvocation, seconds: float) -> None:
        """Let an attempt whose handler starts now last so long at most."""
        if task in self._tasks and not self._stopped:
            loop = asyncio.get_running_loop()
            self._deadlines[task] = loop.call_later(seconds, self._expire, task, start, seconds)

    def _expire(self, task: asyncio.Task[None], start: StartInvocation, seconds: float) -> None:
        """Leave an attempt that took too long: it is cancelled, and what it makes of that is not seen."""
        del self._deadlines[task]
        invocation = self._tasks.pop(task)
        if invocation is not None:
            invocation.leave("had timed out")
        hold(task)
        task.cancel()
        if self._slots is not None:
            self._slots.release()
        if self._is_over(start.path):  # it has swallowed its cancellation, and nothing is told of it any more
            self._tell_if_at_rest()
            return
        where = f"{start.path}/{start.delivery.executor}" if start.path else start.delivery.executor
        self._tell(*self._break(start, InvocationTimeoutError(where, seconds)))
        self._tell_if_at_rest()

    def _break(self, start: StartInvocation, error: BaseException) -> tuple[Input, BaseException | None]:
        """Throw the failed attempt's instance away; the next starts from the record."""
        self._instances.get(start.path, {}).pop(start.delivery.executor, None)
        return after_failure(self.around, start, error, self._clock)

    def _chain(self, start: StartInvocation) -> _Chain:
        """Return the chain that an invocation is part of, read from the records where this process did not see it."""
        key = chain_key(start.delivery)
        superstep, mine = self._chains.get(start.path, (0, {}))
        if superstep != start.superstep:
            mine = {}
            self._chains[start.path] = start.superstep, mine
        chain = mine.get(key)
        if chain is not None and chain.last == start.before:
            return chain
        chain = mine[key] = _Chain()
        if not start.before:
            return chain
        run = self.around.run
        step: StepRecord = run.get(*step_key(start.path))
        for delivery in step.deliveries:
            if delivery.activation > start.before or chain_key(delivery) != key:
                continue
            name = invocation_name(delivery.executor, delivery.activation)
            done: DoneRecord = run.get(start.path, "done", name) or run.get(start.path, "unrouted", name)
            chain.add(delivery.activation, done)
        return chain

    async def _instance(self, start: StartInvocation, prototype: Executor, chain: _Chain) -> Executor:
        """Return the scope's own instance of an executor that has state of its own."""
        mine = self._instances.setdefault(start.path, {})
        instance = mine.get(prototype.id)
        if instance is None:
            instance = await make_instance(self.around, self.around.run, prototype, start, chain.instance)
            mine[prototype.id] = instance
        return instance

    def forget(self, events: Sequence[Event]) -> None:
        """Let go of what belongs to scopes that have ended."""
        for event in events:
            if isinstance(event, ScopeEnded):
                self._instances.pop(event.path, None)
                self._chains.pop(event.path, None)
