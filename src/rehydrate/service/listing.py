"""All runs of a store, page by page, for what looks at each of them, and which of them wait for a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, TypedDict, Unpack

from rehydrate.model.checkpoint import Header, Status
from rehydrate.ports import CheckpointStorage

_PAGE: Final = 100


class RunFilters(TypedDict, total=False):
    """What `CheckpointStorage.runs` can be asked for."""

    workflow: str | None
    status: str
    offered: bool
    due_by: float


async def all_runs(storage: CheckpointStorage, **filters: Unpack[RunFilters]) -> AsyncIterator[Header]:
    """Give the heads of runs, in the order of the store; what is behind a page is asked for when it is wanted."""
    after: str | None = None
    while True:
        page = await storage.runs(**filters, after=after, limit=_PAGE)
        for header in page:
            yield header
        if len(page) < _PAGE:
            return
        after = page[-1].run_id


def sleeps(header: Header, now: float) -> bool:
    """Tell whether the run of a head was handed on while it only waited for a time that has not come."""
    return header.status is Status.RUNNING and header.due is not None and header.due > now
