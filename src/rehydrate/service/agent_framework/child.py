"""The reading process: takes files as bytes from its input and gives trees of plain JSON to its output.

Once it has started it may not open, import, run or connect to anything; whatever tries ends it. What it holds in memory
and the time it may take are bounded. It is started by `reading` with nothing but the standard library to import from.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import BinaryIO, Final, NoReturn

from .inert import MAX_DEPTH, MAX_FILE, Refused
from .listed import Listed
from .nodes import read_file

try:
    import resource
except ImportError:  # no such limits on this system
    resource = None

#: What a process may take: bytes of memory, and seconds of work for each file.
MEMORY: Final = 2 * 1024 * 1024 * 1024
SECONDS: Final = 60
#: How a length is written before what it counts.
LENGTH: Final = 8
#: What bytes that nobody wrote can raise on their way through the reading, beside `Refused`.
READING_ERRORS: Final = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, MemoryError)
#: The exit code of a process that tried something forbidden.
FORBIDDEN: Final = 77


def main() -> None:
    """Serve files until the input ends: first the names on the list, then one file after the other."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    listed = Listed(json.loads(_frame(source)))
    _warm_up(listed)
    close_in()
    while data := _frame(source):
        answer = _answer(data, listed).encode("utf-8", "surrogatepass")
        target.write(len(answer).to_bytes(LENGTH, "little") + answer)
        target.flush()


def _frame(source: BinaryIO) -> bytes:
    lead = source.read(LENGTH)
    length = int.from_bytes(lead, "little")
    if length > MAX_FILE:
        raise SystemExit(1)
    return source.read(length) if len(lead) == LENGTH else b""


def _answer(data: bytes, listed: Listed) -> str:
    """Return `+` and the tree, or `-` and why there is none."""
    try:
        return "+" + read_file(data, listed)
    except Refused as error:
        return f"-{error}"
    except RecursionError:
        return f"-a value is nested deeper than {MAX_DEPTH} levels"
    except MemoryError:
        return "-it takes more memory to read than is given"
    except READING_ERRORS as error:
        return f"-it is damaged ({type(error).__name__}: {str(error)[:200]})"


def _warm_up(listed: Listed) -> None:
    """Read once what makes Python load modules of its own, before nothing can be loaded any more."""
    for data in (b'{"a": [1.5, "\\ud83d"]}', b'{"a":', b"\xff", b'{"__pickled__": "!", "__type__": "a"}'):
        _answer(data, listed)


def close_in() -> None:
    """Give up what this process will not need; where the system has no limits, the watch and the counts remain."""
    if resource is not None:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses any limit of memory
            _limit(resource.RLIMIT_AS, MEMORY)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, 0)
        _limit(resource.RLIMIT_NOFILE, 0)
    sys.addaudithook(_watch)


def _limit(kind: int, most: int) -> None:
    """Set a limit, and never above one that is there, which would be refused."""
    assert resource is not None  # noqa: S101  (the caller has looked)
    _, hard = resource.getrlimit(kind)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _watch(event: str, _args: tuple[object, ...]) -> None:
    if event not in _HARMLESS:
        _end()


def _end() -> NoReturn:
    os._exit(FORBIDDEN)


#: What Python itself reports and what reaches nothing outside.
_HARMLESS: Final = frozenset({"gc.start"})
