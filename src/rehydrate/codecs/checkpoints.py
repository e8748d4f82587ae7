"""A whole checkpoint as one piece of bytes, to hand around outside of a store.

Checked as strictly as a stored one: envelope, record sum, and every record's kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header

from .envelope import unwrap, wrap
from .records import decode_header, encode_header

_MODULUS: Final = 1 << 256


class _Bundle(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    header: bytes
    records: dict[str, bytes]


def record_digest(key: str, data: bytes) -> int:
    """Return a record's SHA-256 as a number; the key is part of it, so that swapped records are seen."""
    return int.from_bytes(hashlib.sha256(key_prefix(key) + data).digest(), "big")


@lru_cache(maxsize=8192)
def key_prefix(key: str) -> bytes:
    """Return what a record's digest begins with; keys come again with every superstep."""
    name = key.encode()
    return len(name).to_bytes(4, "big") + name


def digest_sum(digests: Iterable[int]) -> bytes:
    """Return the sum of record digests as a header holds it."""
    return (sum(digests) % _MODULUS).to_bytes(32, "big")


def check_digests(header: Header, digests: Mapping[str, int]) -> None:
    """Raise `CheckpointCorruptError` where a record is missing, stale, swapped or changed."""
    what = f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r}"
    if len(digests) != header.records:
        raise CheckpointCorruptError(what, f"it has {len(digests)} records instead of {header.records}")
    if digest_sum(digests.values()) != header.digest:
        raise CheckpointCorruptError(what, "the sum of its records is wrong: one was changed, swapped or is stale")


def encode_checkpoint(header: Header, records: Mapping[str, bytes]) -> bytes:
    """Return a checkpoint as one piece of bytes."""
    return wrap(msgspec.msgpack.encode(_Bundle(encode_header(header), dict(records))))


def decode_checkpoint(data: bytes) -> tuple[Header, dict[str, bytes]]:
    """Return header and records; raises `CheckpointCorruptError` or `CheckpointFormatError`."""
    try:
        bundle = msgspec.msgpack.decode(unwrap(data), type=_Bundle)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError("an exported checkpoint", str(error)) from error
    return decode_header(bundle.header), bundle.records
