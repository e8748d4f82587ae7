"""A PostgreSQL server for tests, from a wheel.

A process of its own keeps it (`kept`), started by whoever needs the server first. Everybody who uses it holds a line to
that process. When the last one is gone, also by SIGKILL, it stops the server, removes its files and ends.
"""

import contextlib
import fcntl
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
        self._told.close()
        self._end.close()

    def restart(self, how: str) -> None:
        """End the server, `fast`, `immediate` or by `kill`, and start it again: for one who has it alone."""
        self._end.sendall(f"{how}\n".encode())
        if not self._told.readline():
            raise RuntimeError("the PostgreSQL server did not start again")

    def _join(self, place: Path) -> str | None:
        if not place.exists():
            return None
        self._end = socket.socket(socket.AF_UNIX)
        self._end.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            self._end.connect(place.read_text())
            self._told = self._end.makefile()
            return self._told.readline().strip() or None
        return None

    def _start(self, place: Path) -> str:
        home = tempfile.mkdtemp(prefix="rehydrate-pg-")
        self._end, theirs = socket.socketpair()
        self._end.settimeout(PATIENCE)
        command = [sys.executable, "-W", "ignore", "-m", "tests.postgres.kept", home, str(theirs.fileno())]
        with (Path(home) / "keeper.log").open("w") as log:
            # In a session of its own: an interrupt from the keyboard is not for it.
            keeper = subprocess.Popen(
                command, cwd=ROOT, pass_fds=[theirs.fileno()], stdout=log, stderr=log, start_new_session=True
            )
        # It may outlive us, when others use the server as well.
        _KEEPERS.append(keeper)
        theirs.close()
        self._told = self._end.makefile()
        url = self._told.readline().strip()
        if not url:
            told = (Path(home) / "keeper.log").read_text()
            raise RuntimeError(f"no PostgreSQL server could be started:\n{told}")
        place.write_text(str(Path(home) / "keeper"))
        return url
