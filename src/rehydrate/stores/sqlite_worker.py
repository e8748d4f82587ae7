"""The thread that owns a SQLite file in this process, however many store objects and event loops use it.

Calls come through a queue and are answered through the loop that asked; no object of a loop outlives its call. What
a batch of calls does to the database is `sqlite_batch`'s. Connections and locks of a parent must not be used by the
child of a fork: SQLite keeps its own account of locks per process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from rehydrate.errors import RehydrateError, StoreClosedError, WrongCallError
from rehydrate.ports.loops import future_of_thread

from .sqlite_batch import Task, Work, serve
from .sqlite_database import Database
from .sqlite_driver import Driver

#: Bounds of one batch: calls, and bytes of records.
_BATCH_CALLS: Final = 1024
_BATCH_BYTES: Final = 16 * 1024 * 1024
#: Seconds that the end of the process waits for writes that are on their way.
_EXIT_SECONDS: Final = 5.0


class Call(Task):
    """A task, and the future of the loop that waits for it."""

    __slots__ = ("future", "loop", "size")

    def __init__(self, work: Work, *, writes: bool, size: int, alone: bool = False) -> None:
        super().__init__(work, writes=writes, alone=alone)
        self.size = size
        self.loop = asyncio.get_running_loop()
        self.future = future_of_thread(self.loop)

    def settle(self) -> None:
        """Give the answer, on the loop; a caller that was cancelled waits for none."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class _Release:
    """One store object less; `call` waits until that is done (a collected object waits for nothing)."""

    __slots__ = ("call",)

    def __init__(self, call: Call | None) -> None:
        self.call = call


class Worker:
    """The thread of one file. Store objects are counted, and the last one to be released closes the file.

    `former` is the one before it at the same path, which is over.
    """

    def __init__(self, path: str, driver: Driver, former: Worker | None = None) -> None:
        self.database = Database(path, driver)
        self._former = former
        self.users = 0
        self._queue: SimpleQueue[Call | _Release] = SimpleQueue()
        self._busy = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False

    async def call(self, work: Work, *, writes: bool = False, size: int = 0, alone: bool = False) -> object:
        """Do `work` on the thread; a cancelled await leaves it to be done."""
        call = Call(work, writes=writes, size=size, alone=alone)
        self._submit(call)
        return await call.future

    async def close(self) -> None:
        """Count one store object less and wait until what was queued before is done."""
        call = Call(_nothing, writes=False, size=0)
        self._submit(_Release(call))
        await call.future

    def release(self) -> None:
        """Count one store object less without waiting; safe in a collector's thread, so it takes no lock."""
        self._queue.put(_Release(None))

    def stop(self) -> None:
        """Finish what is queued and close the file, at the end of the process."""
        if self._thread is None:
            return
        for _ in range(self.users):
            self.release()
        self._thread.join(_EXIT_SECONDS)

    def let_go(self) -> None:
        """Free what it holds at the path; from any thread."""
        with self._busy:
            self.database.let_go()

    def before_fork(self) -> None:
        """Let no transaction and no connection be open while the process is copied."""
        self._busy.acquire()
        with contextlib.suppress(sqlite3.Error, RehydrateError):
            self.database.disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on; the connection is opened again when needed."""
        self._busy.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: no thread, no queue, no locks of the parent."""
        self.database.forget()
        self._queue = SimpleQueue()
        self._busy = threading.Lock()
        self._starting = threading.Lock()
        self._thread = None

    def _submit(self, item: Call | _Release) -> None:
        if self._thread is None:
            self._start()
        self._queue.put(item)
        # The thread looks at the queue once more after it has stopped; so do we, and one of the two sees the item.
        if self._stopped:
            self._refuse_waiting()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                name = f"rehydrate {Path(self.database.path).name}"
                self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        try:
            self._serve_until_stopped()
        finally:
            # Whatever ended the thread, nobody waits for it in vain.
            self._stopped = True
            self._refuse_waiting()

    def _serve_until_stopped(self) -> None:
        if self._former is not None:
            self._former.let_go()
            self._former = None
        while not self._stopped:
            calls, release = self._next_batch()
            if calls:
                with self._busy:
                    serve(self.database, calls)
                _answer(calls)
            if release is not None:
                self._release_one()
                _answer([release.call] if release.call else [])

    def _next_batch(self) -> tuple[list[Call], _Release | None]:
        calls: list[Call] = []
        size = 0
        item = self._queue.get()
        while isinstance(item, Call):
            calls.append(item)
            size += item.size
            if len(calls) >= _BATCH_CALLS or size >= _BATCH_BYTES:
                return calls, None
            try:
                item = self._queue.get_nowait()
            except Empty:
                return calls, None
        return calls, item

    def _release_one(self) -> None:
        if not _drop(self):
            return
        self._stopped = True
        # Nobody is left to be told of an error; a WAL that stays behind is read by whoever opens the file next.
        with self._busy, contextlib.suppress(sqlite3.Error, RehydrateError, OSError):
            self.database.close()
        _forget(self)

    def _refuse_waiting(self) -> None:
        calls: list[Call] = []
        with contextlib.suppress(Empty):
            while True:
                item = self._queue.get_nowait()
                if isinstance(item, Call):
                    item.error = StoreClosedError(self.database.store)
                    calls.append(item)
                elif item.call is not None:
                    calls.append(item.call)
        _answer(calls)


def acquire(path: str, driver: Driver) -> Worker:
    """Return the worker of a file, given by its real path, and count one store object more.

    Raises `WrongCallError` where the file is in use here with the other driver.

    Where another file than the worker's stands at the path now, or none, or reading or writing it has failed, it is a
    new worker.
    """
    with _registry:
        worker = _workers.get(path)
        if worker is None or worker.database.is_over:
            worker = _workers[path] = Worker(path, driver, former=worker)
            _open.add(worker)
        elif worker.database.driver != driver:
            raise WrongCallError(
                f"store {path!r} is in use in this process with driver={worker.database.driver!r}.",
                "Use one driver for a file in a process; two would take each other's locks away.",
            )
        worker.users += 1
        return worker


def _drop(worker: Worker) -> bool:
    with _registry:
        worker.users -= 1
        if worker.users:
            return False
        if _workers.get(worker.database.path) is worker:
            del _workers[worker.database.path]
        return True


def _forget(worker: Worker) -> None:
    with _registry:
        _open.discard(worker)


def _nothing(database: Database) -> None:
    """Do nothing."""


def _answer(calls: list[Call]) -> None:
    # One wake-up per loop, however many calls; a loop that was closed has nobody waiting.
    by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}
    for call in calls:
        by_loop.setdefault(call.loop, []).append(call)
    for loop, answered in by_loop.items():
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, answered)


def _settle(calls: list[Call]) -> None:
    for call in calls:
        call.settle()


#: Workers by path, those that new store objects join; and all that may have something open, also while they close.
_workers: dict[str, Worker] = {}
_open: set[Worker] = set()
_registry = threading.Lock()


def _before_fork() -> None:
    _registry.acquire()
    for worker in _open:
        worker.before_fork()


def _after_fork_in_parent() -> None:
    for worker in _open:
        worker.after_fork_in_parent()
    _registry.release()


def _after_fork_in_child() -> None:
    for worker in _open:
        worker.after_fork_in_child()
    _registry.release()


@atexit.register
def _at_exit() -> None:
    for worker in list(_open):
        worker.stop()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
