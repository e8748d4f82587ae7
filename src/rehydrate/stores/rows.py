"""Rows: small structures as a store keeps them, sealed with a checksum so that a flipped bit is reported.

Stored bytes are hostile: a row is checked before it is decoded, and decodes to exactly one flat class.
"""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError
from rehydrate.model.checkpoint import FORMAT, Header

_CHECK_BYTES: Final = 8
_Row = TypeVar("_Row", bound=msgspec.Struct)


class _Format(msgspec.Struct):
    """The one field that every header of every version has."""

    format: int


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header).decode
_decode_format = msgspec.msgpack.Decoder(_Format).decode


def seal_row(row: msgspec.Struct) -> bytes:
    """Return a row as it is stored."""
    body = _encode(row)
    return hashlib.sha256(body).digest()[:_CHECK_BYTES] + body


def open_row(data: object, kind: type[_Row], what: str) -> _Row:
    """Return a stored row. Raises `CheckpointCorruptError` that names `what`."""
    body = _checked(data, what)
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None


def open_header(data: object, what: str) -> Header:
    """Return a stored header. Raises `CheckpointFormatError` for a newer format, else `CheckpointCorruptError`."""
    body = _checked(data, what)
    try:
        found = _decode_format(body).format
        if found > FORMAT:
            raise CheckpointFormatError(what, found, FORMAT)
        return _decode_header(body)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None


def _checked(data: object, what: str) -> bytes:
    if not isinstance(data, bytes) or len(data) <= _CHECK_BYTES:
        raise CheckpointCorruptError(what, "the row is cut off or not bytes")
    body = data[_CHECK_BYTES:]
    if hashlib.sha256(body).digest()[:_CHECK_BYTES] != data[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    return body
