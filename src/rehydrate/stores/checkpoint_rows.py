"""Checkpoints as rows of a database: what of a header stands in columns and other rows, and what in the sealed body.

A row is written with every superstep, so it repeats nothing. Stored bytes are hostile: a row is checked before it is
decoded, with what stands beside it.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import msgspec

from rehydrate.codecs import check_bounds
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError
from rehydrate.model.checkpoint import FORMAT, Cause, Header, Status

_CHECK_BYTES: Final = 8
_ID_BYTES: Final = 16


class Written(NamedTuple):
    """A checkpoint's header, and the numbers of the records that its commit wrote, `first` to `end - 1`."""

    header: Header
    first: int
    end: int


class Names(NamedTuple):
    """What of a checkpoint's header stands beside its row: in that of its run, in an index, in the row before.

    `before` is the id of the checkpoint with the number before, where that is there.
    """

    run_id: str
    workflow: str
    checkpoint_id: str | None
    before: str | None


class _Kept(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What stands in a checkpoint's row; `status` and `cause` are numbers, as the classes list them."""

    #: First, so that a reader of any version finds it.
    format: int
    seq: int
    #: Empty for the checkpoint with the number before; no id is empty.
    previous: str | None
    status: int
    turn: int
    superstep: int
    created: float
    pending: int
    events: int
    records: int
    digest: bytes
    cause: int
    size: int
    changed: int
    scopes: tuple[str, ...]
    reason: str
    sealed: bytes
    keyed: bool
    due: float | None
    first: int
    end: int


class _Any(msgspec.Struct, array_like=True):
    """What a row of any version begins with."""

    format: int


_STATUSES: Final = {status: number for number, status in enumerate(Status)}
_STATUS: Final = tuple(Status)
_CAUSES: Final = {cause: number for number, cause in enumerate(Cause)}
_CAUSE: Final = tuple(Cause)
_encode = msgspec.msgpack.Encoder().encode
_decode_kept = msgspec.msgpack.Decoder(_Kept).decode
_decode_any = msgspec.msgpack.Decoder(_Any).decode


def seal_written(written: Written, before: str | None, *, chained: bool = False) -> bytes:
    """Return a checkpoint's row as it is stored, without what `Names` has; the checksum covers that, too.

    It covers `before` only where rows are `chained`: then no row can be lost between two of them.
    """
    header = written.header
    previous = header.previous_checkpoint_id
    kept = _Kept(
        header.format,
        header.seq,
        "" if previous is not None and previous == before else previous,
        _STATUSES[header.status],
        header.turn,
        header.superstep,
        header.created,
        header.pending,
        header.events,
        header.records,
        header.digest,
        _CAUSES[header.cause],
        header.size,
        header.changed,
        header.scopes,
        header.reason,
        header.sealed,
        header.keyed,
        header.due,
        written.first,
        written.end,
    )
    body = _encode(kept)
    names = (header.run_id, header.workflow, header.checkpoint_id)
    return _check((*names, before or "") if chained else names, body) + body


def open_written(
    data: object, names: Names, what: str, *, is_forgotten: bool = False, chained: bool = False
) -> Written:
    """Return a checkpoint's row. Raises `CheckpointFormatError` for a newer format, else `CheckpointCorruptError`.

    The one before a forgotten checkpoint may be gone.
    """
    if not isinstance(data, bytes) or len(data) <= _CHECK_BYTES:
        raise CheckpointCorruptError(what, "the row is cut off or not bytes")
    body = data[_CHECK_BYTES:]
    run_id, workflow, checkpoint_id, before = names
    if checkpoint_id is None:
        raise CheckpointCorruptError(what, "it has no id")
    covered = (run_id, workflow, checkpoint_id)
    if _check((*covered, before or "") if chained else covered, body) != data[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "its checksum does not fit")
    check_bounds(body, what=what)  # what a newer version has written behind its format is stepped over
    try:
        found = _decode_any(body).format
        if found > FORMAT:
            raise CheckpointFormatError(what, found, FORMAT)
        kept = _decode_kept(body)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None
    if not 0 <= kept.status < len(_STATUS) or not 0 <= kept.cause < len(_CAUSE):
        raise CheckpointCorruptError(what, "its status or cause is none that there is")
    if kept.previous == "" and before is None and not is_forgotten:
        raise CheckpointCorruptError(what, "the checkpoint before it is not there")
    header = Header(
        format=kept.format,
        run_id=run_id,
        workflow=workflow,
        checkpoint_id=checkpoint_id,
        seq=kept.seq,
        previous_checkpoint_id=before if kept.previous == "" else kept.previous,
        status=_STATUS[kept.status],
        turn=kept.turn,
        superstep=kept.superstep,
        created=kept.created,
        pending=kept.pending,
        events=kept.events,
        records=kept.records,
        digest=kept.digest,
        cause=_CAUSE[kept.cause],
        size=kept.size,
        changed=kept.changed,
        scopes=kept.scopes,
        reason=kept.reason,
        sealed=kept.sealed,
        keyed=kept.keyed,
        due=kept.due,
    )
    return Written(header, kept.first, kept.end)


def id_cell(checkpoint_id: str) -> str | bytes:
    """Return a checkpoint's id as it stands in a column: one that is the hex form of 16 bytes as these."""
    if len(checkpoint_id) != 2 * _ID_BYTES:
        return checkpoint_id
    try:
        short = bytes.fromhex(checkpoint_id)
    except ValueError:
        return checkpoint_id
    return short if short.hex() == checkpoint_id else checkpoint_id


def id_in_cell(cell: object) -> str | None:
    """Return the id in a column, `None` where there is none."""
    if isinstance(cell, bytes):
        return cell.hex()
    return cell if isinstance(cell, str) else None


def _check(names: tuple[str, ...], body: bytes) -> bytes:
    return hashlib.sha256(_encode(names) + body).digest()[:_CHECK_BYTES]
