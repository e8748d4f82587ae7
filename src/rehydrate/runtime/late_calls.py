"""Late calls: what a function still calls once its pass is over.

They never come back with anything. One that was cancelled and has swallowed it is cancelled again at each further call,
so that it ends; one that goes on all the same is left where it waits, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from rehydrate.graph.step import AnyValue

from .branches import BRANCH, Branch
from .owner import let_go

#: So many calls of each branch of a pass that is over are cancelled; whoever makes more never ends by that.
_MOST: Final = 16
#: The attribute of a task by which asyncio says that it was collected while it waited.
_SAID_WHEN_LOST: Final = "_log_destroy_pending"


class LateCalls:
    """Those of one pass."""

    __slots__ = ("_counts", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._counts: Counter[Branch | None] = Counter()

    async def wait(self, *, cancelled: bool) -> AnyValue:
        """Wait to be cancelled, or, where that has happened, be so again; never returns."""
        if not cancelled:
            await self._loop.create_future()
        branch = BRANCH.get()
        self._counts[branch] += 1
        if self._counts[branch] <= _MOST:
            await asyncio.sleep(0)  # a function that loops lets the others run
            raise asyncio.CancelledError
        self._leave()
        while True:  # raises nothing: the collector must not be kept in the function's loop
            await self._loop.create_future()

    def _leave(self) -> None:
        """Let the end of the event loop not wait for the task that runs here."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # the collector closes it
            return
        if task is not None:
            vars(asyncio.tasks)["_unregister_task"](task)  # for whoever makes tasks of his own kind
            setattr(task, _SAID_WHEN_LOST, False)
            let_go(task)
