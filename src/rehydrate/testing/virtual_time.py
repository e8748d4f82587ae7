"""Virtual time: an event loop in which waiting takes no time, and always the same.

Time stands still while anything runs and jumps to the next timer when nothing can happen before it: no callback is
ready, no thread is at work for this loop, and no file or socket has something. Must not let real time in.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor as Pool
from contextlib import contextmanager
from typing import Final, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

from rehydrate.ports.clock import Clock, wall_clock

Value = TypeVar("Value")
Arguments = TypeVarTuple("Arguments")
#: How long sockets and pipes are waited for in real time before time jumps, in seconds.
_IO_SECONDS: Final = 0.05


class StuckError(AssertionError):
    """Everything waits for something that nobody brings."""

    def __init__(self, patience: float, threads: int) -> None:
        waiting = f"{threads} call(s) on threads are not back" if threads else "no thread is at work"
        super().__init__(
            f"no task can go on, nobody waits for a time, and in {patience:g} real seconds nothing came; {waiting}."
            " Look for an event that is never set, or a lock that is never released."
        )


class VirtualClock(Clock):
    """The clock of a virtual time: `start` in seconds since the epoch, and what has passed since."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.start = start
        #: Seconds that have passed.
        self.passed = 0.0

    def time(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self.start + self.passed

    def advance(self, seconds: float) -> None:
        """Let time pass; whoever waits on the loop wakes up in the order of their times."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} seconds")
        self.passed += seconds


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock. `patience` is how many real seconds a thread may take: then time goes on
    without it, or, where nobody waits for a time, `StuckError` is raised."""

    def __init__(self, clock: VirtualClock, patience: float = 10.0) -> None:
        self.clock = clock
        #: Calls on threads that this loop waits for.
        self.at_work: set[object] = set()
        #: True once only what is left over is cleaned up, for which the loop waits as any other.
        self.cleans_up = False
        self._idle: WeakSet[asyncio.TimerHandle] = WeakSet()
        super().__init__(_JumpingSelector(self, patience))
        # The loop's own, a nanosecond, is lost in rounding after some months: then no timer would fire.
        vars(self)["_clock_resolution"] = 1e-6

    def time(self) -> float:
        """Return the virtual seconds that have passed."""
        return self.clock.passed

    def create_future_of_thread(self) -> asyncio.Future[object]:
        """Return a future that a thread will settle: until then time stands still."""
        future: asyncio.Future[object] = self.create_future()
        self._note(future)
        return future

    def run_in_executor(
        self, executor: Pool | None, func: Callable[[Unpack[Arguments]], Value], *args: *Arguments
    ) -> asyncio.Future[Value]:
        """Call in a thread, as `asyncio.to_thread` does: until it is back time stands still."""
        future = super().run_in_executor(executor, func, *args)
        self._note(future)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the loop's)
        """Wait for the threads of the pool without a limit: `timeout` would be over at once, in virtual time."""
        del timeout
        await super().shutdown_default_executor()

    def note_idle_timer(self, timer: asyncio.TimerHandle) -> None:
        """Note a timer that nobody waits for."""
        self._idle.add(timer)

    def next_time(self) -> float | None:
        """Return the time of the next timer that anybody waits for; `None` for none."""
        timers: list[asyncio.TimerHandle] = vars(self)["_scheduled"]  # the loop's heap; it has no public name
        waiting = (timer.when() for timer in timers if not timer.cancelled() and timer not in self._idle)
        return min(waiting, default=None)

    def _note(self, future: asyncio.Future[Value]) -> None:
        self.at_work.add(future)
        future.add_done_callback(self.at_work.discard)


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for files in real time, and for timers not at all."""

    def __init__(self, loop: VirtualLoop, patience: float) -> None:
        super().__init__()
        self._loop = loop
        self._patience = patience

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; with a timer set and nothing to wait for, jump to its time."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        until = self._loop.next_time()
        if self._loop.at_work or until is None:
            ready = super().select(self._patience)
        elif len(self.get_map()) > 1:  # files beside the loop's own pipe
            ready = super().select(_IO_SECONDS)
        if not ready:
            if until is None and self._loop.cleans_up:
                return super().select(timeout)
            if until is None:
                raise StuckError(self._patience, len(self._loop.at_work))
            self._loop.clock.advance(max(0.0, until - self._loop.time()))
        return ready


#: Virtual time is the process's, so one at a time has it.
_TURN: Final = threading.Lock()


@contextmanager
def _alone() -> Generator[None]:
    if not _TURN.acquire(blocking=False):
        raise RuntimeError("another thread of this process is in virtual time; run one after the other")
    try:
        yield
    finally:
        _TURN.release()


def run_virtually(
    main: Coroutine[object, object, Value], *, clock: VirtualClock | None = None, patience: float = 10.0
) -> Value:
    """Run a coroutine in virtual time, as `asyncio.run` does in real time: sleeps, timeouts, back-offs and leases take
    no real time.

    Everything that was given no clock of its own tells this one's time. Code that asks `time.time`, or sleeps in a
    thread, is in real time. Raises `StuckError` where nothing happens any more; see `VirtualLoop` for `patience`.
    """
    own = VirtualClock() if clock is None else clock
    try:
        with _alone(), wall_clock(own), asyncio.Runner(loop_factory=lambda: VirtualLoop(own, patience)) as runner:
            loop = runner.get_loop()
            try:
                return runner.run(main)
            finally:
                vars(loop)["cleans_up"] = True
    finally:
        main.close()
