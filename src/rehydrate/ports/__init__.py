"""Protocols at the seams: the store, the clock, the source of ids."""

from __future__ import annotations

from .around import compresses, listing_key
from .clock import Clock, IdSource
from .store import CheckpointStorage, Inspection, OpenRequest
from .watching import Watched, watched

__all__ = [
    "CheckpointStorage",
    "Clock",
    "IdSource",
    "Inspection",
    "OpenRequest",
    "Watched",
    "compresses",
    "listing_key",
    "watched",
]
