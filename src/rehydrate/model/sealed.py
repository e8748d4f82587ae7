"""Sealed values: a type name and the bytes that decode to the value.

The engine moves and compares them; only codecs open them. Nothing here knows an encoding. Bytes that were read from
a store may be a read-only view of the record that they came in (`codecs.records`).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Sealed(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True, tag=0, tag_field="_"):
    """A value as it is stored: the registered name of its type, and its bytes."""

    type: str
    data: bytes

    def __reduce__(self) -> tuple[type[Sealed], tuple[str, bytes]]:
        """Let copies hold bytes: a view has no copy."""
        return Sealed, (self.type, bytes(self.data))


class Items(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True, tag=1, tag_field="_"):
    """Some elements of a list: their bytes one after the other, and their number."""

    data: bytes
    count: int

    def __reduce__(self) -> tuple[type[Items], tuple[bytes, int]]:
        """As `Sealed`."""
        return Items, (bytes(self.data), self.count)


class Listed(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True, tag=2, tag_field="_"):
    """Several messages handed over as one list."""

    items: tuple[Sealed, ...]


#: One message, or the list of messages that a join hands over or a map edge takes apart.
Payload: TypeAlias = Sealed | Listed
