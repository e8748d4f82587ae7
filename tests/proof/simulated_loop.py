"""Several processes in one event loop under virtual time: each can crash, stand still, and go on.

Whatever a process has scheduled goes through its gate: of one that is dead nothing happens any more, of one that stands
still it waits. Who asks the runtime for its process gets the one whose code runs. Must not know what processes do.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, cast

from rehydrate.ports.clock import wall_clock
from rehydrate.runtime import owner
from rehydrate.testing import VirtualClock
from rehydrate.testing.virtual_time import VirtualLoop

#: The process whose code runs; none for the network, the database and the clients.
PROCESS: ContextVar[SimProcess | None] = ContextVar("process", default=None)
_Held = tuple[Callable[..., object], tuple[Any, ...], Context, Sequence[Any]]


class Killed(BaseException):
    """The process of this code ends here."""


class SimClock:
    """The wall clock of one machine: it goes too fast or too slow, and somebody sets it."""

    def __init__(self, world: VirtualClock, offset: float, rate: float) -> None:
        self._world = world
        self.offset = offset
        self.rate = rate

    def time(self) -> float:
        """Return the time in seconds since the epoch."""
        return self._world.start + self._world.passed * self.rate + self.offset


class _State:
    """What `rehydrate.runtime.owner` keeps of a process."""

    def __init__(self, owner_id: str) -> None:
        self.owner = owner_id
        self.actors: dict[tuple[str, int], Any] = {}
        self.tasks: dict[Any, Any] = {}
        self.draining = False


class SimProcess:
    """One process from its start to its end."""

    def __init__(self, name: str, number: int, clock: SimClock, random: Random) -> None:
        self.name = name
        self.number = number
        self.clock = clock
        self.random = random
        self.state = _State(f"{name}.{number}")
        self.dead = False
        self.stalled = False
        self.leaving = False
        #: Told when the process is gone.
        self.on_death: list[Callable[[], None]] = []
        self._held: list[_Held] = []
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def __str__(self) -> str:
        return self.state.owner

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let the process do something."""
        return asyncio.get_running_loop().create_task(coroutine, context=self._context.copy())

    def soon(self, callback: Callable[..., object], *args: object) -> None:
        """Let the process call something."""
        asyncio.get_running_loop().call_soon(callback, *args, context=self._context.copy())

    def gate(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context, cell: Sequence[Any]
    ) -> None:
        """Call something that the process has scheduled, if it runs."""
        if self.dead:
            return
        if self.stalled:
            self._held.append((callback, args, context, cell))
        elif not (cell and cell[0].cancelled()):
            callback(*args)

    def crash(self) -> None:
        """End as a kill does."""
        if self.dead:
            return
        self.dead = True
        self._held = []
        told, self.on_death = self.on_death, []
        for tell in told:
            tell()

    def go_on(self) -> None:
        """Go on after it stood still."""
        self.stalled = False
        held, self._held = self._held, []
        loop = cast("SimLoop", asyncio.get_running_loop())
        for callback, args, context, cell in held:
            loop.call_gate(self, callback, args, context, cell)


class SimLoop(VirtualLoop):
    """A loop whose callbacks pass the gate of their process."""

    def __init__(self, clock: VirtualClock) -> None:
        #: True once the world has ended: what is dropped then must not begin anything.
        self.is_over = False
        #: Tasks of a process that is gone wait for ever: nothing of it is to be cleaned up while the world lives.
        self.kept: list[asyncio.Task[Any]] = []
        super().__init__(clock, patience=1.0)

    def note_idle_timer(self, timer: asyncio.TimerHandle) -> None:
        """Let a heartbeat come at its time also where nobody waits for it."""

    def next_time(self) -> float | None:
        """Return the time of the next timer: whoever has one waits for it."""
        timers: list[asyncio.TimerHandle] = vars(self)["_scheduled"]
        if timers and not timers[0].cancelled():
            return timers[0].when()
        return super().next_time()

    def create_task(self, coro: Any, **given: Any) -> Any:
        """Make a task, and keep it."""
        task = super().create_task(coro, **given)
        self.kept.append(task)
        return task

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call something next, if its process still runs then."""
        if self.is_over:
            return asyncio.Handle(callback, args, self, context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        own = copy_context() if context is None else context
        return self.call_gate(process, callback, args, own, ())

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Do the same: no thread is at work in a world."""
        return self.call_soon(callback, *args, context=context)

    def call_gate(self, process: SimProcess, callback: Any, args: Any, context: Context, cell: Sequence[Any]) -> Any:
        """Call something next through the gate of its process."""
        return super().call_soon(process.gate, callback, args, context, cell, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call something at a time, if its process still runs then."""
        if self.is_over:
            return asyncio.TimerHandle(when, callback, args, self, context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        own = copy_context() if context is None else context
        cell: list[asyncio.Handle] = []
        handle = super().call_at(when, process.gate, callback, args, own, cell, context=own)
        cell.append(handle)
        return handle


class _Processes:
    """Stands for the runtime's one process: the simulated one whose code runs, else the real one."""

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "_real", real)

    def __getattr__(self, name: str) -> Any:
        process = PROCESS.get()
        return getattr(self._real if process is None else process.state, name)

    def __setattr__(self, name: str, value: Any) -> None:
        process = PROCESS.get()
        setattr(self._real if process is None else process.state, name, value)


@contextmanager
def processes(clock: VirtualClock) -> Iterator[None]:
    """Let the runtime see simulated processes, and virtual time where nobody has a clock of his own."""
    real = owner._PROCESS
    setattr(owner, "_PROCESS", _Processes(real))  # noqa: B010
    try:
        with wall_clock(clock):
            yield
    finally:
        setattr(owner, "_PROCESS", real)  # noqa: B010


def run_world(main: Coroutine[Any, Any, Any], clock: VirtualClock) -> None:
    """Run a world to its end; what then still waits in it is dropped without a word."""
    loop = SimLoop(clock)
    gc.disable()  # what the collector takes, and when, is not of the seed
    try:
        with processes(clock):
            loop.run_until_complete(_to_its_end(main, loop))
    finally:
        loop.is_over = True
        loop.close()
        gc.enable()


async def _to_its_end(main: Coroutine[Any, Any, Any], loop: SimLoop) -> None:
    own = asyncio.current_task()
    try:
        await main
    finally:
        loop.is_over = True
        while loop.kept:
            task: Any = loop.kept.pop()
            if task is own or task.done():
                continue
            task._log_destroy_pending = False
            with contextlib.suppress(RuntimeError), warnings.catch_warnings():
                # It may await something while it cleans up, or hold what it was about to await.
                warnings.simplefilter("ignore", RuntimeWarning)
                task.get_coro().close()
        loop.is_over = False


async def pause(seconds: float) -> None:
    """Wait in virtual time."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, settle, over, None)
    try:
        await over
    finally:
        timer.cancel()


def settle(future: asyncio.Future[Any], value: object) -> None:
    """Give a future its value, unless it has one."""
    if not future.done():
        future.set_result(value)
