"""Keys, stores with encryption around them, and stores inside that watch or that are meddled with."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from rehydrate import (
    CompressedCheckpointStorage,
    EncryptedCheckpointStorage,
    InMemoryCheckpointStorage,
    KeyRing,
    SqliteCheckpointStorage,
)
from rehydrate.codecs.checkpoints import digest_sum, record_digest
from rehydrate.model.checkpoint import CheckpointRef, Commit, Header, Stored
from rehydrate.ports import Clock

OLD = bytes(range(32))
NEW = bytes(range(100, 132))
OTHER = bytes(range(200, 232))


def ring() -> KeyRing:
    """The ring of most tests."""
    return KeyRing({"2026-11": OLD})


def encrypted_in_memory(*, clock: Clock | None = None) -> EncryptedCheckpointStorage:
    """Return a memory store, encrypted, which keeps events."""
    return EncryptedCheckpointStorage(InMemoryCheckpointStorage(clock=clock, keep_events=True), ring())


def encrypted(path: Path, *, clock: Clock | None = None, keys: KeyRing | None = None) -> EncryptedCheckpointStorage:
    """Return a SQLite store, encrypted, which keeps events."""
    inner = SqliteCheckpointStorage(path, clock=clock, keep_events=True)
    return EncryptedCheckpointStorage(inner, keys or ring())


def compressed(path: Path, *, clock: Clock | None = None) -> CompressedCheckpointStorage:
    """Return a SQLite store, encrypted, which asks for compression."""
    return CompressedCheckpointStorage(encrypted(path, clock=clock))


class WatchedStorage(InMemoryCheckpointStorage):
    """A memory store that notes what it is given and how often it is read as a whole."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock, keep_events=True)
        self.given: list[Commit] = []
        self.loads = 0

    async def commit(self, commit: Commit) -> None:
        self.given.append(commit)
        await super().commit(commit)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        self.loads += 1
        return await super().load(ref)


class MeddledStorage(InMemoryCheckpointStorage):
    """A memory store in the hands of someone who can change everything in it, and knows how a record sum is made."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock, keep_events=True)
        self.change: Callable[[Stored], Stored] | None = None

    async def load(self, ref: CheckpointRef) -> Stored | None:
        stored = await super().load(ref)
        if stored is None or self.change is None:
            return stored
        return summed(self.change(stored))

    async def honest(self, ref: CheckpointRef) -> Stored:
        """Return a checkpoint as it is."""
        stored = await super().load(ref)
        assert stored is not None
        return stored


def summed(stored: Stored) -> Stored:
    """Return a checkpoint whose record sum is right for the records that it has."""
    digests = {place: record_digest(place, data) for place, data in stored.records.items()}
    header = msgspec.structs.replace(stored.header, records=len(digests), digest=digest_sum(digests.values()))
    head = msgspec.structs.replace(stored.head, header=header) if _is_head(stored) else stored.head
    return msgspec.structs.replace(stored, header=header, digests=digests, head=head)


def with_header(stored: Stored, header: Header) -> Stored:
    """Return a checkpoint with another header."""
    head = msgspec.structs.replace(stored.head, header=header) if _is_head(stored) else stored.head
    return msgspec.structs.replace(stored, header=header, head=head)


def _is_head(stored: Stored) -> bool:
    return stored.head.header.checkpoint_id == stored.header.checkpoint_id
