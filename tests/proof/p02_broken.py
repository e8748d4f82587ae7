"""Stores that are broken on purpose, each as a real mistake could look like. For the process of a trial only.

Each function breaks the code of its own process, by the parts of a store that do the thing in question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Final

from rehydrate.stores import (
    file_disk,
    file_history,
    file_inbox,
    file_index,
    file_place,
    file_undo,
    file_writing,
    local,
    sqlite_batch,
    sqlite_database,
    sqlite_retention,
    sqlite_writing,
)


def acknowledges_before_it_writes() -> None:
    """Each commit is written while its caller goes on already."""
    commit, close = local.LocalStorage.commit, local.LocalStorage.close
    late: dict[int, asyncio.Task[None]] = {}

    async def settled(store: Any) -> None:
        if id(store) in late:
            await late.pop(id(store))

    async def later(store: Any, what: Any) -> None:
        await settled(store)
        late[id(store)] = asyncio.ensure_future(commit(store, what))

    async def closed(store: Any) -> None:
        await settled(store)
        await close(store)

    local.LocalStorage.commit, local.LocalStorage.close = later, closed


def acknowledges_before_commit() -> None:
    """SQLite's COMMIT waits for the next transaction, or for the end."""
    kind = sqlite_database.Database
    reading, disconnect = kind.reading, kind.disconnect

    def finish(database: Any) -> None:
        if database.in_transaction:
            database._connection.execute("COMMIT")

    @contextlib.contextmanager
    def writes(database: Any) -> Generator[None]:
        connection = database._current()
        finish(database)
        with database._lock.hold():
            database._check_identity()
            database._next_record = None
            connection.execute("BEGIN IMMEDIATE")
            yield

    def reads(database: Any) -> Any:
        finish(database)
        return reading(database)

    def disconnects(database: Any) -> None:
        finish(database)
        disconnect(database)

    kind.writing, kind.reading, kind.disconnect = writes, reads, disconnects


def _begins_another(database: Any) -> None:
    database.execute("COMMIT")
    database.execute("BEGIN IMMEDIATE")


def writes_in_two_transactions() -> None:
    """A run is moved in one, and its checkpoint written in another."""
    write = sqlite_writing._write_checkpoint

    def writes(database: Any, *arguments: Any) -> None:
        _begins_another(database)
        write(database, *arguments)

    sqlite_writing._write_checkpoint = writes


def forgets_in_two_transactions() -> None:
    """Checkpoints go in one, and what nobody needs any more in another."""
    drop = sqlite_retention._drop_unneeded

    def drops(database: Any, *arguments: Any) -> None:
        _begins_another(database)
        drop(database, *arguments)

    sqlite_retention._drop_unneeded = drops


def deletes_in_two_transactions() -> None:
    """Records go in one, and the run in another."""
    kind = sqlite_database.Database
    execute_many = kind.execute_many

    def executes(database: Any, statement: str, rows: Iterable[Any]) -> int:
        count = execute_many(database, statement, rows)
        if statement == sqlite_writing._DELETE_RECORDS:
            _begins_another(database)
        return count

    kind.execute_many = executes


def swallows_errors_of_sqlite() -> None:
    """What the disk could not do is taken for done."""

    def fail(database: Any, tasks: Iterable[Any], error: BaseException) -> None:
        for task in tasks:
            task.error = None if isinstance(error, sqlite3.OperationalError) else error

    sqlite_batch._fail = fail


def goes_on_after_a_failed_sync() -> None:
    """The same connection is used again, as if nothing had been lost."""
    sqlite_database.Database.breaks = lambda *_: None
    sqlite_batch.spoils_connection = lambda _: False


def file_goes_on_after_a_failed_sync() -> None:
    """The same store object is used again."""
    file_place.FilePlace.note = lambda *_: None


def swallows_failed_syncs() -> None:
    """A sync that has failed is taken for one that has not."""

    def sync(descriptor: int) -> None:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)

    file_disk._sync = sync


def writes_in_place() -> None:
    """A file is written over instead of being replaced."""
    replace = file_disk.put_in_place

    def write(temporary: Path, path: Path) -> None:
        if temporary.is_dir():
            replace(temporary, path)
            return
        data = temporary.read_bytes()
        path.write_bytes(data)
        file_disk.sync_folder(path.parent)
        temporary.unlink()

    for module in (file_writing, file_index, file_inbox):
        module.put_in_place = write


def renames_before_it_writes() -> None:
    """A head comes to its place empty, and is filled there."""
    write, replace = file_disk.write_new, file_disk.put_in_place
    waiting: dict[Path, list[bytes]] = {}

    def writes(path: Path, pieces: Iterable[bytes]) -> None:
        waiting[path] = list(pieces)
        write(path, [] if path.suffix == ".head" else waiting.pop(path))

    def replaces(temporary: Path, path: Path) -> None:
        replace(temporary, path)
        if temporary in waiting:
            with path.open("ab", buffering=0) as file:
                file.write(b"".join(waiting.pop(temporary)))
                os.fsync(file.fileno())

    file_writing.write_new, file_writing.put_in_place = writes, replaces


def names_a_commit_before_it_is_there() -> None:
    """The head comes to its place before the commit that it names."""
    replace = file_disk.put_in_place
    waiting: list[tuple[Path, Path]] = []

    def replaces(temporary: Path, path: Path) -> None:
        if temporary.suffix == ".commit":
            waiting.append((temporary, path))
            return
        replace(temporary, path)
        while waiting and temporary.suffix == ".head":
            replace(*waiting.pop())

    file_writing.put_in_place = replaces


def deletes_piece_by_piece() -> None:
    """A run is removed where it stands."""
    file_undo.put_in_place = lambda folder, _: shutil.rmtree(folder)


def takes_no_notice_of_short_writes() -> None:
    """What a write says that it has written is not read."""

    def write(path: Path, pieces: Iterable[bytes]) -> None:
        descriptor = os.open(path, file_disk._NEW, 0o666)
        for piece in pieces:
            os.write(descriptor, piece)
        os.fsync(descriptor)
        os.close(descriptor)

    file_writing.write_new = write


def fails_after_it_has_written() -> None:
    """Tidying up after a write fails the write, with an error that says that nothing of it is there."""
    for module in (file_writing, file_history, file_undo):
        module.tidying = contextlib.nullcontext


BROKEN: Final[dict[str, Callable[[], None]]] = {
    each.__name__: each
    for each in (
        acknowledges_before_it_writes, acknowledges_before_commit, writes_in_two_transactions,
        forgets_in_two_transactions, deletes_in_two_transactions, swallows_errors_of_sqlite,
        goes_on_after_a_failed_sync, file_goes_on_after_a_failed_sync, swallows_failed_syncs, writes_in_place,
        renames_before_it_writes, names_a_commit_before_it_is_there, deletes_piece_by_piece,
        takes_no_notice_of_short_writes, fails_after_it_has_written,
    )
}  # fmt: skip
