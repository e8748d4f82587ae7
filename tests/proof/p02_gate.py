"""A gate for another process's calls to the system: what changes a folder waits there until it is let through.

The kernel holds the call (seccomp with user notification, Linux 5.5 or newer) and asks us: it happens, fails with an
error, writes only half, or its process is killed before it has happened. What is no file of the folder never stops, and
reading only where that is wanted. Must not change what a call does that is let through.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import io
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Numbers of calls on x86-64 and ARM64; -1 where there is none.
_NUMBERS: Final = {
    "write": (1, 64), "pwrite64": (18, 68), "writev": (20, 66), "pwritev": (296, 70),
    "fsync": (74, 82), "fdatasync": (75, 83), "ftruncate": (77, 46), "fallocate": (285, 47), "msync": (26, 227),
    "truncate": (76, 45), "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276),
    "unlink": (87, -1), "unlinkat": (263, 35), "rmdir": (84, -1), "mkdir": (83, -1), "mkdirat": (258, 34),
    "link": (86, -1), "linkat": (265, 37), "symlink": (88, -1), "symlinkat": (266, 36),
    "open": (2, -1), "openat": (257, 56), "read": (0, 63), "pread64": (17, 67),
}  # fmt: skip
_MACHINES: Final = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
_COLUMN, _ARCHITECTURE, _SECCOMP = _MACHINES.get(platform.machine(), (0, 0, 0))
_CALLS: Final = {numbers[_COLUMN]: name for name, numbers in _NUMBERS.items() if numbers[_COLUMN] >= 0}
#: Calls whose first argument is a descriptor of what they change.
_BY_DESCRIPTOR: Final = frozenset(
    {"write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync", "ftruncate", "fallocate", "read", "pread64"}
)
#: Calls whose first argument is the folder that their path begins in; `openat` has its flags behind that.
_BY_FOLDER: Final = frozenset({"renameat", "renameat2", "unlinkat", "mkdirat", "linkat", "openat"})
READS: Final = frozenset({"read", "pread64"})
WRITES: Final = frozenset({"write", "pwrite64"})
SYNCS: Final = frozenset({"fsync", "fdatasync", "msync"})
#: What needs room on the disk.
GROWS: Final = frozenset({*WRITES, "writev", "pwritev", "fallocate", "mkdir", "mkdirat", "open", "openat", "symlink"})
#: Of these, what needs none where the name is there already.
MAKES: Final = frozenset({"mkdir", "mkdirat", "open", "openat"})
OTHERS: Final = frozenset(_NUMBERS) - GROWS - READS
_AT_HERE: Final = 0xFFFFFF9C
_PIDFD_GETFD: Final = 438
_PIDFD_OPEN: Final = 434
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_MISSING: Final = (
    "P2 stops the calls of a process with seccomp and user notification: Linux 5.5 or newer on x86-64 or ARM64, in a "
    "container whose own filter allows the call `seccomp` (docker run --security-opt seccomp=unconfined where not)"
)
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.POINTER(_Instruction))]


def close_gate(*, reads: bool = False) -> int:
    """Stop the calls of this process from now on, those of threads to come too; return what `Gate` listens to.

    With `reads`, reading stops as well.
    """
    if not _ARCHITECTURE or platform.system() != "Linux":
        raise RuntimeError(_MISSING)
    load, equal, has, say = 0x20, 0x15, 0x45, 0x06
    allow, stop = (say, 0, 0, 0x7FFF0000), (say, 0, 0, 0x7FC00000)
    code = [(load, 0, 0, 4), (equal, 1, 0, _ARCHITECTURE), allow, (load, 0, 0, 0)]
    for number, name in _CALLS.items():
        if name in READS and not reads:
            continue
        if name in {"open", "openat"}:  # only where a file may be made
            flags = 16 + 8 * (1 if name == "open" else 2)
            code += [(equal, 0, 4, number), (load, 0, 0, flags), (has, 0, 1, os.O_CREAT | os.O_TRUNC), stop, allow]
        else:
            code += [(equal, 0, 1, number), stop]
    code.append(allow)
    program = _Program(len(code), (_Instruction * len(code))(*code))
    _libc.prctl(38, 1, 0, 0, 0)  # no new privileges, without which only root may have a filter
    listener: int = _libc.syscall(_SECCOMP, 1, 8, ctypes.byref(program))
    if listener < 0:
        raise RuntimeError(f"{_MISSING}: {os.strerror(ctypes.get_errno())}")
    return listener


@dataclass(frozen=True)
class Call:
    """A call that waits at the gate, made by a thread; `path` is where it writes, in the folder."""

    id: int
    thread: int
    name: str
    path: str
    arguments: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.path}"


class Gate:
    """Where the calls of one process wait that change something in a folder."""

    def __init__(self, listener: int, pid: int) -> None:
        self.listener = listener
        self.pid = pid
        self._folder = ""

    def watch(self, folder: Path) -> None:
        """Stop the calls that change this folder, or what is in it."""
        self._folder = os.path.realpath(folder)

    def next(self) -> Call | None:
        """Return a call that waits, `None` where it is none of the folder or has ended meanwhile."""
        data = bytearray(80)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, data)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                return None
            raise
        number, thread, _, called = struct.unpack_from("=QIIi", data)
        name, arguments = _CALLS[called], struct.unpack_from("=6Q", data, 32)
        try:
            path = os.path.normpath(_path(thread, name, arguments))
        except OSError:  # its process is gone, or was given a wrong path
            path = ""
        call = Call(number, thread, name, os.path.relpath(path, self._folder) if path else "", arguments)
        if path == self._folder or path.startswith(self._folder + os.sep):
            return call
        self.let(call)
        return None

    def needs_room(self, call: Call) -> bool:
        """Say whether a call fails on a disk that is full."""
        return call.name in GROWS and not (call.name in MAKES and Path(self._folder, call.path).exists())

    def let(self, call: Call) -> None:
        """Let it happen."""
        self._answer(call, 0, 0, 1)

    def fail(self, call: Call, number: int) -> None:
        """Let it fail with an error of the system; nothing has happened."""
        self._answer(call, 0, -number, 0)

    def halve(self, call: Call) -> int:
        """Do the first half of a write in its place, and return how many bytes that is; 0 for any other call."""
        if call.name not in WRITES:
            return 0
        descriptor, address, size, offset = (_signed(value) for value in call.arguments[:4])
        half = size // 2
        with Path(f"/proc/{call.thread}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(half)
        process = _libc.syscall(_PIDFD_OPEN, self.pid, 0)
        # The very file that the process has open, with its position.
        ours = _libc.syscall(_PIDFD_GETFD, process, descriptor, 0)
        if ours < 0:
            raise OSError(
                ctypes.get_errno(), "its file cannot be shared with us (in a container: --cap-add SYS_PTRACE)"
            )
        try:
            return os.pwrite(ours, data, offset) if call.name == "pwrite64" else os.write(ours, data)
        finally:
            os.close(ours)
            os.close(process)

    def answer(self, call: Call, value: int) -> None:
        """Let it return a number; nothing more has happened."""
        self._answer(call, value, 0, 0)

    def close(self) -> None:
        os.close(self.listener)

    def _answer(self, call: Call, value: int, error: int, flags: int) -> None:
        try:
            fcntl.ioctl(self.listener, _SEND, struct.pack("=QqiI", call.id, value, error, flags))
        except OSError as gone:
            if gone.errno != errno.ENOENT:
                raise


def _path(thread: int, name: str, arguments: tuple[int, ...]) -> str:
    """Return the path that a call of a thread changes."""
    process = Path(f"/proc/{thread}")
    if name in _BY_DESCRIPTOR:
        return str((process / f"fd/{arguments[0]}").readlink())
    if name == "msync":
        return ""
    target = {"symlink": 1, "symlinkat": 2}.get(name, 1 if name in _BY_FOLDER else 0)
    with (process / "mem").open("rb", buffering=0) as memory:
        memory.seek(arguments[target])
        path = Path(os.fsdecode(_text(memory)))
    folder = arguments[0] if name in _BY_FOLDER else arguments[1] if name == "symlinkat" else _AT_HERE
    at_here = folder & 0xFFFFFFFF == _AT_HERE
    if not path.is_absolute():
        path = (process / ("cwd" if at_here else f"fd/{folder}")).readlink() / path
    return str(path)


def _text(memory: io.FileIO) -> bytes:
    found = b""
    while b"\0" not in found and len(found) < 8192:
        # Never over the end of a page in one go: the next one may not be there.
        found += memory.read(4096 - memory.tell() % 4096)
    return found.partition(b"\0")[0]


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
