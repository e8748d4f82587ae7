"""One trial: a process makes a call, and at one of its calls to the system it dies, or the disk fails.

`play` gives what the process said until it was gone, and the calls that it had made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.processes.line import PATIENCE
from tests.processes.nursery import Child, Nursery
from tests.proof.p02_gate import GROWS, OTHERS, READS, WRITES, Call, Gate

#: The process dies before a call, or after half of a write.
KILLS: Final = ("kill", "torn")
#: Once a call fails, or writes only half; or from then on all fail, or all that need room, the first write half done.
FAULTS: Final = ("EIO", "ENOSPC", "short", "dead disk", "full disk")


AtError = Callable[[], Any]


@dataclass(frozen=True)
class Fault:
    """What happens at the call number `at`, counted from 0."""

    kind: str
    at: int


@dataclass
class Show:
    """What was heard of a process: what it said, and `{"fault": ...}` where that befell it; `calls` are by name."""

    heard: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    hit: Call | None = None
    status: int = 0

    def said(self, name: str) -> list[Any]:
        """Return all that was said of one kind."""
        return [each[name] for each in self.heard if name in each]

    def by(self, who: str) -> dict[str, Any] | None:
        """Return how an attempt ended."""
        return next((each for each in self.heard if each.get("by") == who), None)


def reads(calls: list[str], every: int = 1) -> list[int]:
    """Return the numbers of the calls that read."""
    return [number for number, call in enumerate(calls) if call.split()[0] in READS][::every]


def points(calls: list[str], kind: str, every: int = 1, offset: int = 0) -> list[int]:
    """Return the numbers of the calls at which something can happen: all, the writes, what needs room, the others."""
    names = {"torn": WRITES, "short": WRITES, "full disk": GROWS, "ENOSPC": OTHERS}.get(kind)
    found = [number for number, call in enumerate(calls) if names is None or call.split()[0] in names]
    return found[offset % every :: every]


class Player:
    """Plays trials. Where a process is not to die, it does one after the other: that costs no fork."""

    def __init__(self, nursery: Nursery) -> None:
        self.nursery = nursery
        self._lasting: tuple[Child, Gate] | None = None

    def play(
        self, place: Path, told: dict[str, Any], fault: Fault | None = None, at_error: AtError | None = None
    ) -> Show:
        """Let a process do what it is told, and the fault happen; it waits after an error until `at_error` is done."""
        lasts = fault is not None and fault.kind in FAULTS
        show, told = Show(), {**told, "place": str(place), "lasting": lasts}
        if lasts and self._lasting is not None:
            child, gate = self._lasting
            child.send(told)
        else:
            child, gate = self._begin(told)
        if lasts:
            self._lasting = child, gate
        gate.watch(place)
        try:
            _Stage(child, gate, fault, show, at_error).run()
        finally:
            if not lasts:
                show.status = _end(child, gate)
        return show

    def close(self) -> None:
        """End what lasts."""
        if self._lasting is not None:
            _end(*self._lasting)
            self._lasting = None

    def _begin(self, told: dict[str, Any]) -> tuple[Child, Gate]:
        child = self.nursery.child("gated", told)
        said, handed, _, _ = socket.recv_fds(child.line.end, 1024, 1)
        if not handed:
            raise RuntimeError(said.decode())
        return child, Gate(handed[0], child.pid)


def _end(child: Child, gate: Gate) -> int:
    gate.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    return child.wait()


class _Stage:
    """A process and its gate."""

    def __init__(self, child: Child, gate: Gate, fault: Fault | None, show: Show, at_error: AtError | None) -> None:
        self.at_error = at_error
        self.child = child
        self.gate = gate
        self.fault = fault
        self.show = show
        #: Whether a fault that lasts is over, and all that was told is done.
        self.repaired = False
        self.ended = False

    def run(self) -> None:
        """Serve the process until it is gone, or has done what it was told."""
        poll = select.poll()
        poll.register(self.gate.listener, select.POLLIN)
        poll.register(self.child.line.end, select.POLLIN)
        lasts = self.fault is not None and self.fault.kind in FAULTS
        while not (lasts and self.ended):
            found = dict(poll.poll(PATIENCE * 1000))
            assert found, f"nothing happened for a minute after {self.show.heard}"
            if found.get(self.gate.listener, 0) & select.POLLIN:
                call = self.gate.next()
                if call is not None:
                    self.meet(call)
                continue
            if self.child.line.end.fileno() in found and not self.hear():
                poll.unregister(self.child.line.end)
            if found.get(self.gate.listener, 0) & (select.POLLHUP | select.POLLERR):
                self.hear()
                assert not lasts, f"the process is gone after {self.show.heard}"
                return

    def hear(self) -> bool:
        """Take what was said; false where nothing will be said any more."""
        try:
            while True:
                told = self.child.line.receive(0)
                assert isinstance(told, dict)
                if told.get("end"):
                    self.ended = True
                    return True
                self.show.heard.append(told)
                if "error" in told and told.get("by") == "first":
                    self.repaired = True
                    if self.at_error is not None:
                        told["found"] = self.at_error()
                    self.child.send("go on")
        except TimeoutError:
            return True
        except EOFError:
            return False

    def meet(self, call: Call) -> None:
        """Decide on a call."""
        number = len(self.show.calls)
        self.show.calls.append(str(call))
        fault = self.fault
        if fault is None or number < fault.at or (self.show.hit is not None and not self._lasts(call)):
            self.gate.let(call)
            return
        if self.show.hit is None:
            self.hear()
            self.show.hit = call
            self.show.heard.append({"fault": fault.kind, "call": str(call)})
        self._befall(call, fault.kind)

    def _lasts(self, call: Call) -> bool:
        if self.repaired or self.fault is None:
            return False
        return self.fault.kind == "dead disk" or (self.fault.kind == "full disk" and self.gate.needs_room(call))

    def _befall(self, call: Call, kind: str) -> None:
        match kind:
            case "kill" | "torn":
                if kind == "torn":
                    self.gate.halve(call)
                os.kill(self.gate.pid, signal.SIGKILL)
            case "short":
                self.gate.answer(call, self.gate.halve(call))
            case "full disk":
                half = self.gate.halve(call) if call == self.show.hit else 0
                if not self.gate.needs_room(call):
                    self.gate.let(call)
                elif half:
                    self.gate.answer(call, half)
                else:
                    self.gate.fail(call, errno.ENOSPC)
            case _:
                self.gate.fail(call, errno.ENOSPC if kind == "ENOSPC" else errno.EIO)
