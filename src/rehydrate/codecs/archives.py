"""A whole run as one piece of bytes, to hand from one store to another: magic, format version, length, SHA-256, body.

The digest is over all the rest and is checked first; then sizes and depth are bounded before anything is decoded.
Whether the checkpoints inside are whole is the store's to check that takes them in.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, IdError
from rehydrate.ids import check_id
from rehydrate.model.checkpoint import Archive

from .bounds import check_bounds
from .records import check_header

#: Version of an exported run; a reader refuses a higher one.
EXPORT_VERSION: Final = 1
#: Bytes of one exported run, without its header.
MAX_EXPORT: Final = 8 << 30
_MAGIC: Final = b"RHEXPORT"
_LEAD: Final = struct.Struct(">8sHQ")
_DIGEST: Final = 32
#: Bytes that stand before the body.
EXPORT_HEADER: Final = _LEAD.size + _DIGEST
#: Archive, commits, commit, header or puts, scopes or put; one to spare.
_DEPTH: Final = 6
_NUMBERS: Final = range(1 << 63)
_DECODER: Final = msgspec.msgpack.Decoder(Archive)
_WHAT: Final = "the exported run"


class ExportLead(NamedTuple):
    """What the first bytes of an exported run say: how long its body is, and the digest that is right."""

    length: int
    digest: bytes


def encode_archive(archive: Archive) -> bytes:
    """Return a run as one piece of bytes; the same run gives the same bytes."""
    body = msgspec.msgpack.encode(archive)
    lead = _LEAD.pack(_MAGIC, EXPORT_VERSION, len(body))
    return b"".join((lead, _digest(len(body), body), body))


def decode_lead(data: bytes) -> ExportLead:
    """Return what the first `EXPORT_HEADER` bytes say. Raises `CheckpointCorruptError` or `CheckpointFormatError`."""
    if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        raise CheckpointCorruptError(_WHAT, "it does not begin like one")
    if len(data) < EXPORT_HEADER:
        raise CheckpointCorruptError(_WHAT, "it is shorter than its header")
    _, version, length = _LEAD.unpack_from(data)
    if version > EXPORT_VERSION:
        raise CheckpointFormatError(_WHAT, version, EXPORT_VERSION)
    if version < 1:
        raise CheckpointCorruptError(_WHAT, "it has no format version")
    if length > MAX_EXPORT:
        raise CheckpointCorruptError(_WHAT, f"it says that it holds {length} bytes, and {MAX_EXPORT} are allowed")
    return ExportLead(length, data[_LEAD.size : EXPORT_HEADER])


def decode_body(lead: ExportLead, body: bytes) -> Archive:
    """Return the run of an export's body. Raises `CheckpointCorruptError`."""
    if len(body) != lead.length:
        raise CheckpointCorruptError(_WHAT, f"it holds {len(body)} bytes and says {lead.length}")
    if _digest(lead.length, body) != lead.digest:
        raise CheckpointCorruptError(_WHAT, "its SHA-256 is wrong")
    check_bounds(body, max_depth=_DEPTH, max_bytes=MAX_EXPORT, what=_WHAT)
    try:
        archive = _DECODER.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(_WHAT, str(error)) from error
    if not archive.commits:
        raise CheckpointCorruptError(_WHAT, "it holds no checkpoint")
    try:
        check_id(archive.commits[-1].header.run_id, "run id")
    except IdError as error:
        raise CheckpointCorruptError(_WHAT, error.text().removesuffix(".")) from None
    for commit in archive.commits:
        check_header(commit.header, _WHAT)
    if any(number not in _NUMBERS for number in _numbers(archive)):
        raise CheckpointCorruptError(_WHAT, "a number in it is out of range")
    return archive


def _digest(length: int, body: bytes) -> bytes:
    digest = hashlib.sha256(_LEAD.pack(_MAGIC, EXPORT_VERSION, length))
    digest.update(body)
    return digest.digest()


def _numbers(archive: Archive) -> Iterator[int]:
    """Give every other number that a store keeps as one."""
    yield from (event.number for event in archive.events)
    yield from (turn.number for turn in archive.turns)
    yield from (offer.number for offer in archive.offers)
