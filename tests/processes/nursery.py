"""New processes at the cost of a fork, made by a template that has loaded everything and done nothing.

The template has no threads, no store and no event loop, so what it forks shares no more with the test, or with one
another, than a new interpreter would. As a module it is the template. It reaps its children, because only then are all
locks of a killed one known to be free.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.processes.line import PATIENCE, Line

ROOT = Path(__file__).resolve().parents[2]
Job = Callable[..., None]


class Child:
    """A process that does a job, and our end of its line."""

    def __init__(self, nursery: "Nursery", end: socket.socket, pid: int) -> None:
        self._nursery = nursery
        self.line = Line(end)
        self.pid = pid
        self.gone = False

    def send(self, value: object) -> None:
        self.line.send(value)

    def receive(self, patience: float = PATIENCE) -> object:
        return self.line.receive(patience)

    def signal(self, number: int) -> None:
        self._nursery.order({"signal": number, "pid": self.pid})

    def kill(self) -> list[object]:
        """Send SIGKILL and return when the process is gone, with all that it had locked; return what it still said."""
        said: list[object] = []
        if self.gone:
            return said
        self.signal(signal.SIGKILL)
        with contextlib.suppress(EOFError):
            while True:
                said.append(self.receive())
        self.wait()
        return said

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code, or minus the number of the signal that ended it."""
        code = self._nursery.order({"wait": self.pid})
        self.gone = True
        self.line.end.close()
        return code

    def end(self) -> None:
        """Let the process end by itself, as it does when nobody talks to it any more."""
        self.line.end.shutdown(socket.SHUT_RDWR)
        assert self.wait() == 0


class Nursery:
    """Makes processes; see the module."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.processes.nursery", str(theirs.fileno())]
        self._template = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        theirs.close()
        self._control = Line(ours)
        self._children: list[Child] = []

    def child(self, job: str, told: object, *descriptors: int) -> Child:
        """Start a process that does a job of `tests.processes.jobs`; it is given what is told, and the descriptors."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control.end, [json.dumps([job, told]).encode()], [theirs.fileno(), *descriptors])
        theirs.close()
        child = Child(self, ours, int(self._control.receive()))
        self._children.append(child)
        return child

    def order(self, order: dict[str, int]) -> int:
        self._control.end.sendall(json.dumps(order).encode())
        return int(self._control.receive())

    def clear(self) -> None:
        """Kill the processes that are left."""
        for child in self._children:
            child.kill()
        self._children.clear()

    def close(self) -> None:
        self.clear()
        self._control.end.close()
        self._template.wait(PATIENCE)


def serve(jobs: dict[str, Job], control: socket.socket) -> None:
    """Obey orders, one at a time, until nobody gives any more."""
    # The collector of a child would write to all that it looks at, and so copy what is its parent's.
    gc.collect()
    gc.freeze()
    while True:
        data, handed, _, _ = socket.recv_fds(control, 65536, 8)
        if not data:
            return
        match json.loads(data):
            case [job, told]:
                answer = os.fork()
                if answer == 0:
                    control.close()
                    become(jobs[job], told, handed)
                for descriptor in handed:
                    os.close(descriptor)
            case {"signal": number, "pid": pid}:
                os.kill(pid, number)
                answer = 0
            case {"wait": pid}:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.sendall(b"%d\n" % answer)


def become(job: Job, told: object, handed: list[int]) -> None:
    """Be the process of a job: do it, and end as an interpreter ends."""
    with contextlib.suppress(EOFError):
        job(Line(socket.socket(fileno=handed[0])), told, *handed[1:])
    sys.exit()


if __name__ == "__main__":
    from tests.processes.jobs import JOBS

    serve(JOBS, socket.socket(fileno=int(sys.argv[1])))
