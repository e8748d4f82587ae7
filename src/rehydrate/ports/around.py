"""What a store around a store says of itself beside the protocol of all stores, so that who uses it need not know it.

A store that says nothing of these compresses nothing and lists runs by their ids.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from rehydrate.errors import WrongCallError

from .store import CheckpointStorage


@runtime_checkable
class ListingByKey(Protocol):
    """A store that hides run ids, and lists runs by what it hides them under."""

    def listing_key(self, run_id: str) -> str:
        """Return what `runs` orders a run by."""
        ...


@runtime_checkable
class Vacuumed(Protocol):
    """A store in which what was deleted leaves something behind until it is told to give that back."""

    async def vacuum(self) -> None:
        """Give the space of what was deleted and forgotten back to the system."""
        ...


async def vacuum(store: CheckpointStorage) -> None:
    """Let a store give back what deleted runs have left. Raises `WrongCallError` where it cannot."""
    if not isinstance(store, Vacuumed):
        raise WrongCallError(
            f"{type(store).__name__} has no vacuum.", "Only a SQLite store keeps what was deleted until it is told to."
        )
    await store.vacuum()


class StorePlace(NamedTuple):
    """Where a store is: `name` tells it from all others, `path` has to be there where it is on this machine."""

    name: str
    path: str | None = None


@runtime_checkable
class Placed(Protocol):
    """A store that can say where it is, so that two objects of one store are known as such."""

    @property
    def place(self) -> StorePlace | None:
        """The place, or `None` where a store around another one does not know it."""
        ...


def place_of(store: CheckpointStorage) -> StorePlace | None:
    """Return where a store is; `None` where it does not say."""
    return store.place if isinstance(store, Placed) else None


def compresses(store: CheckpointStorage) -> bool:
    """Tell whether a store wants big records compressed: one that does has a property `compresses`.

    Each turn asks, and looking for the members of a protocol would cost more than the rest of its first commit.
    """
    return bool(getattr(store, "compresses", False))


def listing_key(store: CheckpointStorage, run_id: str) -> str:
    """Return what a store orders a run by: its id, where it says nothing else."""
    return store.listing_key(run_id) if isinstance(store, ListingByKey) else run_id
