"""The file store: checkpoints as files of a folder, shared by any number of store objects, event loops and processes.

Every call is one hop to the thread that owns the folder. No object of an event loop is kept. What lies where, and why a
kill at any moment harms nothing: docs/decisions/0016-file-store.md.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from rehydrate.ports import Clock, Examination

from .arguments import folder_text
from .file_batch import serve
from .file_health import examine_folder
from .file_history import forget_checkpoints, read_archive, read_tags, write_archive, write_tag
from .file_inbox import read_offers, write_offer
from .file_listing import read_requests, read_runs
from .file_place import FilePlace
from .file_reading import (
    read_checkpoint,
    read_events,
    read_head,
    read_history,
    read_records,
    read_request,
    read_turn,
)
from .file_undo import delete_run
from .file_writing import renew_lease, write_commit
from .local import Deeds, LocalStorage
from .worker import Kind

_KIND: Final = Kind("file", FilePlace, serve, most=1)
_DEEDS: Final = Deeds[FilePlace](
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


class FileCheckpointStorage(LocalStorage[FilePlace]):
    """A store in a folder of its own, made when first used; `clock` is what leases are measured on.

    `keep_events`: it keeps what its runs tell, too.

    The folder must be writable, also to read. A store object is for the one folder that it has opened: where that is
    moved or removed, every call raises `StoreUnavailableError` until it is back. A disk that fails ends the use of all
    store objects of the folder; new ones read what is really there.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, clock: Clock | None = None, keep_events: bool = False
    ) -> None:
        path = os.path.realpath(folder_text(directory))
        super().__init__(path, _KIND, _DEEDS, clock=clock, keep_events=keep_events)

    async def examine(self, *, full: bool = False) -> Examination:
        """Say how the folder is; see `rehydrate.ports.Examined`."""
        self._joined()  # raises where this object is closed
        return await asyncio.to_thread(examine_folder, self._path, full=full)
