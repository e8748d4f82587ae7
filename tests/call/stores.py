"""Stores whose disk can be full and whose bytes can rot, and a view of everything that a store holds."""

from pathlib import Path

import msgspec

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.model.checkpoint import CheckpointRef, Commit, Stored


class DiskFullError(OSError):
    """What a store raises that has no room left."""


class Breakable:
    """The faults of a disk, for a store: after `saves_left` commits it is full, and `rotten` flips a bit of each load."""

    saves_left: int | None = None
    rotten = False
    folder: Path

    async def commit(self, commit: Commit) -> None:
        if self.saves_left is not None:
            if self.saves_left == 0:
                raise DiskFullError("no space left on device")
            self.saves_left -= 1
        await super().commit(commit)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        stored = await super().load(ref)
        if stored is None or not self.rotten:
            return stored
        key, data = max(stored.records.items(), key=lambda item: len(item[1]))
        damaged = bytes([data[0], *data[1:-1], data[-1] ^ 1])
        return msgspec.structs.replace(stored, records={**stored.records, key: damaged})


class BreakableMemory(Breakable, InMemoryCheckpointStorage):
    """A memory store that can break."""


class BreakableSqlite(Breakable, SqliteCheckpointStorage):
    """A SQLite store that can break."""


async def everything(store: CheckpointStorage) -> list[bytes]:
    """Return all that a store holds: of every run its standing and all its checkpoints with their records."""
    found: list[bytes] = []
    for head in await store.runs():
        for header in await store.history(head.run_id):
            found.append(msgspec.msgpack.encode(await store.load(header.checkpoint_id), order="deterministic"))
    return found
