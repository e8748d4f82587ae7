"""Committed events as bytes: each in an envelope of its own, with its run and number, decoded to exactly its class.

Values of user types stay sealed inside them. They are decoded as records are: no class takes more fields than it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import StoredEvent
from rehydrate.model.events import CommittedEvent, Event
from rehydrate.model.sealed import Sealed

from .envelope import unwrap, wrap


class _Stored(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """An event: its run, its number, the name of its class, and the fields of that, encoded by themselves."""

    run_id: str
    number: int
    kind: str
    fields: bytes


def _stored_class(kind: type[CommittedEvent]) -> type[msgspec.Struct]:
    """Return the class that a kind's fields are stored by, in which what is sealed has a type."""
    fields = [
        (field.name, Sealed if field.type is object else field.type, field.default)
        if not field.required
        else (field.name, Sealed if field.type is object else field.type)
        for field in msgspec.structs.fields(kind)
        if field.name not in _IN_THE_ROW
    ]
    return msgspec.defstruct(
        kind.__name__, fields, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
    )


_IN_THE_ROW: Final = frozenset({"run_id", "sequence", "live"})
_KINDS: Final[dict[str, type[CommittedEvent]]] = {kind.__name__: kind for kind in get_args(CommittedEvent)}
_CLASSES: Final = {name: _stored_class(kind) for name, kind in _KINDS.items()}
_DECODERS: Final = {name: msgspec.msgpack.Decoder(class_) for name, class_ in _CLASSES.items()}
_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder(_Stored).decode


def encode_events(run_id: str, first: int, events: Sequence[Event]) -> tuple[bytes, ...]:
    """Return the enveloped bytes of committed events with sealed data, numbered from `first` on."""
    return tuple(_encoded(run_id, number, event) for number, event in enumerate(events, first))


def _encoded(run_id: str, number: int, event: Event) -> bytes:
    name = type(event).__name__
    stored = _CLASSES[name]
    fields = stored(**{field: getattr(event, field) for field in stored.__struct_fields__})
    return wrap(_ENCODE(_Stored(run_id, number, name, _ENCODE(fields))))


def decode_event(run_id: str, stored: StoredEvent) -> CommittedEvent:
    """Return a stored event, its data sealed; raises `CheckpointCorruptError` or `CheckpointFormatError`."""
    what = f"event {stored.number} of run {run_id!r}"
    try:
        row = _DECODE(unwrap(stored.data))
        if (row.run_id, row.number) != (run_id, stored.number):
            raise CheckpointCorruptError(what, f"it is event {row.number} of run {row.run_id!r:.250}")
        decoder = _DECODERS.get(row.kind)
        if decoder is None:
            raise CheckpointCorruptError(what, f"its kind {row.kind!r:.80} is not known")
        fields = decoder.decode(row.fields)
    except CheckpointCorruptError as error:
        raise CheckpointCorruptError(what, error.problem) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(what, str(error)) from error
    given = {name: getattr(fields, name) for name in fields.__struct_fields__}
    return _KINDS[row.kind](**given, run_id=run_id, sequence=stored.number)
