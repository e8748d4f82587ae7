"""Records as bytes: each in an envelope of its own, decoded to exactly the class of its kind.

Only the engine's own flat records; values of user types stay sealed inside them. No class takes more fields than it
has, so that nothing is ever skipped: nesting of any depth ends at the first field that does not fit.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError, EncryptedCheckpointError
from rehydrate.model.checkpoint import Header, key_of
from rehydrate.model.records import RECORD_TYPES, Key, PartRecord, Record, Spliced, StateRecord
from rehydrate.model.sealed import Items, Sealed

from .bounds import check_bounds
from .envelope import is_encrypted, unwrap, wrap

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODERS: Final = {kind: msgspec.msgpack.Decoder(type_) for kind, type_ in RECORD_TYPES.items()}
_HEADER_DECODER: Final = msgspec.msgpack.Decoder(Header)
#: The numbers of a header, and what they may be: all stores can keep them, and the next ones.
_COUNTED: Final = ("seq", "turn", "superstep", "pending", "events", "records", "size", "changed")
_NUMBERS: Final = range((1 << 63) - 1)
#: From this size on a value in state is not copied out of its record, of which it is nearly all.
_BIG: Final = 64 * 1024


class _SealedView(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True, tag=0, tag_field="_"):
    """What a `Sealed` is decoded from; msgspec copies `bytes`, and refers to what it reads with a `memoryview`."""

    type: str
    data: memoryview


class _ItemsView(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True, tag=1, tag_field="_"):
    data: memoryview
    count: int


class _StateView(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True):
    value: _SealedView | Spliced | None
    count: int = 0
    merged: int = 0
    next: int = 0


class _PartView(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True):
    items: _ItemsView


_STATE_VIEW: Final = msgspec.msgpack.Decoder(_StateView)
_PART_VIEW: Final = msgspec.msgpack.Decoder(_PartView)


def encode_record(record: Record, *, compress: bool = False) -> bytes:
    """Return a record's enveloped bytes; `compress` is `wrap`'s."""
    return wrap(_ENCODER.encode(record), compress=compress)


def decode_record(kind: str, data: bytes, *, hashed: bool = False) -> Record:
    """Return the record of enveloped bytes; raises `CheckpointCorruptError` or `CheckpointFormatError`.

    `hashed` is `unwrap`'s.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise CheckpointCorruptError(f"a record of kind {kind!r}", "this kind is not known")
    try:
        body = unwrap(data, hashed=hashed)
        big = _BIG_DECODERS.get(kind) if len(body) >= _BIG else None
        return decoder.decode(body) if big is None else big(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(f"a record of kind {kind!r}", str(error)) from error


def decode_records(records: dict[str, bytes]) -> list[tuple[Key, Record]]:
    """Return all records of a checkpoint whose record sum is right; raises as `decode_record`."""
    found: list[tuple[Key, Record]] = []
    for text, data in records.items():
        key = key_of(text)
        if key is None and is_encrypted(data):
            raise EncryptedCheckpointError("a stored record")
        if key is None:
            raise CheckpointCorruptError("a record", f"its key {text!r:.80} has no form that is written")
        found.append((key, decode_record(key[1], data, hashed=True)))
    return found


def _as_long_as_it_is(view: memoryview) -> bytes:
    """Return a view as the bytes that it stands for; msgspec 0.19 lets it say that it is longer than it is."""
    return cast("bytes", view[: view.nbytes])


def _big_state(body: memoryview) -> StateRecord:
    state = _STATE_VIEW.decode(body)
    value = state.value
    if isinstance(value, _SealedView):
        value = Sealed(value.type, _as_long_as_it_is(value.data))
    return StateRecord(value, state.count, state.merged, state.next)


def _big_part(body: memoryview) -> PartRecord:
    items = _PART_VIEW.decode(body).items
    return PartRecord(Items(_as_long_as_it_is(items.data), items.count))


_BIG_DECODERS: Final = {"state": _big_state, "part": _big_part}


def encode_header(header: Header) -> bytes:
    """Return a header's enveloped bytes."""
    return wrap(_ENCODER.encode(header))


def decode_header(data: bytes) -> Header:
    """Return the header of enveloped bytes; raises as `decode_record`."""
    try:
        body = unwrap(data)
        check_bounds(bytes(body), what="a checkpoint's header")  # it may have more fields, which are stepped over
        return _HEADER_DECODER.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError("a checkpoint's header", str(error)) from error


def check_header(header: Header, what: str) -> None:
    """Raise `CheckpointCorruptError` for a header with numbers that cannot be counted on from."""
    if any(getattr(header, field) not in _NUMBERS for field in _COUNTED):
        raise CheckpointCorruptError(what, "a number in it is out of range")
