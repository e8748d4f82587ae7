"""Rows: small structures as a store keeps them, sealed with a checksum so that a flipped bit is reported.

Stored bytes are hostile: a row is checked before it is decoded, and decodes to exactly one flat class.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple, TypeVar

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError
from rehydrate.model.checkpoint import FORMAT, Header

_CHECK_BYTES: Final = 8
_Row = TypeVar("_Row", bound=msgspec.Struct)


class Written(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A checkpoint's row: its header, and the numbers of the records that its commit wrote, `first` to `end - 1`."""

    header: Header
    first: int
    end: int


class Names(NamedTuple):
    """What of a checkpoint's header stands beside its row: in that of its run, in an index, in the row before.

    `before` is the id of the checkpoint with the number before, where that is there.
    """

    run_id: str
    workflow: str
    checkpoint_id: str
    before: str | None


#: Stands for the checkpoint with the number before; no id is empty.
_THE_ONE_BEFORE: Final = ""


class _Format(msgspec.Struct, array_like=True):
    """What every header of every version begins with."""

    format: int


class _AnyWritten(msgspec.Struct, array_like=True):
    """What a row of any version begins with."""

    header: _Format


_encode = msgspec.msgpack.Encoder().encode
_decode_written = msgspec.msgpack.Decoder(Written).decode
_decode_any = msgspec.msgpack.Decoder(_AnyWritten).decode


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


def seal_written(written: Written, before: str | None) -> bytes:
    """Return a checkpoint's row as it is stored, without what `Names` has; the checksum covers that, too."""
    header = written.header
    previous = header.previous_checkpoint_id
    left = msgspec.structs.replace(
        header,
        run_id="",
        workflow="",
        checkpoint_id="",
        previous_checkpoint_id=_THE_ONE_BEFORE if previous is not None and previous == before else previous,
    )
    body = _encode(Written(left, written.first, written.end))
    return _check((header.run_id, header.workflow, header.checkpoint_id), body) + body


def open_written(data: object, names: Names, what: str, *, is_forgotten: bool = False) -> Written:
    """Return a checkpoint's row. Raises `CheckpointFormatError` for a newer format, else `CheckpointCorruptError`.

    The one before a forgotten checkpoint may be gone.
    """
    if not isinstance(data, bytes) or len(data) <= _CHECK_BYTES:
        raise CheckpointCorruptError(what, "the row is cut off or not bytes")
    body = data[_CHECK_BYTES:]
    if _check(names[:3], body) != data[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    try:
        found = _decode_any(body).header.format
        if found > FORMAT:
            raise CheckpointFormatError(what, found, FORMAT)
        written = _decode_written(body)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None
    previous = written.header.previous_checkpoint_id
    if previous == _THE_ONE_BEFORE:
        previous = names.before
        if previous is None and not is_forgotten:
            raise CheckpointCorruptError(what, "the checkpoint before it is not there")
    run_id, workflow, checkpoint_id, _ = names
    header = msgspec.structs.replace(
        written.header,
        run_id=run_id,
        workflow=workflow,
        checkpoint_id=checkpoint_id,
        previous_checkpoint_id=previous,
    )
    return Written(header, written.first, written.end)


def _check(names: tuple[str, ...], body: bytes) -> bytes:
    return hashlib.sha256(_encode(names) + body).digest()[:_CHECK_BYTES]


def _checked(data: object, what: str) -> bytes:
    if not isinstance(data, bytes) or len(data) <= _CHECK_BYTES:
        raise CheckpointCorruptError(what, "the row is cut off or not bytes")
    body = data[_CHECK_BYTES:]
    if hashlib.sha256(body).digest()[:_CHECK_BYTES] != data[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    return body
