"""A running pass of a functional workflow: the function in a task of its own, and when it is left.

The function never sees a wait: it awaits something that never completes, and once all of it waits for the outside, the
pass is left from here, whatever the function makes of that. Nothing here changes the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from typing import cast

import msgspec

from rehydrate.engine.change import Change
from rehydrate.engine.commands import StartInvocation, TellPass
from rehydrate.engine.inputs import CallNoted, Input, InvocationFinished
from rehydrate.engine.passes import has_come_back, pass_number, pass_seed
from rehydrate.engine.reading import busy
from rehydrate.engine.requests import requests_in
from rehydrate.engine.run import is_live
from rehydrate.errors import ClosedContextError, NonDeterminismError
from rehydrate.graph.function_body import FunctionBody
from rehydrate.graph.step import CALLER, AnyValue
from rehydrate.ids import slot
from rehydrate.model.effects import Effect
from rehydrate.model.passes import CallKind, CallRecord, PassRecord
from rehydrate.model.sealed import Payload, Sealed
from rehydrate.ports import Clock

from .branches import BRANCH, Branch
from .context import Surroundings
from .functional_context import RunningContext
from .invocation import open_payload
from .late_calls import LateCalls
from .owner import hold
from .pausing import pause_effects
from .state_view import ChainWrites
from .waiting import Waiting, in_branch


class Call:
    """A call at its place: the branch, its name, and what is remembered of it."""

    __slots__ = ("branch", "name", "record")

    def __init__(self, branch: Branch, name: str, record: CallRecord | None) -> None:
        self.branch = branch
        self.name = name
        self.record = record


class Question:
    """A question that is new: it is asked when the pass waits."""

    __slots__ = ("data", "response_type", "sealed")

    def __init__(self, data: object, sealed: Sealed, response_type: str) -> None:
        self.data = data
        self.sealed = sealed
        self.response_type = response_type


class Pass:
    """One invocation of a function: from the message, or from where the pass waited, to its next wait or its end."""

    def __init__(
        self,
        around: Surroundings,
        start: StartInvocation,
        body: FunctionBody,
        writes: ChainWrites,
        tell: Callable[[Input, BaseException | None], None],
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
        self._tell = tell
        self.known: dict[str, CallRecord] = dict(self._remembered())
        #: Calls that are remembered and were not made yet in this run of the function.
        self.left = set(self.known)
        self.open = self._open_questions()
        self.questions: dict[str, Question] = {}
        #: When timers are up that are waited for.
        self.timers: dict[str, float] = {}
        self.unsaved: set[asyncio.Future[None]] = set()
        #: Failures of steps that were raised, with the names of their calls, and how many calls there were before.
        self._raised: list[tuple[BaseException, str, int]] = []
        self._entered = 0
        #: What the function has raised while steps were still running.
        self._error: BaseException | None = None
        self.closed = ""
        self.held = False
        self._late = LateCalls()
        #: Calls that the function has cancelled, until it is seen to go on.
        self._given_up: dict[str, CallRecord] = {}
        self.waiting = Waiting(self.where, self._is_busy, self._pause)
        self._saves: dict[str, asyncio.Future[None]] = {}
        self._backs: dict[str, asyncio.Future[None]] = {}
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

    def _remembered(self) -> Iterator[tuple[str, CallRecord]]:
        run, prefix = self.around.run, f"{self.number}:"
        for pack in run.table(self.path, "calls").values():
            yield from ((name[len(prefix) :], call) for name, call in pack.calls.items() if name.startswith(prefix))
        for name, call in run.table(self.path, "call").items():
            if name.startswith(prefix):
                yield name[len(prefix) :], call

    def _open_questions(self) -> set[str]:
        found = requests_in(self.around.run, self.path)
        return {record.handler for _, record in found if record.activation == self.number}

    def message(self) -> object:
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
            self.close("had ended")
            if not task.done():
                hold(task)  # one that swallows its cancellation may go on for long, and nobody else has it
        if effects is None:
            return None
        delivery = self.start.delivery
        return InvocationFinished(self.path, delivery.executor, delivery.activation, effects)

    def _begin(self) -> asyncio.Task[object]:
        CALLER.set(self.context.calls)
        main = self.waiting.main
        BRANCH.set(main)
        task = asyncio.get_running_loop().create_task(in_branch(main, self._call()))
        task.add_done_callback(self._returned)
        return task

    async def _call(self) -> object:
        takes_context = self.body.handlers[0].takes_context
        function = cast("Callable[..., Awaitable[object]]", self.body.function)
        message = self.message()
        return await (function(message, self.context) if takes_context else function(message))

    def _returned(self, task: asyncio.Task[object]) -> None:
        if self._outcome.done():
            if not task.cancelled():
                task.exception()  # seen: what it made of being left is nobody's
            return
        try:
            value = task.result()
            if self.left and not self.closed:
                first = min(self.left)
                self.fault(NonDeterminismError(self.where, first, shown(self.known[first]), "not called any more"))
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

    def close(self, why: str) -> None:
        """Let no call do anything any more, and cancel what the function still does."""
        if self.closed:
            return
        self.closed = why
        self.context.inner.close(why)
        self.waiting.close()

    def leave(self, why: str) -> None:
        """Wait for it no more: whatever the function still does is not seen."""
        self.close(why)

    def hold(self) -> None:
        """Start no step any more, and leave the function once those that run are remembered."""
        self.held = True
        self._leave_if_done()

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

    def enter(self, kind: CallKind, name: str, digest: bytes) -> Call | None:
        """Return the call at this place; `None` where the function has changed, which ends the pass."""
        branch = self.waiting.branch(f"{name or kind}-{digest[:4].hex()}")
        at = branch.next_name()
        record = self.known.get(at)
        self.left.discard(at)
        same = record is not None and (record.kind, record.name) == (kind, name)
        # A migration that has changed a type takes digests away.
        if record is not None and not (same and (record.digest == digest or not record.digest)):
            now = "called with other arguments" if same else shown(CallRecord(kind, name, digest))
            self.fault(NonDeterminismError(self.where, at, shown(record), now))
            return None
        self._entered += 1
        self.waiting.moved()
        return Call(branch, at, record)

    def note(self, call: Call, record: CallRecord, *, waits: bool = True) -> asyncio.Future[None] | None:
        """Put a call, or what came back, into the record; return what is done once that is saved."""
        self._note_given_up()
        self.known[call.name] = call.record = record
        item = CallNoted(self.path, self.body.id, self.number, call.name, record, waits)
        saved = asyncio.get_running_loop().create_future() if waits else None
        if saved is not None:
            self._saves[call.name] = saved
        self._tell(item, None)
        return saved

    def ask(self, call: Call, data: object, sealed: Sealed, response_type: str) -> None:
        """Ask something of the outside, once the pass waits."""
        self.questions[call.name] = Question(data, sealed, response_type)

    def start_called(self, call: Call, record: CallRecord, callee: str, number: int, message: Sealed) -> None:
        """Let a workflow begin that is called."""
        self._note_given_up()
        self.known[call.name] = call.record = record
        item = CallNoted(
            self.path, self.body.id, self.number, call.name, record, waits=False, callee=callee, number=number,
            message=message,
        )  # fmt: skip
        self._tell(item, None)

    def give_up(self, call: Call, record: CallRecord) -> None:
        """Note that the function has cancelled a call that was under way.

        Where it goes on, that is remembered, so that it goes the same way when it runs anew, and nothing is done twice.
        """
        if not self.closed:
            known = self.known.get(call.name, record)
            self._given_up[call.name] = msgspec.structs.replace(known, due=None, given_up=True)

    def _note_given_up(self) -> None:
        while self._given_up:
            name, record = self._given_up.popitem()
            self.known[name] = record
            self._tell(CallNoted(self.path, self.body.id, self.number, name, record, waits=False), None)

    async def not_coming(self) -> AnyValue:
        """Wait for a call that the function gives up."""
        await self.waiting.wait(asyncio.get_running_loop().create_future())

    def is_lost(self, call: Call, path: str) -> bool:
        """Tell whether a workflow that was called before is not there; one that has come back, unheard yet, is not."""
        if self.around.run.get(slot(path)[0], "scope", slot(path)[1]) is not None:
            return False
        record = dict(self._remembered()).get(call.name)
        return record is None or record.value is None

    def told(self, order: TellPass) -> None:
        """Take in that a call is saved, or that it came back."""
        self.known[order.name] = order.record
        saved = self._saves.pop(order.name, None)
        if saved is not None and not saved.done():
            saved.set_result(None)
        back = self._backs.get(order.name) if has_come_back(order.record) else None
        if back is not None and not back.done():
            back.set_result(None)
        self.changed()

    async def come_back(self, call: Call) -> CallRecord:
        """Wait until a called workflow is over."""
        back = self._backs[call.name] = asyncio.get_running_loop().create_future()
        try:
            await self.waiting.wait(back)
        finally:
            self._backs.pop(call.name, None)
        return self.known[call.name]

    def changed(self) -> None:
        """Look whether the pass is to be left, as something has changed that says so."""
        self._leave_if_done()
        self.waiting.changed()

    def _is_busy(self, path: str) -> bool:
        """Tell whether a called scope can go on, or is not there: then it is to begin, or has come back unheard."""
        change = Change(self.around.outlets.graph_at(""), self.around.run)
        return not is_live(change.draft, path) or busy(change, path)

    def _pause(self) -> None:
        self._note_given_up()
        try:
            self.finish(pause_effects(self))
        except BaseException as error:  # a value that cannot be stored, a condition that raised
            self.fault(error)

    def to_repeat(self, error: BaseException) -> tuple[str, ...]:
        """Return the calls whose failures led to an error, or after which nothing was called that may have come of
        them: they are made again where the run goes on."""
        chain = list(_behind(error))
        return tuple(
            name
            for raised, name, entered in self._raised
            if entered == self._entered or any(raised is other for other in chain)
        )

    def note_failure(self, error: BaseException, call: Call) -> None:
        """Note that the failure of a step is raised in the function."""
        self._raised.append((error, call.name, self._entered))


def shown(record: CallRecord) -> str:
    """Return what a call is, for people."""
    return f"{record.kind} {record.name!r}" if record.name else record.kind


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", found).exceptions
