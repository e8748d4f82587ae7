"""Standard output and standard error while a command works: where one takes nothing more, that ends the command.

Writing raises nothing by itself: what a handler prints is no reason for its run to fail, and who writes a log is not
told either. A failure is remembered instead, and raised where the command itself writes, and at its end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TextIO, cast

from .endings import Ending


class UnwrittenError(Exception):
    """Standard output or standard error takes nothing more; `reader_left` where only its reader has gone."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"{name} cannot be written: {error.strerror or error}")
        self.reader_left = isinstance(error, BrokenPipeError)


class _Watched(io.BufferedIOBase):
    """The bytes of a standard stream, of which the first that could not be written were the last."""

    def __init__(self, name: str, stream: io.TextIOWrapper | None) -> None:
        self.name = name
        self._stream = stream
        self.failure: UnwrittenError | None = None

    def writable(self) -> bool:
        """Say that it is for writing."""
        return True

    def write(self, data: object, /) -> int:
        """Write bytes, or remember that they cannot be written."""
        given = cast("bytes", data)
        with self._remembering():
            if self._stream is None:  # closed by who began the process
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._stream.buffer.write(given)
        return len(given)

    def flush(self) -> None:
        """Write what waits, or remember that it cannot be written."""
        if self._stream is not None and not self._stream.closed:
            with self._remembering():
                self._stream.buffer.flush()

    @contextlib.contextmanager
    def _remembering(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or UnwrittenError(self.name, error)

    def fileno(self) -> int:
        """Return the number of the file."""
        return super().fileno() if self._stream is None else self._stream.fileno()

    def isatty(self) -> bool:
        """Tell whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()


def _watched(name: str, stream: TextIO | None) -> TextIO:
    """Return a standard stream, watched."""
    if stream is None:
        return io.TextIOWrapper(_Watched(name, None), "utf-8", write_through=True)
    if not isinstance(stream, io.TextIOWrapper):  # a program has put one of its own there, which is no file
        return stream
    lines = bool(stream.line_buffering)
    raw = _Watched(name, cast("io.TextIOWrapper", stream))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=lines, write_through=True)


def check_written(stream: TextIO) -> None:
    """Write what waits in a stream. Raises `UnwrittenError` where anything was not written there."""
    stream.flush()
    watched = getattr(stream, "buffer", None)
    if isinstance(watched, _Watched) and watched.failure is not None:
        raise watched.failure


def ending_of(work: Callable[[], int]) -> int:
    """Do the work of a command and return its exit code, which is another one where it could not write."""
    with contextlib.ExitStack() as closed:
        if sys.stderr is None:  # closed by who began the process: nothing is to be told beside the result
            closed.enter_context(contextlib.redirect_stderr(closed.enter_context(Path(os.devnull).open("w"))))
        results, notes = _watched("standard output", sys.stdout), _watched("standard error", sys.stderr)
        try:
            with contextlib.redirect_stdout(results), contextlib.redirect_stderr(notes):
                try:
                    return work()
                finally:
                    check_written(results)
                    check_written(notes)
        except UnwrittenError as error:
            return _unwritten(error)


def _unwritten(error: UnwrittenError) -> Ending:
    """Say what could not be written, unless nobody reads on, and return the exit code."""
    if not error.reader_left:
        with contextlib.suppress(OSError):  # it may be standard error itself
            sys.stderr.write(f"error [unwritten]: {error}. What has run is saved.\n")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # thrown away, as the interpreter would complain once more when it flushes at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return Ending.READER_LEFT if error.reader_left else Ending.UNWRITTEN
