"""Rows: small structures as a store keeps them, sealed with a checksum so that a flipped bit is reported.

Stored bytes are hostile: a row is checked before it is decoded, and decodes to exactly one flat class.
"""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

import msgspec

from rehydrate.codecs import check_bounds
from rehydrate.errors import CheckpointCorruptError

_CHECK_BYTES: Final = 8
_Row = TypeVar("_Row", bound=msgspec.Struct)


class TagRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A name of a checkpoint: its run, the name, and the checkpoint that it stands for."""

    run_id: str
    name: str
    checkpoint_id: str


_encode = msgspec.msgpack.Encoder().encode


def seal_row(row: msgspec.Struct) -> bytes:
    """Return a row as it is stored."""
    body = _encode(row)
    return hashlib.sha256(body).digest()[:_CHECK_BYTES] + body


def row_check(row: msgspec.Struct) -> bytes:
    """Return the checksum of a row that is stored in columns instead of sealed."""
    return hashlib.sha256(_encode(row)).digest()[:_CHECK_BYTES]


def open_row(data: object, kind: type[_Row], what: str) -> _Row:
    """Return a stored row. Raises `CheckpointCorruptError` that names `what`."""
    body = _checked(data, what)
    try:
        check_bounds(body, what=what)
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None


def _checked(data: object, what: str) -> bytes:
    if not isinstance(data, bytes) or len(data) <= _CHECK_BYTES:
        raise CheckpointCorruptError(what, "the row is cut off or not bytes")
    body = data[_CHECK_BYTES:]
    if hashlib.sha256(body).digest()[:_CHECK_BYTES] != data[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    return body
