"""Records that many open requests of a scope share, so that a run with thousands of them is not thousands of records.

What a barrier, a join and a look-up by id need stands in the open; the requests themselves stay bytes until one of them
is looked at. Making and opening packs is the engine's.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: So many bytes at the beginning of a request's outer id stand in a pack.
ID_BYTES: Final = 4


class RequestGroup(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Requests that follow each other in a pack, of one executor and with one trail."""

    executor: str
    trail: tuple[int, ...]
    count: int


class RequestsRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Open requests in the order of their names, the first and the last of which are `low` and `high`.

    `ids` are the beginnings of their outer ids, one after the other. They only say where to look: an id is known by
    making it from the request's name. `body` holds the request records.
    """

    low: str
    high: str
    groups: tuple[RequestGroup, ...]
    ids: bytes
    body: bytes

    @property
    def count(self) -> int:
        """How many requests there are, those that were closed since included."""
        return len(self.ids) // ID_BYTES


class ClosedRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Which requests of a pack are open no more: one bit each, the first request's is the lowest of the last byte."""

    bits: bytes

    @property
    def mask(self) -> int:
        """The bits as a number."""
        return int.from_bytes(self.bits, "big")
