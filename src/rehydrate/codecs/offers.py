"""Offers as bytes: an envelope around what was offered, with the run that it is for.

Values of user types stay sealed in it. It must not open them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Offer
from rehydrate.model.offers import OfferBody

from .envelope import unwrap, wrap


class _Stored(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    run_id: str
    body: OfferBody


_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder(_Stored).decode


def encode_offer(run_id: str, body: OfferBody) -> bytes:
    """Return the enveloped bytes of what is offered to a run; the same for the same."""
    return wrap(_ENCODE(_Stored(run_id, body)))


def decode_offer(offer: Offer) -> OfferBody:
    """Return what was offered; raises `CheckpointCorruptError` or `CheckpointFormatError`."""
    what = f"offer {offer.number} to run {offer.run_id!r}"
    try:
        stored = _DECODE(unwrap(offer.body))
    except CheckpointCorruptError as error:
        raise CheckpointCorruptError(what, error.problem) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(what, str(error)) from error
    if stored.run_id != offer.run_id:
        raise CheckpointCorruptError(what, f"it is for run {stored.run_id!r:.250}")
    return stored.body
