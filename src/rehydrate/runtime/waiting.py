"""What a pass waits for, by its branches, and when all of it waits for the outside.

Waits for calls are seen, and so is a branch that runs. What else the function awaits is not: tasks of its own that wait
for each other get some turns of the event loop, and something that takes time outside of a step gets a second, since it
would be done again anyway. Nothing here leaves the pass.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from types import CoroutineType
from typing import Final, TypeVar, cast

from rehydrate.errors import ClosedContextError, EffectError
from rehydrate.graph.step import CALLER, AnyValue

from .branches import BRANCH, Branch

Value = TypeVar("Value")
#: Turns of the event loop without a call after which a pass waits: where each branch is seen to wait for a call, and
#: where tasks wait for tasks that do.
_TURNS: Final = 8
_TURNS_OF_TASKS: Final = 64
#: How long a branch that is seen to wait for nothing may take without a call, in seconds.
_SECONDS: Final = 1.0


class Waiting:
    """The branches of one pass. `see_called` returns what tells, of the run as it is now, whether a called scope can go
    on by itself; `rested` is called when all of the pass waits for the outside."""

    __slots__ = (
        "_branches", "_is_patient", "_outside", "_rested", "_see_called", "_settling", "_version", "_where", "called",
        "closed", "executing", "main", "running", "tasks",
    )  # fmt: skip

    def __init__(self, where: str, see_called: Callable[[], Callable[[str], bool]], rested: Callable[[], None]) -> None:
        self._where = where
        self._see_called = see_called
        self._rested = rested
        self.main = Branch("", None)
        self._branches: dict[Branch, None] = {self.main: None}
        #: Steps that are not remembered yet, and those of them whose function runs.
        self.running = self.executing = 0
        #: Questions that are waited for.
        self._outside = 0
        #: Where called scopes are that are waited for, by call.
        self.called: OrderedDict[str, str] = OrderedDict()
        #: Tasks that run steps or wait for calls; one that only waits for what another has called is no branch.
        self.tasks: set[asyncio.Task[AnyValue] | None] = set()
        self._version = 0
        self._settling: asyncio.Handle | None = None
        #: Whether that gives time to a branch that is not seen to wait.
        self._is_patient = False
        self.closed = False

    def close(self) -> None:
        """Look no more, and cancel what the branches still do."""
        self.closed = True
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        self.tasks.update(branch.task for branch in self._branches)
        tasks = [(task, task.cancelling()) for task in self.tasks if task is not None]
        for task, before in tasks:
            if task.cancelling() == before:  # else another one has handed it on, and it may clean up after that
                task.cancel()

    def let_go(self) -> None:
        """Refer to nobody any more; it is closed, and nothing is looked at."""
        del self._see_called, self._rested
        self.tasks.clear()
        self.main.task = None

    def check(self) -> Branch:
        """Return the branch of the code that runs here, or of who made its task.

        Raises `EffectError` inside of a step and `ClosedContextError` outside of the pass.
        """
        branch = BRANCH.get()
        if CALLER.get() is None and branch is not None:
            problem = "a step uses the context, and what it does with it would not be done when the step is remembered"
            raise EffectError(self._where, problem, "Use ctx in the function of the workflow, around the step.")
        if branch is None or branch.all is not self.main.all:  # one that is over may have made the task
            problem = "the context was used from a task or thread that is not one of this pass"
            raise ClosedContextError(
                self._where, problem, "Use ctx where the function runs, or in tasks that it makes."
            )
        return branch

    def branch(self, first: str) -> Branch:
        """Return the branch that the code runs in; `first` is what a new one is named by. Raises as `check`."""
        branch = self.check()
        task = asyncio.current_task()
        if branch.task is task or task is None:
            return branch
        made = branch.of_task(task, first)
        BRANCH.set(made)
        self._branches[made] = None
        task.add_done_callback(lambda _: self._end(made))
        return made

    def is_alone(self) -> bool:
        """Tell whether the code that runs here is that of the function itself, and no other branch is seen."""
        return len(self._branches) == 1 and asyncio.current_task() is self.main.task

    def add_branch(self, name: str, parent: Branch, awaitable: Awaitable[Value]) -> asyncio.Task[Value]:
        """Begin a branch that has a number."""
        branch = Branch(name, parent)
        self._branches[branch] = None
        context = copy_context()
        context.run(BRANCH.set, branch)
        task = asyncio.get_running_loop().create_task(in_branch(branch, awaitable), context=context)
        task.add_done_callback(lambda _: self._end(branch))
        if isinstance(awaitable, CoroutineType):  # one that was cancelled before it began would be missed
            task.add_done_callback(lambda _: cast("CoroutineType[AnyValue, AnyValue, AnyValue]", awaitable).close())
        return task

    def _end(self, branch: Branch) -> None:
        branch.end()
        branch.task = None
        if not self.closed:
            self._branches.pop(branch, None)
            self.changed()

    async def for_nothing(self) -> AnyValue:
        """Wait for what never comes: a call that the function gave up before."""
        await self.wait(asyncio.get_running_loop().create_future())

    async def outside(self) -> None:
        """Wait for the outside; that it has come is seen when the function runs anew."""
        self._outside += 1
        try:
            await self.wait(asyncio.get_running_loop().create_future())
        finally:
            self._outside -= 1

    async def wait(self, future: Awaitable[Value]) -> Value:
        """Wait for something that no code of the function can bring about."""
        if self.closed:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        branch = BRANCH.get()  # whose code waits, whichever branch has made the call
        branch = self.main if branch is None else branch
        branch.count(task, 1)
        self.tasks.add(task)
        self.changed()
        try:
            return await future
        finally:
            self.tasks.discard(task)
            branch.count(task, -1)
            del task  # else a task that is cancelled here would keep itself: it keeps the error, and that this frame
            self.changed()

    def moved(self) -> None:
        """Note a call: the pass does something."""
        self._version += 1

    def changed(self) -> None:
        """Look whether all of the pass waits, as something has changed that says so."""
        self._version += 1
        self.look()

    def look(self) -> None:
        """Let the pass rest, unless something happens meanwhile that keeps it from that."""
        if self.closed or not self._may_rest():
            return
        seen = not self.main.all.going
        if self._settling is not None and not (seen and self._is_patient):
            return
        if self._can_called_go_on():
            return
        if self._settling is not None:
            self._settling.cancel()  # what it was to give time to is seen to wait now
            self._settling = None
        self._is_patient = not seen
        if not seen:
            self._settling = asyncio.get_running_loop().call_later(_SECONDS, self._settle, self._version, 0)
            return
        self._settle(self._version, _TURNS_OF_TASKS if self.main.all.handing else _TURNS)

    def _settle(self, version: int, turns: int) -> None:
        self._settling = None
        if self.closed:
            return
        if version != self._version or not self._may_rest():  # a step that has begun meanwhile is no call
            self.look()
        elif turns:
            self._settling = asyncio.get_running_loop().call_soon(self._settle, version, turns - 1)
        elif not self._can_called_go_on():
            self._rested()

    def _may_rest(self) -> bool:
        """Tell whether the pass waits for the outside or for called scopes, and runs no step."""
        return not self.running and (self._outside > 0 or bool(self.called))

    def _can_called_go_on(self) -> bool:
        """Tell whether a called scope can go on by itself. Each look begins where the last one found that it can, so
        that those that wait are not asked again and again."""
        can_go_on = self._see_called()
        for _ in range(len(self.called)):
            name, path = next(iter(self.called.items()))
            if can_go_on(path):
                return True
            self.called.move_to_end(name)
        return False


async def in_branch(branch: Branch, awaitable: Awaitable[Value]) -> Value:
    """Await something as the task of a branch; a task may begin before whoever makes it has it."""
    branch.task = asyncio.current_task()
    return await awaitable
