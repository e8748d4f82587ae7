"""What happens to a PostgreSQL server and to the lines to it while talks go on; must not know what is said there."""

import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.postgres.keeper import Handle
from tests.postgres.relays import Proxy

#: Where a line is cut at a request that commits: see `Proxy`.
PLACES = ["request", "half", "reply", "torn", "late"]
#: What is done to a server, in turn.
ENDS = ["immediate", "fast", "kill", "backend"]


def writes(request: bytes) -> bool:
    """Whether a request that commits has written something before."""
    return b"READ ONLY" not in request


class Cuts:
    """A plan of cuts: which of the writing requests, by number, are cut; each in the next of some places."""

    def __init__(self, proxy: Proxy, places: list[str], cuts: Callable[[int], bool]) -> None:
        self.made = 0
        self.seen = 0
        self._proxy = proxy
        self._places = itertools.cycle(places)
        self._cuts = cuts
        proxy.plan = self._plan

    def _plan(self, request: bytes) -> str | None:
        if not writes(request):
            return None
        number, self.seen = self.seen, self.seen + 1
        if not self._cuts(number):
            return None
        self.made += 1
        # What was late before arrives now, while others are on their way.
        self._proxy.release()
        return next(self._places)


class OwnServer:
    """A server of one's own, which may be ended and started."""

    def __init__(self, folder: Path) -> None:
        self._handle = Handle(folder)
        self.url = self._handle.url
        self._ways = itertools.cycle(ENDS)
        self.ends = 0

    def end(self, how: str | None = None) -> None:
        """End it, in the next of the ways, and start it again."""
        how = how or next(self._ways)
        self.ends += 1
        if how == "backend":
            self._kill_a_backend()
        else:
            self._handle.restart(how)

    def close(self) -> None:
        self._handle.close()

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _kill_a_backend(self) -> None:
        """Kill the process of one connection; the server then throws everybody out, and recovers by itself."""
        active = (
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            " ORDER BY state = 'active' DESC LIMIT 1"
        )
        with contextlib.suppress(psycopg.OperationalError, ProcessLookupError):  # it may have ended meanwhile
            for (pid,) in self.ask(active):
                os.kill(int(str(pid)), signal.SIGKILL)


@contextmanager
def own_server(folder: Path) -> Iterator[OwnServer]:
    """Give a server of one's own."""
    found = OwnServer(folder)
    try:
        yield found
    finally:
        found.close()
