"""The inbox of a run: the rules by which stores take offers in, the same for every store.

Nothing here reads or writes.
"""

from __future__ import annotations

import hashlib

import msgspec

from rehydrate.errors import OfferConflictError
from rehydrate.model.checkpoint import Offer


def numbered_offer(offer: Offer, number: int) -> Offer:
    """Return an offer as a store keeps it."""
    return Offer(offer.run_id, offer.key, offer.body, number, hashlib.sha256(offer.body).digest())


def taken_offer(offer: Offer) -> Offer:
    """Return what is left of an offer once its run has it."""
    return msgspec.structs.replace(offer, body=b"", taken=True)


def same_offer(known: Offer, offer: Offer) -> int:
    """Return the number of what was offered under this key before. Raises `OfferConflictError` for something else."""
    if known.digest != hashlib.sha256(offer.body).digest():
        raise OfferConflictError(offer.run_id, offer.key)
    return known.number
