"""Compressed records made by hand. As a module it reads bombs and tells how much memory that took."""

import json
import resource
import struct
import sys
import zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from rehydrate.codecs import unwrap
from rehydrate.errors import CheckpointCorruptError

BOMB_BYTES = 2**30


def frame_of(body: bytes, window_log: int = 0) -> bytes:
    """Return a frame of zstd; `window_log` makes one that wants so much memory, as a frame without a known length."""
    if not window_log:
        return zstd.compress(body)
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window_log})
    return stream.compress(body) + stream.flush()


def bomb() -> bytes:
    """Return the frame of a GiB of nothing."""
    stream = zstd.ZstdCompressor(level=3)
    piece = bytes(2**20)
    return b"".join(stream.compress(piece) for _ in range(BOMB_BYTES // len(piece))) + stream.flush()


def enveloped(size: int, frame: bytes) -> bytes:
    """Return a compressed record that says it has so many bytes."""
    body = size.to_bytes(4, "big") + frame
    return struct.pack(">2sBII", b"RZ", 1, len(body), zlib.crc32(body)) + body


def peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    frame = bomb()
    texts: list[str] = []
    before = peak()
    for size in (100, 16 * 2**20, BOMB_BYTES):
        try:
            unwrap(enveloped(size, frame))
        except CheckpointCorruptError as error:
            texts.append(error.text())
    sys.stdout.write(json.dumps({"bytes": len(frame), "texts": texts, "peak": peak() - before}))


if __name__ == "__main__":
    main()
