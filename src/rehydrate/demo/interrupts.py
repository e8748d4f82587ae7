"""Ctrl-C for a command that makes one call of a run after the other: the first one stops it, the rest are ignored.

What is left to do after the first takes moments: handing in what was typed, saving the end, closing the store. A second
one, which a nervous finger or a wrapper sends at once, would only tear that apart.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import TypeVar

__all__ = ["Interrupts"]

_T = TypeVar("_T")


class Interrupts:
    """Takes SIGINT while it is entered; a run that is at work is cancelled, else `KeyboardInterrupt` is raised."""

    def __init__(self) -> None:
        self._came = False
        self._untold = False
        self._cancel: Callable[[], object] | None = None
        self._installed = False

    def __enter__(self) -> Interrupts:
        # A shell that starts a job in the background has it ignore SIGINT; that stays so.
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._installed = usual and threading.current_thread() is threading.main_thread()
        if self._installed:
            signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            # A process that was stopped ends now; one more may not become a traceback while it does.
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._came else signal.default_int_handler)

    def run(self, call: Callable[[], Coroutine[object, object, _T]]) -> _T:
        """Run a coroutine to its end, or cancel it and raise `KeyboardInterrupt`."""

        async def main() -> _T:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None  # noqa: S101  (a coroutine that runs has one)
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                return await call()
            finally:
                self._cancel = None

        try:
            result = asyncio.run(main())
        except asyncio.CancelledError:
            self._untold = False
            raise KeyboardInterrupt from None
        if self._untold:
            self._untold = False
            raise KeyboardInterrupt
        return result

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            return
        self._came = True
        if self._cancel is None:
            raise KeyboardInterrupt
        self._untold = True
        self._cancel()
