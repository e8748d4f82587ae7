"""The protocol of a store that can wake those who wait for a run that another process drives.

It is optional: without it a reader sees what is stored and ends. It must not be needed to resume a run.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .store import CheckpointStorage


@runtime_checkable
class Watched(Protocol):
    """What a store may have beside `CheckpointStorage`."""

    @property
    def wakes(self) -> bool:
        """Whether this store object can wake anybody; where it cannot, `changed` is not called."""
        ...

    async def changed(self, run_id: str, after: int) -> None:
        """Return once the run may have events behind number `after`, or may be driven by nobody.

        It may return without a reason, and does so after some seconds: the caller looks at the head again.
        """
        ...


def watched(store: CheckpointStorage) -> Watched | None:
    """Return a store that can wake those who wait, and `None` for any other."""
    return store if isinstance(store, Watched) and store.wakes else None
