"""The record of a run's signature: a long text with much in it that repeats, once for each run.

Stored bytes are hostile: what is unpacked is bounded.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

import msgspec

#: A text that is longer when it is unpacked is cut off there, and no signature then.
_SIGNATURE_BYTES: Final = 8 * 1024 * 1024


class SignatureRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The signature's canonical text, compressed, kept so that an error can list what differs."""

    packed: bytes

    @property
    def text(self) -> str:
        """The text. Raises `ValueError` where there is none."""
        unpacking = zlib.decompressobj()
        try:
            return unpacking.decompress(self.packed, _SIGNATURE_BYTES).decode()
        except zlib.error as error:
            raise ValueError(str(error)) from None


@lru_cache(maxsize=64)
def signature_record(text: str) -> SignatureRecord:
    """Return the record of a signature; runs of one workflow have the same."""
    return SignatureRecord(zlib.compress(text.encode()))
