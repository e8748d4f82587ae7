"""The listener: a connection beside the others that hears of commits, and those that wait to be woken by it.

LISTEN belongs to a session on the server, so this connection must lead there directly, not through a pooler. Whoever is
woken looks for himself; so nothing is lost where the connection was, as all are woken when it is there again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import threading
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Final

import psycopg

from rehydrate.errors import RehydrateError
from rehydrate.ports.loops import future_of_thread, idle_timer
from rehydrate.stores.calls import answer

from .connections import connect, let_go
from .failures import is_transient, translate
from .forks import mind_forks
from .place import Place, Settings
from .session import Connection
from .waves import CHANNEL

#: Seconds after which somebody who waits looks again all the same: an owner may have died without a word.
_LONGEST: Final = 10.0


class Waiting:
    """Somebody who waits to be woken, by a word."""

    __slots__ = ("error", "future", "loop", "result", "word")

    def __init__(self, word: str) -> None:
        self.word = word
        self.loop = asyncio.get_running_loop()
        self.future = future_of_thread(self.loop)
        self.result: object = None
        self.error: BaseException | None = None


class Listener:
    """Wakes those who wait. Its thread begins with the first of them and ends with the store."""

    def __init__(self, place: Place, settings: Settings, waits: Sequence[float]) -> None:
        self._place = place
        self._settings = settings
        self._waits = tuple(waits) or (1.0,)
        self._reset()
        mind_forks(self)

    def _reset(self) -> None:
        self._state = threading.Lock()
        self._waiting: set[Waiting] = set()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        #: The pipe whose end is the end of the thread; whoever takes it out of here closes it.
        self._stop: list[tuple[int, int]] = []

    def wait_for(self, run_id: str) -> Waiting:
        """Return somebody who is woken by what happens to a run from now on."""
        waiting = Waiting(self._place.word(run_id))
        with self._state:
            self._waiting.add(waiting)
            if self._thread is None:
                stop = os.pipe()
                self._stop.append(stop)
                name = f"rehydrate listens {self._place.store}"
                thread = threading.Thread(target=self._listen, args=(stop[0],), name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system gives no more threads
                    self._waiting.discard(waiting)
                    for descriptor in self._stop.pop():
                        os.close(descriptor)
                    raise
                self._thread = thread
            return waiting

    async def woken(self, waiting: Waiting) -> None:
        """Wait until a run has changed, or some seconds. Raises `StoreUnavailableError` where nothing can be heard."""
        timer = idle_timer(_LONGEST, lambda: answer([waiting]))
        try:
            await waiting.future
        finally:
            timer.cancel()
            self.give_up(waiting)

    def give_up(self, waiting: Waiting) -> None:
        """Let somebody wait no more."""
        with self._state:
            self._waiting.discard(waiting)

    def close(self) -> None:
        """End the thread; who waits looks for himself after some seconds. From any thread."""
        with contextlib.suppress(IndexError):
            os.close(self._stop.pop()[1])

    def before_fork(self) -> None:
        """Let nobody be in the middle of a change."""
        self._state.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._state.release()

    def after_fork_in_child(self) -> None:
        """Begin anew, without what is the parent's."""
        if self._connection is not None:
            let_go(self._connection)
        for descriptor in chain.from_iterable(self._stop):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._reset()

    def _listen(self, stop: int) -> None:
        try:
            if self._hear_again(stop):
                self._wake(None)
        finally:
            os.close(stop)

    def _hear_again(self, stop: int) -> bool:
        """Hear, on one connection after the other; say whether all is to end, and not only this thread."""
        waits = chain(self._waits, repeat(self._waits[-1]))
        while True:
            try:
                if self._hear(stop):
                    return True
                waits = chain(self._waits, repeat(self._waits[-1]))
            except psycopg.Error as error:
                if not is_transient(error):
                    self._give_up(translate(error, self._place.store))
                    return False
            if _ready([stop], next(waits)):
                return True

    def _hear(self, stop: int) -> bool:
        """Hear until the connection is lost or all is to end, and say whether it is to end."""
        connection = self._connection = connect(self._settings)
        try:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            # What happened before nobody has heard of.
            self._wake(None)
            while True:
                if stop in _ready([connection.fileno(), stop]):
                    return True
                try:
                    words = _words(connection)
                except psycopg.Error:
                    return False
                self._wake(words)
        finally:
            self._connection = None
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _wake(self, words: set[str] | None) -> None:
        with self._state:
            woken = [waiting for waiting in self._waiting if words is None or waiting.word in words]
            self._waiting.difference_update(woken)
        answer(woken)

    def _give_up(self, error: RehydrateError) -> None:
        with self._state:
            self._thread = None
            self.close()
            woken, self._waiting = list(self._waiting), set()
        for waiting in woken:
            waiting.error = error
        answer(woken)


def _words(connection: Connection) -> set[str]:
    connection.pgconn.consume_input()
    words: set[str] = set()
    while (told := connection.pgconn.notifies()) is not None:
        words.add(told.extra.decode(errors="replace"))  # anybody may notify, of anything
    return words


def _ready(descriptors: Sequence[int], seconds: float | None = None) -> set[int]:
    """Wait until something can be read; not by `select.select`, which takes no number above 1,023."""
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        return {key.fd for key, _ in selector.select(seconds)}
