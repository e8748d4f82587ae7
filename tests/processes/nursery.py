"""New processes at the cost of a fork: a template that has loaded everything and done nothing forks them.

The template has no threads, no store and no event loop, so what it forks shares no more with the test, or with one
another, than a new interpreter would. As a module it is the template. It reaps its children, because only then are all
locks of a killed one known to be free.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which a process that says nothing has failed.
PATIENCE = 60.0


class Line:
    """JSON values, one a line, over a socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._read = b""

    def send(self, value: object) -> None:
        self.end.sendall(json.dumps(value).encode() + b"\n")

    def heard(self) -> object | None:
        """Return the next value if it is here already; `EOFError` where the other side is gone."""
        while b"\n" not in self._read:
            if not select.select([self.end], [], [], 0)[0]:
                return None
            self._take()
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def receive(self, patience: float | None = PATIENCE) -> object:
        """Return the next value; `TimeoutError` where none came in time, `EOFError` where none will."""
        until = None if patience is None else time.monotonic() + patience
        while (value := self.heard()) is None:
            left = None if until is None else until - time.monotonic()
            if (left is not None and left <= 0) or not select.select([self.end], [], [], left)[0]:
                raise TimeoutError(f"nothing was said for {patience} seconds")
        return value

    def _take(self) -> None:
        try:
            data = self.end.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError("the other process is gone")
        self._read += data


class Child:
    """A process and our end of its line."""

    def __init__(self, nursery: "Nursery", line: Line, pid: int) -> None:
        self._nursery = nursery
        self.line = line
        self.pid = pid
        self.gone = False

    def send(self, value: object) -> None:
        self.line.send(value)

    def receive(self) -> object:
        return self.line.receive()

    def kill(self) -> None:
        """Send SIGKILL and return when the process is gone, with all that it had locked."""
        if not self.gone:
            self.signal(signal.SIGKILL)
            self.wait()

    def signal(self, number: int) -> None:
        self._nursery.tell({"signal": number, "pid": self.pid})

    def wait(self) -> int:
        """Wait for the end of the process and return how it ended: its exit code, or minus a signal's number."""
        code = self._nursery.tell({"wait": self.pid})
        self.gone = True
        self.line.end.close()
        return code

    def ends(self) -> None:
        """Let the process end by itself, as it does when nobody talks to it any more."""
        self.line.end.shutdown(socket.SHUT_RDWR)
        assert self.wait() == 0


class Nursery:
    """Makes processes; see the module."""

    def __init__(self, jobs: str) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.processes.nursery", jobs, str(theirs.fileno())]
        self._template = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        theirs.close()
        self._control = Line(ours)
        self._children: list[Child] = []

    def child(self, job: str, **told: object) -> Child:
        """Start a process that does a job; `told` is given to it. Descriptors are handed on with `handed`."""
        handed = told.pop("handed", [])
        ours, theirs = socket.socketpair()
        order = json.dumps({"job": job, "told": told}).encode()
        socket.send_fds(self._control.end, [order], [theirs.fileno(), *handed])
        theirs.close()
        child = Child(self, Line(ours), int(self._control.receive()))
        self._children.append(child)
        return child

    def tell(self, order: dict[str, int]) -> int:
        self._control.end.sendall(json.dumps(order).encode())
        return int(self._control.receive())

    def close(self) -> None:
        for child in self._children:
            child.kill()
        self._control.end.close()
        self._template.wait(PATIENCE)


@contextlib.contextmanager
def nursery(jobs: str) -> Iterator[Nursery]:
    """Make a nursery for the jobs of a module, which are its functions `(line, told, *descriptors)`."""
    found = Nursery(jobs)
    try:
        yield found
    finally:
        found.close()


def serve(jobs: dict[str, Callable[..., None]], control: socket.socket) -> None:
    """Obey orders, one at a time, until nobody gives any more."""
    while True:
        data, handed, _, _ = socket.recv_fds(control, 65536, 8)
        if not data:
            return
        order = json.loads(data)
        match order:
            case {"job": job, "told": told}:
                pid = os.fork()
                if pid == 0:
                    control.close()
                    become(jobs[job], told, handed)
                for descriptor in handed:
                    os.close(descriptor)
                answer = pid
            case {"signal": number, "pid": pid}:
                os.kill(pid, number)
                answer = 0
            case {"wait": pid}:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.sendall(b"%d\n" % answer)


def become(job: Callable[..., None], told: dict[str, object], handed: list[int]) -> None:
    """Be the process of a job: do it and end as an interpreter ends."""
    line = Line(socket.socket(fileno=handed[0]))
    with contextlib.suppress(EOFError):
        job(line, told, *handed[1:])
    sys.exit()


def main() -> None:
    name, descriptor = sys.argv[1:]
    jobs = __import__(name, fromlist=["JOBS"]).JOBS
    serve(jobs, socket.socket(fileno=int(descriptor)))


if __name__ == "__main__":
    main()
