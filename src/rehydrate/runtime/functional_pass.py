"""A running pass of a functional workflow: the function in a task of its own, and when it is left.

The function never sees a wait: it awaits something that never completes, and once all of it waits for the outside, the
pass is left from here, whatever the function makes of that. Nothing here changes the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from math import inf
from typing import cast

from rehydrate.engine.change import Change
from rehydrate.engine.commands import StartInvocation, TellPass
from rehydrate.engine.inputs import InvocationFinished
from rehydrate.engine.passes import pass_number, pass_seed
from rehydrate.engine.reading import busy
from rehydrate.engine.run import is_live
from rehydrate.errors import ClosedContextError
from rehydrate.graph.function_body import FunctionBody
from rehydrate.graph.step import CALLER, AnyValue
from rehydrate.model.effects import Effect
from rehydrate.model.passes import PassRecord
from rehydrate.model.sealed import Payload
from rehydrate.ports import Clock

from .branches import BRANCH
from .context import Surroundings
from .functional_context import RunningContext
from .invocation import open_payload
from .late_calls import LateCalls
from .order import Order
from .owner import hold
from .pausing import pause_effects
from .remembering import Memory, Tell
from .state_view import ChainWrites
from .waiting import Waiting, in_branch


class Pass:
    """One invocation of a function: from the message, or from where the pass waited, to its next wait or its end."""

    def __init__(
        self,
        around: Surroundings,
        start: StartInvocation,
        body: FunctionBody,
        writes: ChainWrites,
        tell: Tell,
        clock: Clock,
        slots: asyncio.Semaphore | None,
    ) -> None:
        self.around = around
        self.start = start
        self.body = body
        self.number = pass_number(start.delivery)
        self.clock = clock
        self.slots = slots
        self.record: PassRecord | None = around.run.get(start.path, "pass", str(self.number))
        self.writes = writes
        #: When timers are up that are waited for.
        self.timers: dict[str, float] = {}
        #: When steps are tried again that wait for that.
        self.retries: dict[asyncio.Future[None], float] = {}
        #: What the function has raised while steps were still running.
        self._error: BaseException | None = None
        self.closed = ""
        self.held = False
        self._late = LateCalls()
        self.waiting = Waiting(self.where, self._see_called, self._pause)
        place = self.path, body.id, self.number
        self.memory = Memory(around.run, place, self.waiting, tell, self.fault)
        self.order = Order(self.memory.known.values(), self.waiting)
        self._outcome: asyncio.Future[tuple[Effect, ...] | None] = asyncio.get_running_loop().create_future()
        self.context = RunningContext(self)

    @property
    def path(self) -> str:
        """The scope."""
        return self.start.path

    @property
    def where(self) -> str:
        """The function, with its path."""
        return f"{self.path}/{self.body.id}" if self.path else self.body.id

    @property
    def seed(self) -> str:
        """What its random values are made from."""
        return self.record.seed if self.record else pass_seed(self.around.birth, self.path, self.number)

    def _message(self) -> object:
        """Return the message of the pass, as a fresh copy."""
        payload: Payload | None = self.record.payload if self.record is not None else None
        return open_payload(self.around.codec, self.start.payloads[0] if payload is None else payload)

    async def run(self) -> InvocationFinished | None:
        """Run the function until it waits or ends; `None` where it was held. Raises what the function raises."""
        context = copy_context()
        task = context.run(self._begin)
        try:
            effects = await self._outcome
        finally:
            self.leave("had ended")
            self._let_go()
            if not task.done():
                hold(task)  # one that swallows its cancellation may go on for long, and nobody else has it
        if effects is None:
            return None
        delivery = self.start.delivery
        return InvocationFinished(self.path, delivery.executor, delivery.activation, effects)

    def _let_go(self) -> None:
        """Break the circles of references, so that nothing of a run that has ended waits for the collector."""
        self.waiting.let_go()
        self.memory.let_go()
        del self.context

    def _begin(self) -> asyncio.Task[object]:
        CALLER.set(self.context.calls)
        main = self.waiting.main
        BRANCH.set(main)
        call = self._call()
        task = main.task = asyncio.get_running_loop().create_task(in_branch(main, call))
        task.add_done_callback(self._returned)
        task.add_done_callback(lambda _: call.close())  # one that was left before it began would be missed
        return task

    async def _call(self) -> object:
        takes_context = self.body.handlers[0].takes_context
        function = cast("Callable[..., Awaitable[object]]", self.body.function)
        message = self._message()
        return await (function(message, self.context) if takes_context else function(message))

    def _returned(self, task: asyncio.Task[object]) -> None:
        if self._outcome.done():
            if not task.cancelled():
                task.exception()  # seen: what it made of being left is nobody's
            return
        try:
            value = task.result()
            changed = None if self.closed else self.memory.never_called()
            if changed is not None:
                self.fault(changed)
            else:
                self._outcome.set_result(self.context.ended_with(value))
        except BaseException as error:  # the function's, whatever it is
            self._error = error
            self._leave_if_done()

    def finish(self, effects: tuple[Effect, ...] | None) -> None:
        """Leave the function: the pass ends with these effects."""
        if not self._outcome.done():
            self._outcome.set_result(effects)

    def fault(self, error: BaseException) -> None:
        """Leave the function: the pass has failed, whatever the function would make of it."""
        if not self._outcome.done():
            self._outcome.set_exception(error)

    def leave(self, why: str) -> None:
        """Let no call do anything any more, and cancel what the function still does: none of it is seen."""
        if self.closed:
            return
        self.closed = why
        self.context.inner.close(why)
        self.waiting.close()

    def hold(self) -> None:
        """Start no step any more, and leave the function once those that run are remembered."""
        self.held = True
        self._leave_if_done()

    def sleeps_until(self) -> float | None:
        """Return when the first thing goes on by itself, in seconds since the epoch, `inf` for nothing; `None` where
        the function or a step does something now."""
        waiting = self.waiting
        if self.held or waiting.closed or waiting.running > len(self.retries) or waiting.main.all.going:
            return None
        return min((*self.timers.values(), *self.retries.values()), default=inf)

    @property
    def starts_no_step(self) -> bool:
        """Whether no attempt of a step begins any more."""
        return self.held or bool(self.closed) or self._error is not None

    def _leave_if_done(self) -> None:
        """Leave the function where it is held or has failed, and no step runs any more."""
        if self.waiting.executing:
            return
        if self._error is not None:
            self.fault(self._error)
        elif self.held:
            self.finish(None)

    async def gone(self) -> AnyValue:
        """Be cancelled: for whoever still calls once the pass is over. Who goes on calling for ever is not answered."""
        await self._late.wait(cancelled=bool(self.closed))

    def refuse_if_closed(self, call: str) -> None:
        """Raise `ClosedContextError` where the pass is over."""
        if self.closed:
            problem = f"{call} was called after the pass {self.closed}"
            raise ClosedContextError(self.where, problem, "Await everything that uses the context before returning.")

    def told(self, order: TellPass) -> None:
        """Take in that a call is saved, or that it came back."""
        self.memory.told(order)
        self.changed()

    def changed(self) -> None:
        """Look whether the pass is to be left, as something has changed that says so."""
        self._leave_if_done()
        self.waiting.changed()

    def _see_called(self) -> Callable[[str], bool]:
        """Return what tells whether a called scope can go on, or is not there: then it is to begin, or has come back
        unheard. It is good until the run changes."""
        change = Change(self.around.outlets.graph_at(""), self.around.run)
        return lambda path: not is_live(change.draft, path) or busy(change, path)

    def _pause(self) -> None:
        self.memory.note_given_up()
        try:
            self.finish(pause_effects(self))
        except BaseException as error:  # a value that cannot be stored, a condition that raised
            self.fault(error)
