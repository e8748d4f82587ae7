"""The thread that owns a place on disk in this process, however many store objects and event loops use it.

Calls come through a queue and are answered through the loop that asked; no object of a loop outlives its call. What
a batch of calls does to the place is the place's. Connections and locks of a parent must not be used by the child of a
fork: SQLite keeps its own account of locks per process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Generic, Protocol, TypeVar, cast

from rehydrate.errors import RehydrateError, StoreClosedError, WrongCallError
from rehydrate.ports.loops import future_of_thread

from .calls import answer
from .tasks import Place, Task
from .watches import Watches

_P = TypeVar("_P", bound=Place)

#: Bounds of one batch: calls, and bytes of records.
_BATCH_CALLS: Final = 1024
_BATCH_BYTES: Final = 16 * 1024 * 1024
#: Seconds that the end of the process waits for writes that are on their way.
_EXIT_SECONDS: Final = 5.0


class Call(Task[_P]):
    """A task, and the future of the loop that waits for it."""

    __slots__ = ("future", "loop", "size", "watches")

    def __init__(
        self, work: Callable[[_P], object], *, writes: bool, size: int, alone: bool = False, watches: bool = False
    ) -> None:
        super().__init__(work, writes=writes, alone=alone)
        self.size = size
        self.watches = watches
        self.loop = asyncio.get_running_loop()
        self.future = future_of_thread(self.loop)


class _Release(Generic[_P]):
    """One store object less; `call` waits until that is done (a collected object waits for nothing)."""

    __slots__ = ("call",)

    def __init__(self, call: Call[_P] | None) -> None:
        self.call = call


@dataclass(frozen=True, eq=False)
class Kind(Generic[_P]):
    """A kind of store: what makes the place at a path, and how a place serves a batch of tasks, `most` at once.

    `version` gives what is another once another process has written to a place. Variants of one kind have one name; a
    place is used in one of them at a time.
    """

    name: str
    make: Callable[[str], _P]
    serve: Callable[[_P, Sequence[Task[_P]]], None]
    most: int = _BATCH_CALLS
    variant: str = ""
    version: Callable[[_P], object] | None = None


class Worker(Generic[_P]):
    """The thread of one place. Store objects are counted, and the last one to be released closes the place.

    `kind` makes the place and says how it serves; `former` is the worker of what stood at the same path and is gone.
    """

    def __init__(self, path: str, kind: Kind[_P], former: Worker[_P] | None = None) -> None:
        self.path = path
        self.kind = kind
        self.place = kind.make(path)
        self._former = former
        self.users = 0
        self._queue: SimpleQueue[Call[_P] | _Release[_P]] = SimpleQueue()
        self._busy = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._watches: Watches[Call[_P]] = Watches(self._version)

    def call(
        self, work: Callable[[_P], object], *, writes: bool = False, size: int = 0, alone: bool = False
    ) -> asyncio.Future[object]:
        """Do `work` on the thread; one that is not waited for any more is still done."""
        # Without its parameter, for which `typing` would take longer than all of the rest.
        call: Call[_P] = Call(work, writes=writes, size=size, alone=alone)
        self._submit(call)
        return call.future

    def watch(self, work: Callable[[_P], bool]) -> asyncio.Future[object]:
        """Do `work`, which reads, on the thread until it returns true; it may end before, as when a store is closed."""
        call: Call[_P] = Call(work, writes=False, size=0, watches=True)
        self._submit(call)
        return call.future

    async def close(self) -> None:
        """Count one store object less and wait until what was queued before is done."""
        call: Call[_P] = Call(_nothing, writes=False, size=0)
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
            self.place.let_go()

    def before_fork(self) -> None:
        """Let no transaction and no connection be open while the process is copied."""
        self._busy.acquire()
        with contextlib.suppress(sqlite3.Error, RehydrateError):
            self.place.disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on; the connection is opened again when needed."""
        self._busy.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: no thread, no queue, no locks of the parent."""
        self.place.forget()
        self._queue = SimpleQueue()
        self._busy = threading.Lock()
        self._starting = threading.Lock()
        self._thread = None
        self._watches = Watches(self._version)

    def _submit(self, item: Call[_P] | _Release[_P]) -> None:
        if self._thread is None:
            self._start()
        self._queue.put(item)
        # The thread looks at the queue once more after it has stopped; so do we, and one of the two sees the item.
        if self._stopped:
            self._refuse_waiting()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                name = f"rehydrate {Path(self.path).name}"
                thread = threading.Thread(target=self._loop, name=name, daemon=True)
                thread.start()  # before it is kept: the next call tries again where one cannot start
                self._thread = thread

    def _loop(self) -> None:
        try:
            self._serve_until_stopped()
        finally:
            # Whatever ended the thread, nobody waits for it in vain.
            self._stopped = True
            self._watches.wake()
            self._refuse_waiting()

    def _serve_until_stopped(self) -> None:
        if self._former is not None:
            self._former.let_go()
            self._former = None
        while not self._stopped:
            self._serve_next()

    def _serve_next(self) -> None:
        """Do what comes next; on its own, so that nothing of it is held while the thread waits for more."""
        calls, release = self._next_batch()
        if calls:
            self._serve(calls)
        if again := self._watches.due(wrote=any(call.writes for call in calls)):
            self._serve(again)
        if release is not None:
            # Who waits may be of the object that is closed.
            self._watches.wake()
            self._release_one()
            answer([release.call] if release.call else [])

    def _serve(self, calls: list[Call[_P]]) -> None:
        with self._busy:
            self.kind.serve(self.place, calls)
        self._watches.settle(calls)

    def _version(self) -> object:
        if self.kind.version is None:
            return None
        with self._busy:
            return self.kind.version(self.place)

    def _next_batch(self) -> tuple[list[Call[_P]], _Release[_P] | None]:
        calls: list[Call[_P]] = []
        size = 0
        try:
            item = self._queue.get(timeout=self._watches.seconds())
        except Empty:
            return [], None
        while isinstance(item, Call):
            calls.append(item)
            size += item.size
            if len(calls) >= self.kind.most or size >= _BATCH_BYTES:
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
            self.place.close()
        _forget(self)

    def _refuse_waiting(self) -> None:
        calls: list[Call[_P]] = []
        with contextlib.suppress(Empty):
            while True:
                item = self._queue.get_nowait()
                if isinstance(item, Call):
                    item.error = StoreClosedError(self.place.store)
                    calls.append(item)
                elif item.call is not None:
                    calls.append(item.call)
        answer(calls)


class _AnyKind(Protocol):
    """A kind of store, of whatever place."""

    @property
    def name(self) -> str: ...


class _AnyWorker(Protocol):
    """A worker, of whatever place."""

    users: int

    @property
    def path(self) -> str: ...

    @property
    def kind(self) -> _AnyKind: ...

    def stop(self) -> None: ...

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


def acquire(path: str, kind: Kind[_P]) -> Worker[_P]:
    """Return the worker of a place, given by its real path, and count one store object more.

    Raises `WrongCallError` where the place is in use here with another variant of its kind.

    Where another place than the worker's stands at the path now, or none, or reading or writing it has failed, it is a
    new worker.
    """
    with _registry:
        worker = cast("Worker[_P] | None", _workers.get((kind.name, path)))
        if worker is None or worker.place.is_over:
            worker = Worker(path, kind, former=worker)
            _workers[kind.name, path] = worker
            _open.add(worker)
        elif worker.kind is not kind:
            raise WrongCallError(
                f"store {path!r} is in use in this process with {worker.kind.variant}.",
                "Use one driver for a file in a process; two would take each other's locks away.",
            )
        worker.users += 1
        return worker


def _drop(worker: _AnyWorker) -> bool:
    with _registry:
        worker.users -= 1
        if worker.users:
            return False
        if _workers.get((worker.kind.name, worker.path)) is worker:
            del _workers[worker.kind.name, worker.path]
        return True


def _forget(worker: _AnyWorker) -> None:
    with _registry:
        _open.discard(worker)


def _nothing(place: object) -> None:
    """Do nothing."""


#: Workers by path, those that new store objects join; and all that may have something open, also while they close.
_workers: dict[tuple[str, str], _AnyWorker] = {}
_open: set[_AnyWorker] = set()
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
