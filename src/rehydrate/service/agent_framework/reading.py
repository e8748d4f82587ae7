"""Reads files of theirs through the reading process: bytes go in, trees of plain JSON come out, or why there are none.

It opens the files itself and starts the process with an empty environment; what comes back is bounded and is data.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final, cast

from . import child
from .child import FORBIDDEN, LENGTH, SECONDS
from .inert import MAX_FILE, MAX_OUT, Refused
from .trees import Node

#: What the process runs: nothing but our own modules and the standard library can be found by it.
_START: Final = f"import sys; sys.path.append(sys.argv[1]); from {child.__name__} import main; main()"
_DIED: Final = "reading it ended the process that read it"


class FileReader:
    """Reads files one after the other; a process that ended over one is replaced for the next."""

    def __init__(self, names: Iterable[str], *, seconds: float = SECONDS) -> None:
        self._names = json.dumps(sorted(names)).encode()
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> FileReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def tree(self, data: bytes) -> Node:
        """Return the tree of a file's bytes. Raises `Refused`."""
        process = self._process or self._start()
        overdue = threading.Event()
        timer = threading.Timer(self._seconds, _end, (process, overdue))
        timer.start()
        try:
            answer = _asked(process, data)
        except (OSError, EOFError) as error:
            raise Refused(self._ended(overdue=overdue.is_set())) from error
        finally:
            timer.cancel()
        if answer[:1] != b"+":
            raise Refused(answer[1:].decode("utf-8", "replace"))
        return cast("Node", json.loads(answer[1:]))

    def _start(self) -> subprocess.Popen[bytes]:
        root = Path(child.__file__).parents[3]
        self._process = process = subprocess.Popen(  # noqa: S603  (our own interpreter and our own text)
            [sys.executable, "-I", "-S", "-c", _START, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            close_fds=True,
        )
        with contextlib.suppress(OSError):  # a process that is gone already is seen when it is asked
            _send(_pipe(process.stdin), self._names)
        return process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):
                process.communicate()

    def _ended(self, *, overdue: bool) -> str:
        code = self._process.wait() if self._process is not None else None
        self._stop()
        if overdue:
            return f"it takes more than {self._seconds:g} seconds to read"
        return f"{_DIED}, which tried something forbidden" if code == FORBIDDEN else _DIED


def bytes_of(path: Path) -> bytes:
    """Return what is in a file. Raises `Refused`."""
    try:
        with open(path, "rb", opener=_opened) as file:  # a path's has no opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("it is no regular file")
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Refused(f"it cannot be opened ({error.strerror or error})") from error
    if len(data) > MAX_FILE:
        raise Refused(f"it has more than {MAX_FILE} bytes")
    if not data:
        raise Refused("it is empty")
    return data


def _opened(path: str, flags: int) -> int:
    """Open a file, and wait for nobody on the other end of what is none."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _end(process: subprocess.Popen[bytes], overdue: threading.Event) -> None:
    overdue.set()
    process.kill()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101  (both were asked for)
    return pipe


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(LENGTH, "little"))
    pipe.write(data)
    pipe.flush()


def _asked(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    _send(_pipe(process.stdin), data)
    source = _pipe(process.stdout)
    length = int.from_bytes(_whole(source, LENGTH), "little")
    if length > 4 * MAX_OUT:
        raise EOFError
    return _whole(source, length)


def _whole(source: IO[bytes], count: int) -> bytes:
    data = source.read(count)
    if len(data) != count:
        raise EOFError
    return data
