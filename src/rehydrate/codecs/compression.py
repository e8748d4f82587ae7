"""Compression of big records with zstd: on the way out only where it pays, on the way in as a stream with a ceiling.

Compressed bytes are hostile: they say how long the whole is, and nothing beyond that is ever decompressed.
"""

from __future__ import annotations

import sys
from io import BytesIO
from typing import Final

from rehydrate.errors import CheckpointCorruptError, MissingExtraError

from .format import MAX_BYTES

#: Below this size a record is left as it is: a row of a store hardly becomes smaller by it.
LEAST: Final = 4 * 1024
#: Bytes of a decompressed record that are allowed; a bigger one is never compressed.
CEILING: Final = MAX_BYTES
_LEVEL: Final = 3
#: A compressed record has to save a tenth.
_WORTH: Final = 0.9
#: A record unpacks to this many times its length at most; what becomes smaller than that is filled up with zeros. So a
#: small record never takes much memory, and the filling costs three bytes in a hundred of the whole.
RATIO: Final = 32
_SIZE_BYTES: Final = 4
_CHUNK: Final = 1024 * 1024
#: 8 MiB of history; what is written at this level looks back over 2 MiB at most.
_WINDOW_LOG: Final = 23


def require() -> None:
    """Raise `MissingExtraError` where there is no zstd."""
    _zstd("compressing records")


def compressed(body: bytes) -> bytes | None:
    """Return a body compressed; `None` where it is small or enormous, or would hardly become smaller."""
    if not LEAST <= len(body) <= CEILING:
        return None
    frame = _zstd("compressing records").compress(body, level=_LEVEL)
    if _SIZE_BYTES + len(frame) > _WORTH * len(body):
        return None
    return (len(body).to_bytes(_SIZE_BYTES, "big") + frame).ljust(_least(len(body)), b"\0")


def _least(size: int) -> int:
    """Return the shortest that a record may be which unpacks to so many bytes."""
    return -(-size // RATIO)


def decompressed(data: memoryview) -> bytes:
    """Return what was compressed; raises `CheckpointCorruptError`."""
    size = int.from_bytes(data[:_SIZE_BYTES], "big")
    if size > CEILING:
        raise CheckpointCorruptError("a stored record", f"it says it has {size} bytes, and {CEILING} are allowed")
    if size > RATIO * len(data):
        problem = f"it says it has {size} bytes, and {RATIO * len(data)} are allowed for its length"
        raise CheckpointCorruptError("a stored record", problem)
    zstd = _zstd("reading compressed records")
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
    whole = BytesIO()
    waiting: memoryview | bytes = data[_SIZE_BYTES:]
    try:
        while not stream.eof and whole.tell() <= size and (stream.needs_input is False or waiting):
            whole.write(stream.decompress(waiting, max_length=min(_CHUNK, size + 1 - whole.tell())))
            waiting = b""
    except zstd.ZstdError as error:
        raise CheckpointCorruptError("a stored record", f"it cannot be decompressed ({error})") from None
    if whole.tell() > size:
        raise CheckpointCorruptError("a stored record", f"it says it has {size} bytes and has more")
    rest = stream.unused_data if stream.eof else b""
    filled = not rest or (len(data) == _least(size) and not rest.strip(b"\0"))
    if whole.tell() != size or not stream.eof or not filled:
        raise CheckpointCorruptError("a stored record", "what was compressed ends early or goes on")
    return whole.getvalue()


def _zstd(what: str):
    """Return the zstd module of this Python. Raises `MissingExtraError`."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(what, "zstd") from None
    return zstd
