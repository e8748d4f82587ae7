"""The threads behind a PostgreSQL store, however many event loops use it.

Calls of one run are done one after the other, in the order in which they came; all else side by side. While one thread
commits, commits of others gather, and the next transaction takes all of them. No object of a loop outlives its
call. Threads end when there is nothing to do for a while, and with their store.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import deque
from typing import Final
from weakref import WeakSet

from rehydrate.errors import StoreClosedError
from rehydrate.ports.loops import future_of_thread
from rehydrate.stores.calls import answer

from .batches import Now, Single, Write, do_single, do_writes, size_of
from .connections import Connector, Link
from .forks import mind_forks

#: Threads of a store: one at a time writes commits, the others do what is done alone.
_THREADS: Final = 4
#: Bounds of one transaction: calls, and bytes of records.
_BATCH_CALLS: Final = 256
_BATCH_BYTES: Final = 16 * 1024 * 1024
#: Seconds after which a thread without work closes its connection and ends.
_IDLE_SECONDS: Final = 60.0
#: Seconds that the end of the process waits for what is on its way.
_EXIT_SECONDS: Final = 5.0


class Call:
    """Something to do, and the future of the loop that waits for it. `run_id`: the run whose other calls it follows."""

    __slots__ = ("error", "future", "loop", "result", "run_id", "work")

    def __init__(self, work: Single | Write, run_id: str | None) -> None:
        self.work = work
        self.run_id = run_id
        self.loop = asyncio.get_running_loop()
        self.future = future_of_thread(self.loop)
        self.result: object = None
        self.error: BaseException | None = None


class Worker:
    """The calls of one store object and the threads that do them; `now` is the store's clock."""

    def __init__(self, connector: Connector, now: Now) -> None:
        self._connector = connector
        self._now = now
        self._ends = False
        self._reset()
        _workers.add(self)
        mind_forks(self)

    def _reset(self) -> None:
        # Its holder can take this lock again: a collector may call `release` in the middle of anything.
        self._state = threading.Condition()
        self._singles: deque[Call] = deque()
        self._writes: deque[Call] = deque()
        #: By run that has a call on its way: the calls behind that one.
        self._behind: dict[str, deque[Call]] = {}
        self._closers: list[Call] = []
        self._threads: set[threading.Thread] = set()
        self._links: set[Link] = set()
        self._idle = 0
        self._writing = False

    async def call(self, work: Single | Write, run_id: str | None = None) -> object:
        """Do `work` on a thread, behind what was asked for the same run; a cancelled await leaves it to be done."""
        call = Call(work, run_id)
        with self._state:
            if self._ends:
                raise StoreClosedError(self._connector.place.store)
            self._take(call)
        return await call.future

    async def close(self) -> None:
        """End when all that was asked is done, and wait for that."""
        call = Call(Single(_nothing, writes=False), None)
        with self._state:
            self._closers.append(call)
            self.release()
        await call.future

    def release(self) -> None:
        """End when all that was asked is done, without waiting; from any thread, in the middle of anything."""
        with self._state:
            self._ends = True
            self._state.notify_all()
            self._answer_closers()

    def stop(self) -> None:
        """Finish what is on its way, at the end of the process."""
        self.release()
        for thread in list(self._threads):
            thread.join(_EXIT_SECONDS)

    def before_fork(self) -> None:
        """Let nobody be in the middle of changing the queues."""
        self._state.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._state.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: no threads, no calls and no connections of the parent."""
        for link in self._links:
            link.forget()
        self._connector.forget()
        self._reset()

    def _take(self, call: Call) -> None:
        if call.run_id is not None:
            behind = self._behind.get(call.run_id)
            if behind is not None:
                behind.append(call)
                return
            self._behind[call.run_id] = deque()
        self._make_ready(call)

    def _make_ready(self, call: Call) -> None:
        queue = self._singles if isinstance(call.work, Single) else self._writes
        queue.append(call)
        to_do = len(self._singles) + (1 if self._writes and not self._writing else 0)
        if to_do > self._idle and len(self._threads) < _THREADS:
            name = f"rehydrate {self._connector.place.store}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # With other threads there, one of them does it; else nobody would, nor what comes behind it.
                if not self._threads:
                    queue.pop()
                    if call.run_id is not None:
                        del self._behind[call.run_id]
                    raise
            else:
                self._threads.add(thread)
        self._state.notify()

    def _serve(self) -> None:
        link = self._connector.link()
        with self._state:
            self._links.add(link)
        try:
            while calls := self._next():
                first = calls[0]
                if isinstance(first.work, Single):
                    do_single(link, first, first.work)
                else:
                    do_writes(link, calls, self._now)
                self._done(calls)
                answer(calls)
                del calls, first  # else they, and the runs that they belong to, are kept until the next ones come
        finally:
            link.close()
            with self._state:
                self._links.discard(link)
                self._answer_closers()

    def _next(self) -> list[Call]:
        """Return what to do next: all that waits to be written together, or one that is done alone; nothing: to end."""
        with self._state:
            while True:
                if self._writes and not self._writing:
                    self._writing = True
                    return self._batch()
                if self._singles:
                    return [self._singles.popleft()]
                # What comes up behind a call that is on its way is for the thread that does it.
                if self._ends or not self._waited():
                    # From now on nobody counts on it.
                    self._threads.discard(threading.current_thread())
                    return []

    def _waited(self) -> bool:
        self._idle += 1
        woken = self._state.wait(_IDLE_SECONDS)
        self._idle -= 1
        return woken or bool(self._singles or self._writes)

    def _batch(self) -> list[Call]:
        calls: list[Call] = []
        size = 0
        while self._writes and len(calls) < _BATCH_CALLS and size < _BATCH_BYTES:
            call = self._writes.popleft()
            calls.append(call)
            size += 0 if isinstance(call.work, Single) else size_of(call.work)
        return calls

    def _done(self, calls: list[Call]) -> None:
        """Let the next call of each run come up."""
        with self._state:
            if not isinstance(calls[0].work, Single):
                self._writing = False
            for call in calls:
                if call.run_id is None:
                    continue
                behind = self._behind[call.run_id]
                if behind:
                    self._make_ready(behind.popleft())
                else:
                    del self._behind[call.run_id]
            if self._writes:
                self._state.notify()

    def _answer_closers(self) -> None:
        if self._ends and not self._threads and not self._links:
            closers, self._closers = self._closers, []
            answer(closers)


def _nothing(session: object, again: object) -> None:
    """Do nothing."""


_workers: WeakSet[Worker] = WeakSet()


@atexit.register
def _at_exit() -> None:
    for worker in list(_workers):
        worker.stop()
