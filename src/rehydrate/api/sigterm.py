"""The SIGTERM hook of programs: the first signal drains the process, and then it leaves.

It works whatever the main thread does, in an event loop or not, because the drain has a thread and a loop of its own.
It must not end runs in a way of its own.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final, TypeAlias

from rehydrate.errors import WrongCallError
from rehydrate.runtime.draining import drain
from rehydrate.runtime.leaving import expect_exit, stop_expecting_exit

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None
#: What a shell says of a process that SIGTERM has ended.
_STATUS: Final = 128 + signal.SIGTERM


class SigtermHook:
    """An installed hook; as a context manager it is there for the block."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._drain: threading.Thread | None = None
        self._installed = True
        self._former: _Handler = signal.signal(signal.SIGTERM, self._on_signal)

    def remove(self) -> None:
        """Put the former handler back; a second call does nothing."""
        if self._installed:
            self._installed = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL if self._former is None else self._former)

    def __enter__(self) -> SigtermHook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drain is not None:
            self._drain.join()  # its end is the signal to leave, which comes here
        self.remove()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Drain at the first signal; leave at the one that says that this is done, or at another from outside."""
        if self._drain is None:
            if not callable(self._former):
                expect_exit()
            self._drain = threading.Thread(target=self._work, name="rehydrate drain", daemon=True)
            self._drain.start()
            return
        self.remove()
        stop_expecting_exit()
        if callable(self._former):
            self._former(number, frame)
            return
        sys.exit(_STATUS)

    def _work(self) -> None:
        try:
            asyncio.run(drain(self.grace))
        finally:
            # A signal that came to this thread would not wake the main one.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def drain_on_sigterm(grace: float = 10.0) -> SigtermHook:
    """Let SIGTERM drain this process; then the former handler is back and is called, or the process exits with 143.

    A second SIGTERM does not wait for the drain. Raises `WrongCallError` outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise WrongCallError(
            "drain_on_sigterm was called outside of the main thread.", "Call it where the program begins."
        )
    return SigtermHook(grace)
