"""What stands between a client and a server in tests: a pooler that pools by transaction, and a proxy that cuts lines.

Both listen on a port of this machine and serve each client in a thread.
"""

import contextlib
import os
import queue
import selectors
import socket
import threading
from collections.abc import Callable

import psycopg
from psycopg.conninfo import make_conninfo

from tests.postgres.wire import Closed, Splitter, asks, message, receive, startup


class Relay:
    """Listens, and hands each client to `serve` in a thread of its own."""

    def __init__(self, url: str) -> None:
        self.server_url = url
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._ends: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def url(self) -> str:
        """The server's URL, by way of here."""
        return make_conninfo(self.server_url, host="127.0.0.1", port=self.port, sslmode="disable", gssencmode="disable")

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Cut all lines and wait for all threads."""
        self.refuse()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def refuse(self) -> None:
        """Take no more clients."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def accept(self) -> None:
        """Take clients again."""
        self._door = socket.create_server(("127.0.0.1", self.port))
        self._start(self._accept)

    def cut(self) -> None:
        """Cut all lines that there are."""
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def keep(self, end: socket.socket) -> socket.socket:
        """Note a line, to be cut at the end."""
        self._ends.add(end)
        return end

    def drop(self, end: socket.socket) -> None:
        self._ends.discard(end)
        end.close()

    def _accept(self) -> None:
        door = self._door
        with contextlib.suppress(OSError):
            while True:
                client = self.keep(door.accept()[0])
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._start(lambda client=client: self._serve(client))

    def _serve(self, client: socket.socket) -> None:
        try:
            # A server that is not there, too: its client is told by the end of its line.
            with contextlib.suppress(Closed, OSError, psycopg.OperationalError):
                self.serve(client)
        finally:
            self.drop(client)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()


