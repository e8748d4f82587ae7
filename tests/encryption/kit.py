"""Keys, and stores with encryption around them."""

from pathlib import Path

from rehydrate import (
    CompressedCheckpointStorage,
    EncryptedCheckpointStorage,
    InMemoryCheckpointStorage,
    KeyRing,
    SqliteCheckpointStorage,
)
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
