"""A line between two processes: JSON values, one after the other, over a socket."""

import json
import select
import socket
import time

#: Seconds after which a process that says nothing has failed.
PATIENCE = 60.0


class Line:
    """One end of a line."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._read = b""

    def send(self, value: object) -> None:
        self.end.sendall(json.dumps(value).encode() + b"\n")

    def receive(self, patience: float | None = PATIENCE) -> object:
        """Return the next value; `TimeoutError` where none came in time, `EOFError` where none will."""
        until = None if patience is None else time.monotonic() + patience
        while b"\n" not in self._read:
            left = None if until is None else max(until - time.monotonic(), 0)
            if not select.select([self.end], [], [], left)[0]:
                raise TimeoutError(f"nothing was said for {patience} seconds")
            self._take()
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def _take(self) -> None:
        try:
            data = self.end.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError("the other process is gone")
        self._read += data