class Backend:
    """A connection to the server, logged in, and its bare socket."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(make_conninfo(url, sslmode="disable"), autocommit=True)
        self.socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        self.socket.setblocking(True)
        names = ("server_version", "server_encoding", "client_encoding", "standard_conforming_strings", "TimeZone")
        told = ((name.encode(), self._connection.pgconn.parameter_status(name.encode()) or b"") for name in names)
        self.parameters = b"".join(message(b"S", name + b"\0" + value + b"\0") for name, value in told)

    def close(self) -> None:
        self.socket.close()
        self._connection.close()


#: The message by which a client asks for what has been answered so far.
_FLUSH = b"H\0\0\0\4"


class TransactionPooler(Relay):
    """Gives each transaction of a client another connection to the server than the one before."""

    def __init__(self, url: str, backends: int = 3) -> None:
        self._backends = [Backend(url) for _ in range(backends)]
        self._free: queue.SimpleQueue[Backend] = queue.SimpleQueue()
        for backend in self._backends:
            self._free.put(backend)
        #: How many transactions there were.
        self.transactions = 0
        super().__init__(url)

    def serve(self, client: socket.socket) -> None:
        startup(client)
        welcome = message(b"R", b"\0\0\0\0") + self._backends[0].parameters + message(b"K", b"\0" * 8)
        client.sendall(welcome + message(b"Z", b"I"))
        while True:
            first = client.recv(65536)
            while first.startswith(_FLUSH):  # the end of what was answered already: nothing begins with it
                first = first.removeprefix(_FLUSH)
                first = first or client.recv(65536)
            if not first or first[:1] == b"X":
                return
            backend = self._free.get()
            self.transactions += 1
            # One that a client has left in a transaction is not given to anybody else.
            if _pump(client, backend.socket, first):
                self._free.put(backend)
            else:
                return

    def close(self) -> None:
        for backend in self._backends:
            with contextlib.suppress(OSError):
                backend.socket.shutdown(socket.SHUT_RDWR)
        super().close()
        for backend in self._backends:
            backend.close()


def _pump(client: socket.socket, server: socket.socket, first: bytes) -> bool:
    """Hand everything on until no transaction is open and nothing is asked; say whether it came to that."""
    from_client, from_server = Splitter(), Splitter()
    waiting = sum(map(asks, from_client.feed(first)))
    server.sendall(first)
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ)
        selector.register(server, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                data = key.fileobj.recv(65536)
                if not data:
                    return False
                if key.fileobj is client:
                    server.sendall(data)
                    waiting += sum(map(asks, from_client.feed(data)))
                    continue
                client.sendall(data)
                ends = [whole for whole in from_server.feed(data) if whole[:1] == b"Z"]
                waiting -= len(ends)
                if ends and not waiting and ends[-1][-1:] == b"I" and from_client.is_empty:
                    return True


class Proxy(Relay):
    """Hands requests on, and cuts the line at one that commits where it was told to.

    `cut_at`: `"request"`: before the server has any of it; `"half"`: when the server has half of it; `"reply"`: when
    the server has answered, before the client has the answer; `"torn"`: when the client has half of that; `"late"`:
    before the server has any of it, and it gets that when `release` is called. `meanwhile` is called then, before the
    client knows. A `plan` says where for each request that commits, and is given that request.
    """

    def __init__(self, url: str) -> None:
        self.cut_at: str | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        self.plan: Callable[[bytes], str | None] = lambda request: None
        #: How many requests there were, and how many that commit.
        self.requests = 0
        self.commits = 0
        self._late: list[tuple[socket.socket, bytes]] = []
        super().__init__(url)

    def serve(self, client: socket.socket) -> None:
        server = self.keep(_connected(self.server_url))
        try:
            server.sendall(startup(client))
            self._log_in(client, server)
            self._requests(client, server)
        finally:
            if not any(late is server for late, _ in self._late):
                self.drop(server)

    def release(self) -> None:
        """Give the server what is late, and wait for its answer."""
        while self._late:
            server, request = self._late.pop()
            with contextlib.suppress(Closed, OSError):  # the server may be gone by now
                server.sendall(request)
                _answer(server)
            self.drop(server)

    def _log_in(self, client: socket.socket, server: socket.socket) -> None:
        # Both may have to speak, as often as the way of logging in wants it.
        splitter = Splitter()
        while True:
            data = server.recv(65536)
            client.sendall(data)
            for whole in splitter.feed(data):
                if whole[:1] == b"Z":
                    return
                if whole[:1] == b"R" and whole[8] not in {0, 12}:
                    server.sendall(client.recv(65536))
            if not data:
                raise Closed

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            request = _request(client)
            self.requests += 1
            if b"COMMIT" in request:
                self.commits += 1
                where, self.cut_at = self.cut_at or self.plan(request), None
                if where is not None:
                    self._cut(where, request, server, client)
                    return
            server.sendall(request)
            client.sendall(_answer(server))

    def _cut(self, where: str, request: bytes, server: socket.socket, client: socket.socket) -> None:
        if where == "half":
            server.sendall(request[: len(request) // 2])
        elif where == "reply":
            server.sendall(request)
            _answer(server)
        elif where == "torn":
            server.sendall(request)
            answer = _answer(server)
            client.sendall(answer[: len(answer) // 2])
        elif where == "late":
            self._late.append((server, request))
        self.meanwhile()


def _connected(url: str) -> socket.socket:
    with psycopg.connect(url) as connection:
        info = connection.info
        host, port = info.host, info.port
    if host.startswith("/"):
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(f"{host}/.s.PGSQL.{port}")
        except OSError:
            found.close()
            raise
        return found
    return socket.create_connection((host, port))


def _request(client: socket.socket) -> bytes:
    """Return what a client asks for, up to where it waits for an answer."""
    request = b""
    while True:
        head = receive(client, 5)
        whole = head + receive(client, int.from_bytes(head[1:], "big") - 4)
        request += whole
        if asks(whole):
            return request
        if whole[:1] == b"X":
            raise Closed


def _answer(server: socket.socket) -> bytes:
    """Return all that the server answers."""
    answer = b""
    while True:
        head = receive(server, 5)
        answer += head + receive(server, int.from_bytes(head[1:], "big") - 4)
        if head[:1] == b"Z":
            return answer
