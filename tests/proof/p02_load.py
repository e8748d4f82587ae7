"""Load on a PostgreSQL server of one's own: processes that have talks while the server is ended and lines are cut.

It is ended after so many turns, not after so many seconds. Must not know what a talk says.
"""

import asyncio
import random
import select
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path

from tests.postgres.relays import Proxy
from tests.postgres.server import Place
from tests.processes.nursery import Child, Nursery
from tests.proof.cuts import PLACES, Cuts, OwnServer
from tests.proof.talks import expected, findings

#: Seconds after which a turn must have come: a server starts in one or two, on a machine that is not busy.
PATIENCE = 120.0
Told = dict[str, object]


class Load:
    """Processes that have talks over one schema; some of them by way of a proxy that cuts lines by chance."""

    def __init__(self, nursery: Nursery, server: OwnServer, folder: Path, told: list[Told], seed: int) -> None:
        self._server = server
        self._told = told
        self._journal = folder / "journal"
        self.place = Place(server.url, "rehydrate")
        self.proxy = Proxy(server.url)
        chance = random.Random(seed)
        self.cuts = Cuts(self.proxy, PLACES, lambda number: chance.random() < 0.04)
        place = {"journal": str(self._journal), "waits": [0.0, 0.05, 0.1]}
        urls = [server.url, server.url, self.proxy.url]
        self._children = [
            nursery.child("talking", {**place, **each, "postgres": [urls[number % len(urls)], self.place.schema]})
            for number, each in enumerate(told)
        ]
        self.results: dict[str, list[object]] = defaultdict(list)
        #: How many calls were made again.
        self.repeated = 0

    def run(self, every: int, how: str | None = None) -> None:
        """Let them talk to their end; the server is ended once in so many turns, in the next of all ways or in one."""
        turns, left = 0, list(self._children)
        while left:
            ready = select.select([child.line.end for child in left], [], [], PATIENCE)[0]
            assert ready, "nothing was said for two minutes"
            for child in [child for child in left if child.line.end in ready]:
                for said in heard(child):
                    if said is None:
                        left.remove(child)
                        continue
                    if isinstance(said, dict):
                        self.repeated += said["repeated"]
                        continue
                    run_id, result = said
                    self.results[run_id].append(result)
                    turns += 1
                    if turns % every == 0:
                        self._server.end(how)

    def findings(self) -> list[str]:
        """Return what is wrong: results that differ from those of a store that does not fail, and all that is lost."""
        self.proxy.release()
        found: list[str] = []
        for each in self._told:
            for run_id, results in expected(each).items():
                found += [
                    f"{run_id}: {got} instead of {right}"
                    for got, right in zip_longest(self.results[run_id], map(plain, results))
                    if got != right
                ]

        async def look() -> list[str]:
            async with self.place.store() as store:
                return await findings(store, self._journal, self._told)

        return found + asyncio.run(look())

    def close(self) -> None:
        """Cut what is left."""
        self.proxy.close()


def plain(result: dict[str, object]) -> dict[str, object]:
    """Return what a process tells of a turn."""
    return {key: result[key] for key in ("turn", "outputs", "asked")}


def heard(child: Child) -> list[object]:
    """Return what a process has said by now, and `None` at its end."""
    said: list[object] = []
    while True:
        try:
            said.append(child.receive(0.0))
        except TimeoutError:
            return said
        except EOFError:
            return [*said, None]


def set_up(server: OwnServer, **settings: object) -> None:
    """Set a server up for being ended: whole pages in its log, but no waiting for its disk, which nobody takes away."""
    for name, value in {"fsync": "off", "full_page_writes": "on", **settings}.items():
        server.ask(f"ALTER SYSTEM SET {name} = '{value}'")
    server.ask("SELECT pg_reload_conf()")
