"""Where the stores are that `benchmarks.stores` measures: an empty one for each measurement, and what it takes on disk.

Knows no workflow. PostgreSQL is imported only where it is asked for.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from rehydrate import SqliteCheckpointStorage
from rehydrate.ports import CheckpointStorage


class Place(Protocol):
    """One empty database; stores that are opened in it one after the other are the same store."""

    @property
    def name(self) -> str:
        """How another process opens it: a path or a URL."""
        ...

    def store(self) -> contextlib.AbstractAsyncContextManager[CheckpointStorage]:
        """Open it."""
        ...

    def size(self) -> int:
        """Return the bytes on disk while no store is open, with nothing left in a journal."""
        ...


class SqlitePlace:
    """A SQLite file in a folder of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path)

    def store(self) -> SqliteCheckpointStorage:
        return SqliteCheckpointStorage(self.path)

    def size(self) -> int:
        # The last connection that closes has moved the WAL into the file.
        return sum(file.stat().st_size for file in self.path.parent.iterdir() if file.is_file())


class Places(Protocol):
    """Gives empty places of one kind."""

    @property
    def kind(self) -> str:
        """The kind of store."""
        ...

    def empty(self) -> contextlib.AbstractContextManager[Place]:
        """Give a place and remove it afterwards."""
        ...


class SqlitePlaces:
    """Gives SQLite files."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def empty(self) -> Iterator[Place]:
        """Give a file in a new folder and remove both afterwards."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield SqlitePlace(folder / "runs.db")
        finally:
            shutil.rmtree(folder)


@contextlib.contextmanager
def open_places(kind: str, folder: Path, url: str | None) -> Iterator[Places]:
    """Give places in a folder, or on a server: the one at `url`, or one that is started for this."""
    if kind == "sqlite":
        yield SqlitePlaces(folder)
        return
    from benchmarks.postgres import open_server  # noqa: PLC0415  (an extra)

    with open_server(folder, url) as places:
        yield places


def place_of(kind: str, name: str) -> Place:
    """Return the place of a kind that another process has named."""
    if kind == "sqlite":
        return SqlitePlace(Path(name))
    from benchmarks.postgres import PostgresPlace  # noqa: PLC0415  (an extra)

    return PostgresPlace(name)
