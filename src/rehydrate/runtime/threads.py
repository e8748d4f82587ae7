"""Daemon threads of the runtime's own, for plain `def` handlers.

A thread cannot be stopped: who cancels a call goes on without it, and what it still does is not seen. Daemons, so that
a stuck handler never keeps its process alive.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from rehydrate.ports.loops import future_of_thread

#: So many plain handlers run at once in a process; further ones wait.
MAX_THREADS: Final = 32


class _Pool:
    """Threads that wait for work; started when needed, never stopped."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._ready = threading.Condition()
        self._idle = 0
        self._threads = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Let a thread do the work."""
        with self._ready:
            self._waiting.append(work)
            if self._idle >= len(self._waiting) or self._threads >= MAX_THREADS:
                self._ready.notify()
                return
            self._threads += 1
            threading.Thread(target=self._serve, name="rehydrate handler", daemon=True).start()

    def _serve(self) -> None:
        while True:
            with self._ready:
                self._idle += 1
                while not self._waiting:
                    self._ready.wait()
                self._idle -= 1
                work = self._waiting.popleft()
            work()


class _Pools:
    """The pool of this process; the child of a fork has none of its parent's threads."""

    def __init__(self) -> None:
        self.pool = _Pool()

    def renew(self) -> None:
        """Start with no threads."""
        self.pool = _Pool()


_POOLS: Final = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.renew)


async def in_thread(function: Callable[..., object], *arguments: object) -> object:
    """Call a function in a thread, with a copy of this task's context variables; raises what it raises."""
    loop = asyncio.get_running_loop()
    future = future_of_thread(loop)
    context = contextvars.copy_context()

    def settle(result: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        if future.cancelled():  # nobody waits any more: a handler that has not begun does not begin
            return
        result: object = None
        error: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except BaseException as raised:  # user code; told to the task that waits for it
            error = (
                raised if not isinstance(raised, StopIteration) else RuntimeError("the handler raised StopIteration")
            )
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    _POOLS.pool.submit(work)
    return await future
