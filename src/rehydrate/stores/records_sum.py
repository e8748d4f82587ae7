"""The record sum: what shows that no record of a checkpoint is missing, stale or swapped.

What a record adds to it is defined in `codecs.checkpoints`. `RecordSum` does the same while records are read part
by part, and hashes big data on a second thread: hashing takes as long as reading.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Protocol

from rehydrate.codecs.checkpoints import check_digests, key_prefix, record_digest
from rehydrate.model.checkpoint import Header

#: Below these sizes a thread costs more than it saves: bytes read in all, and bytes of one part.
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
    """Adds up the digests of records that are given part by part, the parts of one record together."""

    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        self._read = 0
        self._key: str | None = None
        self._hash: _Hash = hashlib.sha256()
        self._handed = False
        self._elsewhere: list[tuple[str, _Hash]] = []
        self._queue: SimpleQueue[tuple[_Hash, bytes] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RecordSum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._join()

    def add(self, key: str, data: bytes) -> None:
        """Take a record, or the next part of the one before."""
        if key != self._key:
            self._finish()
            self._key = key
            self._hash = hashlib.sha256(key_prefix(key))
            self._handed = False
        self._read += len(data)
        if self._handed or (len(data) >= _BIG and self._read > _MUCH):
            self._hand_over(data)
        else:
            self._hash.update(data)

    def checked(self, header: Header) -> dict[str, int]:
        """Do what `checked_sum` does, with the records that were given."""
        self._finish()
        self._key = None
        self._join()
        for key, digest in self._elsewhere:
            self._digests[key] = int.from_bytes(digest.digest(), "big")
        check_digests(header, self._digests)
        return self._digests

    def _finish(self) -> None:
        if self._key is None:
            return
        if self._handed:
            self._elsewhere.append((self._key, self._hash))
        else:
            self._digests[self._key] = int.from_bytes(self._hash.digest(), "big")

    def _hand_over(self, data: bytes) -> None:
        self._handed = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="rehydrate record sum", daemon=True)
            self._thread.start()
        self._queue.put((self._hash, data))

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            item[0].update(item[1])

    def _join(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()
