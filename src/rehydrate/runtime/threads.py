"""Daemon threads of the runtime's own, for plain `def` handlers.

A thread cannot be stopped: who cancels a call goes on without it, and what it still does is not seen. Daemons, so that
a stuck handler never keeps its process alive. Until such a thread is back, nobody calls for the same invocation again.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from rehydrate.ports.loops import future_of_thread

#: So many plain handlers run at once in a process; further ones wait. Those that nobody waits for do not count.
MAX_THREADS: Final = 32
#: What a call is made for: the birth of its run, the scope, the executor and the activation.
Place: TypeAlias = tuple[str, str, str, int]
Callback: TypeAlias = Callable[[], None]


class _Work:
    """One call on its way through a thread; all of it is changed under its pool's lock."""

    __slots__ = ("back", "begun", "call", "done", "left", "place")

    def __init__(self, place: Place, call: Callback) -> None:
        self.place = place
        self.call = call
        self.begun = self.done = False
        #: Nobody waits for it any more.
        self.left = False
        #: Who is to hear of its end.
        self.back: list[Callback] = []


class _Pool:
    """Threads that wait for work; started when needed, and ended only after work that was left."""

    def __init__(self) -> None:
        self._waiting: deque[_Work] = deque()
        self._ready = threading.Condition()
        self._idle = 0
        self._threads = 0
        #: Calls that were left while they ran, by what they were made for.
        self.out: dict[Place, _Work] = {}

    def submit(self, work: _Work) -> None:
        """Let a thread do the work."""
        with self._ready:
            self._waiting.append(work)
            if self._idle >= len(self._waiting) or self._threads >= MAX_THREADS:
                self._ready.notify()
                return
            self._start()

    def leave(self, work: _Work) -> None:
        """Wait for a call no more: one that has not begun never will, and the thread of another no longer counts."""
        with self._ready:
            if work.left:
                return
            work.left = True
            if not work.begun or work.done:
                return
            self.out[work.place] = work
            self._threads -= 1
            if len(self._waiting) > self._idle:
                self._start()

    def tell_when_back(self, place: Place, callback: Callback) -> bool:
        """Call back, in the thread, when the call made for this place and left is over; `False`: there is none."""
        with self._ready:
            work = self.out.get(place)
            if work is None:
                return False
            work.back.append(callback)
            return True

    def _start(self) -> None:
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
                work.begun = not work.left
            if work.begun:
                work.call()
                if self._ended(work):
                    return
            del work  # else it, and the run that it belongs to, would be kept until the next one comes

    def _ended(self, work: _Work) -> bool:
        """Note the end of a call, and tell whether its thread is one too many by now."""
        with self._ready:
            work.done = True
            if not work.left:
                return False
            if self.out.get(work.place) is work:
                del self.out[work.place]
        for callback in work.back:
            callback()
        return True


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


def some_are_out() -> bool:
    """Tell whether any thread is out with a call that was left; most often none is."""
    return bool(_POOLS.pool.out)


def waits_for_thread(place: Place, callback: Callback) -> bool:
    """Tell whether a thread is still out with an earlier attempt; then `callback` is called when it is back, in this
    task's event loop."""
    loop = asyncio.get_running_loop()
    back = future_of_thread(loop)  # so that a loop which does not live in real time waits for the thread too

    def is_back() -> None:
        _settle(back, None, None)
        callback()

    if _POOLS.pool.tell_when_back(place, partial(_call_in, loop, is_back)):
        return True
    back.cancel()
    return False


class ThreadCall:
    """A call of a plain function in a thread, with a copy of the task's context variables.

    `began` is called in the task's event loop when a thread has taken the call up.
    """

    __slots__ = ("_future", "_pool", "_work")

    def __init__(self, place: Place, began: Callback | None, function: Callable[..., object], *arguments: object):
        loop = asyncio.get_running_loop()
        future = self._future = future_of_thread(loop)
        context = contextvars.copy_context()

        def call() -> None:
            if began is not None:
                _call_in(loop, began)
            result: object = None
            error: BaseException | None = None
            try:
                result = context.run(function, *arguments)
            except BaseException as raised:  # user code; told to the task that waits for it
                stops = isinstance(raised, StopIteration)  # which no future can hold
                error = RuntimeError("the handler raised StopIteration") if stops else raised
            _call_in(loop, partial(_settle, future, result, error))

        self._work = _Work(place, call)
        self._pool = _POOLS.pool
        self._pool.submit(self._work)

    async def result(self) -> object:
        """Return what the function returned; raises what it raised."""
        try:
            return await self._future
        except asyncio.CancelledError:
            self.leave()
            raise

    def leave(self) -> None:
        """Wait for it no more."""
        self._pool.leave(self._work)


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callback) -> None:
    """Let an event loop call something; one that is closed has nobody left who waits for it."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def _settle(future: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
