"""Pseudonyms: what stands for ids and names in a store that must find them and may not know them.

The same name has the same pseudonym for as long as the key of names is the same; there is no way back.
"""

from __future__ import annotations

from typing import Final

from .key_ring import KeyRing

#: Hexadecimal characters of a pseudonym: 128 bits.
_CHARACTERS: Final = 32


class Pseudonyms:
    """The pseudonyms under one key ring."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def run(self, run_id: str) -> str:
        """Return what stands for a run's id."""
        return self._name("run", run_id)

    def workflow(self, name: str) -> str:
        """Return what stands for a workflow's name."""
        return self._name("workflow", name)

    def turn_key(self, workflow: str, key: str) -> str:
        """Return what stands for an idempotency key of a workflow."""
        return self._name("turn", workflow, key)

    def record(self, run: str, key: str) -> str:
        """Return what stands for a record's key, in the run with this pseudonym."""
        return self._name("record", run, key)

    def _name(self, *parts: str) -> str:
        return self._keys.hidden(joined(*parts)).hex()[:_CHARACTERS]


def joined(*parts: str) -> bytes:
    """Return texts as bytes from which each can be told again."""
    pieces: list[bytes] = [len(parts).to_bytes(2, "big")]
    for part in parts:
        piece = part.encode()
        pieces += (len(piece).to_bytes(4, "big"), piece)
    return b"".join(pieces)
