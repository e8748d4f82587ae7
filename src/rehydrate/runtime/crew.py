"""The invocations that run now: their tasks, the instances of executors, and what chains have written.

All of it can be made again from the records. It tells the actor what finished or broke and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Final, cast

from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import Input, InvocationFinished
from rehydrate.engine.plan import ChainKey, chain_key, invocation_name, step_key
from rehydrate.graph.executor import Executor
from rehydrate.model.effects import SetState, UpdateState
from rehydrate.model.events import Event, ScopeEnded
from rehydrate.model.records import DoneRecord, StepRecord
from rehydrate.model.sealed import Sealed

from .context import Surroundings
from .events import started
from .invocation import Invocation, broken, make_instance
from .state_view import ChainWrites

Tell = Callable[[Input, BaseException | None], None]


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


def _nobody(item: Input, cause: BaseException | None) -> None:
    """Tell nobody."""
    del item, cause


#: Of an invocation that has no chain; nothing is ever added to it.
_NO_CHAIN: Final = _Chain()


class Crew:
    """Starts invocations and tells what became of them."""

    def __init__(self, around: Surroundings, tell: Tell, max_concurrency: int | None) -> None:
        self.around = around
        self._tell = tell
        self._slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self._tasks: dict[asyncio.Task[None], Invocation | None] = {}
        #: By scope: the number of its superstep, and the chains of that.
        self._chains: dict[str, tuple[int, dict[ChainKey, _Chain]]] = {}
        self._instances: dict[str, dict[str, Executor]] = {}
        self._stopped = False
        self._context = copy_context()

    def is_working(self) -> bool:
        """Tell whether any invocation runs."""
        return bool(self._tasks)

    def begin(self, start: StartInvocation) -> None:
        """Start an invocation in a task of its own."""
        if self._stopped:
            return
        loop = asyncio.get_running_loop()
        # An invocation may be begun from the task of the one before it, whose context variables are not its own.
        self._tasks[loop.create_task(self._invoke(start), context=self._context.copy())] = None

    def stop(self, why: str) -> None:
        """Stop all invocations: their contexts are closed at once, whatever the handlers make of it."""
        self._stopped = True
        self._tell = _nobody  # else crew and actor hold each other, and the run is there until the collector comes
        for task, invocation in list(self._tasks.items()):
            if invocation is not None and invocation.context is not None:
                invocation.context.close(why)
            task.cancel()

    async def _invoke(self, start: StartInvocation) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            if self._slots is None:
                told = await self._run(start, task)
            else:
                async with self._slots:
                    told = await self._run(start, task)
        finally:
            del self._tasks[task]
        if told is not None and not self._stopped:
            self._tell(*told)

    async def _run(self, start: StartInvocation, task: asyncio.Task[None]) -> tuple[Input, BaseException | None] | None:
        """Run an invocation and return what is to be told of it."""
        delivery = start.delivery
        try:
            chain = _NO_CHAIN if start.alone else self._chain(start)
            executor = self.around.outlets.graph_at(start.path).executors[delivery.executor]
            if executor.has_instance_state:
                executor = await self._instance(start, executor, chain)
            if self._stopped:
                return None
            invocation = Invocation(self.around, start, executor, chain.writes)
            self._tasks[task] = invocation
            if self.around.streaming:
                self.around.emit(started(start.path, delivery.executor, start.superstep, delivery.activation))
            finished, refused = await invocation.run()
        except asyncio.CancelledError as error:
            if self._stopped:
                raise
            return self._break(start, error)
        except (KeyboardInterrupt, SystemExit):  # asyncio hands these to the loop's caller
            raise
        except BaseException as error:  # user code; whatever it raised, the run must hear of it
            if self._stopped:
                raise
            return self._break(start, error)
        if not start.alone:
            chain.add(delivery.activation, finished)
        return finished, refused

    def _break(self, start: StartInvocation, error: BaseException) -> tuple[Input, BaseException]:
        """Throw the failed attempt's instance away; the next starts from the record."""
        self._instances.get(start.path, {}).pop(start.delivery.executor, None)
        return broken(start, error), error

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
