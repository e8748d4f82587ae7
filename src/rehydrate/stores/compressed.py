"""The compressing store: a store around a store, that asks for big records to be compressed.

They are compressed where records are encoded and read by any process that has the extra, also without this store; here
nothing is done to them.
"""

from __future__ import annotations

from rehydrate.codecs.compression import require
from rehydrate.ports import CheckpointStorage

from .around import StoreAround


class CompressedCheckpointStorage(StoreAround):
    """A store whose runs have big records compressed with zstd; all else is the work of `store`, which it closes.

    Raises `MissingExtraError` where there is no zstd.
    """

    def __init__(self, store: CheckpointStorage) -> None:
        require()
        super().__init__(store)

    @property
    def compresses(self) -> bool:
        """That big records are to be compressed."""
        return True
