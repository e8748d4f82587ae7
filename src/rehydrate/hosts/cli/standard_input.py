"""Standard input, read so that Ctrl-C ends the read at once.

A read of the interpreter's own goes on where the signal came between two pieces of it. It must not know what is read.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Generator
from typing import BinaryIO, Final, cast

from rehydrate.errors import WrongCallError

#: The word that stands for it.
STREAM: Final = "-"
_PIECE: Final = 1 << 20


class _Pieces(io.RawIOBase):
    """Gives what has come, and waits for more together with the signals that wake `wakes`."""

    def __init__(self, number: int, wakes: int) -> None:
        self._number = number
        self._wakes = wakes

    def read(self, size: int = -1, /) -> bytes:
        """Return bytes, fewer than were asked for where fewer are there; none at the end."""
        ready: list[int] = []
        while self._number not in ready:  # a signal that raises ends this, one that does not is waited over
            ready = select.select([self._number, self._wakes], [], [])[0]
            if self._wakes in ready:
                os.read(self._wakes, 64)
        return os.read(self._number, _PIECE if size < 0 else size)


@contextlib.contextmanager
def standard_input(otherwise: str) -> Generator[BinaryIO]:
    """Give standard input. Raises `WrongCallError` where it is closed, with what to do `otherwise`.

    Only for the main thread, and outside of an event loop: it takes the descriptor by which signals wake that.
    """
    if sys.stdin is None:  # closed by who began the process
        raise WrongCallError("standard input is closed.", otherwise)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield cast("BinaryIO", _Pieces(sys.stdin.fileno(), reading))
    finally:
        signal.set_wakeup_fd(former)
        os.close(reading)
        os.close(writing)


def standard_input_text(otherwise: str) -> bytes:
    """Return all that stands in it. Raises as `standard_input` does."""
    with standard_input(otherwise) as file:
        return b"".join(iter(file.read, b""))
