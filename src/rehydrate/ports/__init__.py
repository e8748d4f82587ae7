"""Protocols at the seams: the store, the clock, the source of ids."""

from __future__ import annotations

from .around import compresses, listing_key
from .clock import Clock, IdSource
from .store import CheckpointStorage, Inspection, OpenRequest

__all__ = [
    "CheckpointStorage",
    "Clock",
    "IdSource",
    "Inspection",
    "OpenRequest",
    "compresses",
    "listing_key",
]
