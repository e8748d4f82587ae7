"""The watch on inboxes: tells live turns of an event loop what other processes have offered to their runs.

One look for all runs of a store, now and then, for as long as any of them is driven; who offers in this process says so
itself. Nothing here is needed to resume a run.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from rehydrate.errors import RehydrateError
from rehydrate.ports import CheckpointStorage
from rehydrate.ports.loops import idle_timer

from .heartbeat import take_note
from .owner import hold

#: How often it is looked for what others have offered, in seconds.
EVERY: Final = 0.5
#: So many runs are read at once.
_PAGE: Final = 100


class OpenInbox(Protocol):
    """The inbox of one run that is driven."""

    run_id: str
    store: CheckpointStorage

    def look(self) -> None:
        """See what is there."""
        ...

    def is_looking(self) -> bool:
        """Tell whether it is being read."""
        ...

    def open(self) -> None:
        """Begin to take what comes."""
        ...

    def close(self) -> None:
        """Take nothing more."""
        ...


class _Watch:
    """The inboxes that are open in one event loop."""

    def __init__(self) -> None:
        self._inboxes: set[OpenInbox] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, inbox: OpenInbox) -> None:
        self._inboxes.add(inbox)
        if self._timer is None:
            self._timer = idle_timer(EVERY, self._look)

    def remove(self, inbox: OpenInbox) -> None:
        self._inboxes.discard(inbox)
        if not self._inboxes and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def told(self, run_id: str) -> None:
        for inbox in [inbox for inbox in self._inboxes if inbox.run_id == run_id]:
            inbox.look()

    def _look(self) -> None:
        for store in {id(inbox.store): inbox.store for inbox in self._inboxes}.values():
            task = asyncio.get_running_loop().create_task(self._look_in(store))
            hold(task)
            task.add_done_callback(take_note)
        self._timer = idle_timer(EVERY, self._look) if self._inboxes else None

    async def _look_in(self, store: CheckpointStorage) -> None:
        """Look what was offered to the runs of a store. One that cannot be read now is looked at next time."""
        try:
            page = await store.runs(offered=True, limit=_PAGE)
            while page:
                offered = {header.run_id for header in page}
                for inbox in [inbox for inbox in self._inboxes if inbox.store is store and inbox.run_id in offered]:
                    inbox.look()
                page = await store.runs(offered=True, after=page[-1].run_id, limit=_PAGE) if len(page) == _PAGE else []
        except RehydrateError:
            return


_WATCHES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch]] = WeakKeyDictionary()


def watch_inbox(inbox: OpenInbox) -> None:
    """Tell an inbox of what comes, from now on."""
    _WATCHES.setdefault(asyncio.get_running_loop(), _Watch()).add(inbox)


def tell_inboxes(run_id: str) -> None:
    """Say that something was offered to a run; whoever drives it in this process, on whatever loop, looks."""
    for loop, watch in list(_WATCHES.items()):
        with contextlib.suppress(RuntimeError):  # its event loop was closed
            loop.call_soon_threadsafe(watch.told, run_id)


def watch_no_more(inbox: OpenInbox) -> None:
    """Tell it no more."""
    watch = _WATCHES.get(asyncio.get_running_loop())
    if watch is not None:
        watch.remove(inbox)
