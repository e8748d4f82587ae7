"""The SQLite store: checkpoints in one file, shared by any number of store objects, event loops and processes.

Every call is one hop to the thread that owns the file, and one transaction there. No object of an event loop is kept.
"""

from __future__ import annotations

import os
from functools import partial
from operator import attrgetter
from typing import Final, cast

from rehydrate.ports import Clock, Examination
from rehydrate.ports.loops import idle_timer

from .arguments import check_texts, path_text
from .local import Deeds, LocalStorage
from .sqlite_archive import read_archive, write_archive
from .sqlite_batch import serve
from .sqlite_database import Database
from .sqlite_driver import DRIVERS, Driver, check_driver
from .sqlite_health import examine_file
from .sqlite_inbox import read_offers, write_offer
from .sqlite_listing import read_requests, read_runs
from .sqlite_reading import (
    has_news,
    read_checkpoint,
    read_events,
    read_head,
    read_history,
    read_records,
    read_request,
    read_turn,
)
from .sqlite_retention import forget_checkpoints, read_tags, write_tag
from .sqlite_writing import delete_run, renew_lease, write_commit
from .worker import Kind

#: Seconds after which somebody who waits looks again all the same: an owner may have died without a word.
_LONGEST: Final = 10.0
_KINDS: Final = {
    driver: Kind(
        "sqlite",
        partial(Database, driver=driver),
        serve,
        variant=f"driver={driver!r}",
        version=attrgetter("version"),
    )
    for driver in DRIVERS
}
_DEEDS: Final = Deeds[Database](
    write_commit=write_commit,
    renew_lease=renew_lease,
    delete_run=delete_run,
    write_offer=write_offer,
    write_tag=write_tag,
    forget_checkpoints=forget_checkpoints,
    write_archive=write_archive,
    read_head=read_head,
    read_checkpoint=read_checkpoint,
    read_records=read_records,
    read_request=read_request,
    read_turn=read_turn,
    read_requests=read_requests,
    read_runs=read_runs,
    read_history=read_history,
    read_events=read_events,
    read_offers=read_offers,
    read_tags=read_tags,
    read_archive=read_archive,
)


class SqliteCheckpointStorage(LocalStorage[Database]):
    """A store in the SQLite file at `path`, made when first used; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too. `driver`: "apsw" brings a newer SQLite than that of most systems
    (extra `apsw`).

    Beside the file stand SQLite's own `-wal` and `-shm` and the folder `<path>.owners` with lock files; so its folder
    must be writable, also to read. A store object is for the one file that it has opened: where that is moved or
    removed, every call raises `StoreUnavailableError` until it is back.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        keep_events: bool = False,
        driver: Driver = "sqlite3",
    ) -> None:
        kind = _KINDS[check_driver(driver)]
        super().__init__(os.path.realpath(path_text(path)), kind, _DEEDS, clock=clock, keep_events=keep_events)

    @property
    def wakes(self) -> bool:
        """That `changed` is told of commits; see `rehydrate.ports.Watched`."""
        return True

    async def changed(self, run_id: str, after: int) -> None:
        """Return once a run may have events behind number `after` or no owner that lives, or some seconds later."""
        check_texts(run_id=run_id)
        now = self._now
        found = self._joined().watch(lambda database: has_news(database, run_id, after, now))
        timer = idle_timer(_LONGEST, lambda: None if found.done() else found.set_result(False))
        try:
            await found
        finally:
            timer.cancel()

    async def examine(self, *, full: bool = False) -> Examination:
        """Say how the file is; see `rehydrate.ports.Examined`."""
        look = self._joined().call(lambda database: examine_file(database, full=full), alone=True)
        return cast("Examination", await look)

    async def vacuum(self) -> None:
        """Give the space of what was deleted and forgotten back to the system.

        It writes the whole file anew, and whoever commits meanwhile waits; SQLite uses freed space again without it.
        """
        await self._joined().call(Database.vacuum, alone=True)
