"""The envelope of a stored record: what was done to it, format version, length and checksum before the body.

It finds accidental damage before anything is decoded; it is no protection against someone who can write to the store.
A record says itself whether it is compressed or encrypted (docs/encryption.md); no reader guesses.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, EncryptedCheckpointError

from .compression import compressed, decompressed

#: Version of the envelope and of what is inside; a reader refuses a higher one.
FORMAT_VERSION: Final = 1
_MAGIC: Final = b"RH"
_COMPRESSED: Final = b"RZ"
#: What encrypted bytes begin with; they are made and opened in `stores.sealing`.
ENCRYPTED: Final = b"RE"
_HEADER: Final = struct.Struct(">2sBII")
#: Bytes that an envelope adds to a body.
OVERHEAD: Final = _HEADER.size


def wrap(body: bytes, *, compress: bool = False) -> bytes:
    """Return the body in an envelope; raises `OverflowError` for a body of 4 GiB or more.

    `compress`: compressed, where it is big enough and becomes smaller by that.
    """
    if len(body) >= 1 << 32:
        raise OverflowError("a record holds less than 4 GiB")
    magic = _MAGIC
    smaller = compressed(body) if compress else None
    if smaller is not None:
        magic, body = _COMPRESSED, smaller
    return _HEADER.pack(magic, FORMAT_VERSION, len(body), zlib.crc32(body)) + body


def unwrap(data: bytes, *, hashed: bool = False) -> memoryview:
    """Return the body of an envelope; raises `CheckpointCorruptError` or `CheckpointFormatError`.

    Where it is encrypted, `EncryptedCheckpointError` is raised. `hashed`: its digest was part of a record sum that was
    right, so its checksum need not be looked at again.
    """
    if is_encrypted(data):
        raise EncryptedCheckpointError("a stored record")
    if len(data) < OVERHEAD:
        raise CheckpointCorruptError("a stored record", "it is shorter than its header")
    magic, version, length, checksum = _HEADER.unpack_from(data)
    if magic not in {_MAGIC, _COMPRESSED}:
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
    return memoryview(decompressed(body)) if magic == _COMPRESSED else body


def is_encrypted(data: bytes) -> bool:
    """Tell whether stored bytes say that they are encrypted."""
    return data[: len(ENCRYPTED)] == ENCRYPTED


def is_plain(data: bytes) -> bool:
    """Tell whether stored bytes say that they are a record which anybody can read."""
    return data[: len(_MAGIC)] in {_MAGIC, _COMPRESSED}
