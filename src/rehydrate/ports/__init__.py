"""Protocols at the seams: the store, the clock, the source of ids."""

from __future__ import annotations

from rehydrate.model.inspection import Inspection, OpenRequest

from .around import Placed, StorePlace, Vacuumed, compresses, listing_key, place_of, vacuum
from .clock import Clock, IdSource
from .health import Examination, Examined, Finding, Level, examine_store
from .store import CheckpointStorage
from .watching import Watched, watched

__all__ = [
    "CheckpointStorage",
    "Clock",
    "Examination",
    "Examined",
    "Finding",
    "IdSource",
    "Inspection",
    "Level",
    "OpenRequest",
    "Placed",
    "StorePlace",
    "Vacuumed",
    "Watched",
    "compresses",
    "examine_store",
    "listing_key",
    "place_of",
    "vacuum",
    "watched",
]
