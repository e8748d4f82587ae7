"""The SIGTERM hook of programs: the first signal drains the process, and then it leaves.

It works whatever the main thread does, in an event loop or not: signals wake a thread of the hook's own, in which the
drain has a loop of its own. It must not end runs in a way of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final, TypeAlias
from weakref import WeakSet

from rehydrate.errors import WrongCallError
from rehydrate.runtime.draining import drain
from rehydrate.runtime.leaving import expect_exit, stop_expecting_exit

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None
#: What a shell says of a process that SIGTERM has ended.
_STATUS: Final = 128 + signal.SIGTERM
#: How often the main thread is told to leave until it does, in seconds: a signal that comes just before it begins to
#: wait does not wake it.
_NUDGE_SECONDS: Final = 0.05
#: How long a program whose runs have all finished is given to come to its own end, in seconds.
_END_SECONDS: Final = 0.5


class SigtermHook:
    """An installed hook, made by `drain_on_sigterm()`; as a context manager it is there for the block."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._lock = threading.RLock()
        self._leaves = threading.Event()
        self._seen = self._drained = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._former: _Handler = signal.signal(signal.SIGTERM, self._on_signal)
        # Python runs handlers in the main thread only, when that comes by; the byte is written at once.
        self._former_fd = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="rehydrate drain", daemon=True)
        self._thread.start()
        _HOOKS.add(self)

    def remove(self) -> None:
        """Put the former handler back; a second call does nothing."""
        if self not in _HOOKS:
            return
        _HOOKS.discard(self)
        signal.signal(signal.SIGTERM, signal.SIG_DFL if self._former is None else self._former)
        current = signal.set_wakeup_fd(self._former_fd)
        if current != self._writing:  # somebody's who came later
            signal.set_wakeup_fd(current)
        os.close(self._writing)

    def __enter__(self) -> SigtermHook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._seen and not self._leaves.is_set():
            self._thread.join()  # its end is the signal to leave, which comes here
        self.remove()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Drain at the first signal; leave at the one that says that this is done, or at another from outside."""
        with self._lock:
            if self._leaves.is_set():
                return
            if _ends_by_itself():
                self.remove()  # from here on SIGTERM does what it did before
                return
            if not (self._drained or self._seen):
                self._seen = True
                os.write(self._writing, bytes([number]))  # where another's wakeup descriptor has taken our place
                return
            self._leaves.set()
        self.remove()
        stop_expecting_exit()
        if callable(self._former):
            self._former(number, frame)
            return
        sys.exit(_STATUS)

    def _listen(self) -> None:
        """Wait for the first signal, drain, and tell the main thread to leave until it does."""
        with open(self._reading, "rb", buffering=0) as signals:  # noqa: PTH123  (no path)
            while signal.SIGTERM not in (told := signals.read(64)):
                if not told:
                    return
                self._pass_on(told)
            self._drain()
            while signals.read(64):  # nobody may write to a pipe that is closed
                pass

    def _drain(self) -> None:
        if not callable(self._former):
            expect_exit()
        finished = False
        try:
            runs = asyncio.run(drain(self.grace)).runs
            finished = bool(runs) and all(run.ended == "finished" for run in runs)
        finally:
            self._drained = True
            if finished:  # the program may be coming to its own end just now, closing its event loop
                self._leaves.wait(_END_SECONDS)
            while not self._nudge():
                self._leaves.wait(_NUDGE_SECONDS)

    def _pass_on(self, told: bytes) -> None:
        """Wake whoever was woken by signals before."""
        if self._former_fd >= 0:
            with contextlib.suppress(OSError):  # it has gone
                os.write(self._former_fd, told)

    def _nudge(self) -> bool:
        """Tell the main thread to leave, unless it does."""
        if _ends_by_itself():
            return True
        with self._lock:
            if not self._leaves.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            return self._leaves.is_set()


def _ends_by_itself() -> bool:
    """Tell whether the program has come to its end, and only what is to be done at exit is left.

    To leave is an exception in the main thread, which would break that off: stores write there what they still hold.
    """
    main = threading.main_thread()
    return not main.is_alive() and all(thread.daemon for thread in threading.enumerate() if thread is not main)


#: Installed hooks.
_HOOKS: WeakSet[SigtermHook] = WeakSet()


def _forget() -> None:
    """Let the child of a fork do without: its signals would drain its parent."""
    for hook in list(_HOOKS):
        hook.remove()


os.register_at_fork(after_in_child=_forget)


def drain_on_sigterm(grace: float = 10.0) -> SigtermHook:
    """Let SIGTERM drain this process; then the former handler is back and is called, or the process exits with 143.

    A second SIGTERM does not wait for the drain. Raises `WrongCallError` outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise WrongCallError(
            "drain_on_sigterm was called outside of the main thread.", "Call it where the program begins."
        )
    return SigtermHook(grace)
