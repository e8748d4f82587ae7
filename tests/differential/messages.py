"""The messages of random graphs, and the one rule by which everything in them is made.

A mark is a digest of all that a message descends from, so that one wrong order, state or message shows to the end.
"""

from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True)
class Item:
    """What goes along the edges. `fuel` bounds all work that descends from it; `tags` only gives the value a shape."""

    mark: int
    fuel: int
    tags: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """What an executor asks of the outside."""

    asker: str
    number: int
    item: Item


def mix(*parts: object) -> int:
    """Digest values into a number; the same in every process."""
    return crc32(repr(parts).encode())


def answer_to(question: Question) -> int:
    """The fixed rule by which questions are answered."""
    return mix("answer", question) % 1000
