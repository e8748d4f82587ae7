"""The protocol of PostgreSQL, as far as something between client and server has to know it."""

import socket
import struct
from collections.abc import Iterator

#: What a client may begin with instead of a version: it asks for encryption, or for a call to be ended.
ENCRYPTIONS = {80877103, 80877104}
CANCEL = 80877102


class Closed(Exception):  # noqa: N818  (it ends a connection, and is no error)
    """The other end is gone."""


def receive(end: socket.socket, size: int) -> bytes:
    """Return exactly so many bytes."""
    data = b""
    while len(data) < size:
        more = end.recv(size - len(data))
        if not more:
            raise Closed
        data += more
    return data


def startup(client: socket.socket) -> bytes:
    """Return the first message of a client, whole; it gets no encryption."""
    while True:
        size = receive(client, 4)
        body = receive(client, struct.unpack("!i", size)[0] - 4)
        code = struct.unpack("!i", body[:4])[0]
        if code == CANCEL:
            raise Closed
        if code not in ENCRYPTIONS:
            return size + body
        client.sendall(b"N")


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message."""
    return kind + struct.pack("!i", len(body) + 4) + body


class Splitter:
    """Takes bytes as they come and gives messages that are whole."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._data += data
        while len(self._data) >= 5:
            size = 1 + struct.unpack("!i", self._data[1:5])[0]
            if len(self._data) < size:
                return
            whole = bytes(self._data[:size])
            del self._data[:size]
            yield whole

    @property
    def is_empty(self) -> bool:
        return not self._data


def asks(whole: bytes) -> bool:
    """Whether a client's message is one that the server answers with ReadyForQuery."""
    return whole[:1] in {b"S", b"Q"}
