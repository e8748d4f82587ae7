"""The record sum: what shows that no record of a checkpoint is missing, stale or swapped.

What a record adds to it is defined in `codecs.checkpoints`. `RecordSum` does the same while records are still being
read, and hashes big ones on a second thread: hashing takes as long as reading.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Protocol

from rehydrate.codecs.checkpoints import check_digests, key_prefix, record_digest
from rehydrate.model.checkpoint import Header

#: Below these sizes a thread costs more than it saves: bytes read in all, and bytes of one record.
_MUCH: Final = 1024 * 1024
_BIG: Final = 64 * 1024


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


def checked_sum(header: Header, records: Mapping[str, bytes]) -> dict[str, int]:
    """Return each record's digest. Raises `CheckpointCorruptError` where one is missing, stale, swapped or changed."""
    digests = {key: record_digest(key, data) for key, data in records.items()}
    check_digests(header, digests)
    return digests


class RecordSum:
    """Adds up the digests of records while others are still being read."""

    def __init__(self) -> None:
        self._hashes: dict[str, _Hash] = {}
        self._read = 0
        self._queue: SimpleQueue[tuple[_Hash, Sequence[bytes]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RecordSum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._join()

    def add(self, key: str, data: bytes) -> None:
        """Take a record."""
        digest = self._hashes[key] = hashlib.sha256(key_prefix(key))
        self._read += len(data)
        if len(data) >= _BIG and self._read > _MUCH:
            self._hand_over(digest, [data])
        else:
            digest.update(data)

    def add_piece(self, key: str, parts: Sequence[bytes]) -> None:
        """Take the next parts of a record that is too long to wait for its end."""
        digest = self._hashes.get(key)
        if digest is None:
            digest = self._hashes[key] = hashlib.sha256(key_prefix(key))
        self._hand_over(digest, parts)

    def checked(self, header: Header) -> dict[str, int]:
        """Do what `checked_sum` does, with the records that were given."""
        self._join()
        digests = {key: int.from_bytes(digest.digest(), "big") for key, digest in self._hashes.items()}
        check_digests(header, digests)
        return digests

    def _hand_over(self, digest: _Hash, parts: Sequence[bytes]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="rehydrate record sum", daemon=True)
            self._thread.start()
        self._queue.put((digest, parts))

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            digest, parts = item
            for part in parts:
                digest.update(part)

    def _join(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()
