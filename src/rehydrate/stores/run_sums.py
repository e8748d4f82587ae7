"""Sums of live runs: what a store around a store knows of the records inside, so that a commit costs what changed.

A sum is right for the one checkpoint that it names; it is thrown away whenever that is in doubt, and read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rehydrate.codecs.checkpoints import record_digest
from rehydrate.model.checkpoint import Header

_MODULUS: Final = 1 << 256
#: So many runs are known at once; one more is read again at its next commit.
_MOST: Final = 1024


class RunSum:
    """The records of one run as they are stored, at one checkpoint: their digests, and two sums over these.

    `total` is the record sum of the store inside, which anybody can make. `keyed` is the same over what only owners of
    the key can make of each digest.
    """

    __slots__ = ("_summand", "checkpoint_id", "digests", "keyed", "salt", "seq", "total")

    def __init__(self, salt: bytes, summand: Callable[[bytes], int]) -> None:
        self.salt = salt
        self.checkpoint_id = ""
        self.seq = -1
        self.digests: dict[str, int] = {}
        self.total = 0
        self.keyed = 0
        self._summand = summand

    @classmethod
    def of(cls, salt: bytes, summand: Callable[[bytes], int], digests: Mapping[str, int]) -> RunSum:
        """Return the sum over these records."""
        found = cls(salt, summand)
        found.digests = dict(digests)
        found.total = sum(digests.values()) % _MODULUS
        found.keyed = sum(map(found._share, digests.values())) % _MODULUS
        return found

    def remove(self, places: Iterable[str]) -> None:
        """Take records away."""
        for place in places:
            self._take(place)

    def put(self, place: str, data: bytes) -> None:
        """Put a record, in the place of the one that was there."""
        self._take(place)
        digest = record_digest(place, data)
        self.digests[place] = digest
        self.total = (self.total + digest) % _MODULUS
        self.keyed = (self.keyed + self._share(digest)) % _MODULUS

    def _take(self, place: str) -> None:
        digest = self.digests.pop(place, None)
        if digest is not None:
            self.total = (self.total - digest) % _MODULUS
            self.keyed = (self.keyed - self._share(digest)) % _MODULUS

    def _share(self, digest: int) -> int:
        return self._summand(self.salt + digest.to_bytes(32, "big"))


class RunSums:
    """The sums of the runs that were used last, by run. Each is in one pair of hands: taking one removes it."""

    def __init__(self) -> None:
        self._sums: OrderedDict[str, RunSum] = OrderedDict()

    def take(self, run: str, checkpoint_id: str) -> RunSum | None:
        """Return the sum of a run, if it is known at this checkpoint."""
        known = self._sums.get(run)
        if known is None or known.checkpoint_id != checkpoint_id:
            return None
        found = self._sums.pop(run, None)
        return found if found is known else None

    def keep(self, run: str, header: Header, found: RunSum) -> None:
        """Know a run as it is at this checkpoint."""
        found.checkpoint_id, found.seq = header.checkpoint_id, header.seq
        self._sums[run] = found
        self._sums.move_to_end(run)
        while len(self._sums) > _MOST:
            self._sums.popitem(last=False)

    def learn(self, run: str, header: Header, found: RunSum) -> None:
        """Know a run as it was read, unless a later checkpoint of it is known."""
        known = self._sums.get(run)
        if known is None or known.seq <= header.seq:
            self.keep(run, header, found)

    def drop(self, run: str) -> None:
        """Know nothing of a run any more."""
        self._sums.pop(run, None)
