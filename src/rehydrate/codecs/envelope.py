"""The envelope of a stored record: magic, format version, length and checksum before the body.

It finds accidental damage before anything is decoded; it is no protection against someone who can write to the store.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError

#: Version of the envelope and of what is inside; a reader refuses a higher one.
FORMAT_VERSION: Final = 1
_MAGIC: Final = b"RH"
_HEADER: Final = struct.Struct(">2sBII")
#: Bytes that an envelope adds to a body.
OVERHEAD: Final = _HEADER.size


def wrap(body: bytes) -> bytes:
    """Return the body in an envelope; raises `OverflowError` for a body of 4 GiB or more."""
    if len(body) >= 1 << 32:
        raise OverflowError("a record holds less than 4 GiB")
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, len(body), zlib.crc32(body)) + body


def unwrap(data: bytes, *, hashed: bool = False) -> memoryview:
    """Return the body of an envelope; raises `CheckpointCorruptError` or `CheckpointFormatError`.

    `hashed`: its digest was part of a record sum that was right, so its checksum need not be looked at again.
    """
    if len(data) < OVERHEAD:
        raise CheckpointCorruptError("a stored record", "it is shorter than its header")
    magic, version, length, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise CheckpointCorruptError("a stored record", "it does not begin like one")
    if version > FORMAT_VERSION:
        raise CheckpointFormatError("a stored record", version, FORMAT_VERSION)
    if version < 1:
        raise CheckpointCorruptError("a stored record", "it has no format version")
    body = memoryview(data)[OVERHEAD:]
    if len(body) != length:
        raise CheckpointCorruptError("a stored record", f"it holds {len(body)} bytes and says {length}")
    if not hashed and zlib.crc32(body) != checksum:
        raise CheckpointCorruptError("a stored record", "its checksum is wrong")
    return body
