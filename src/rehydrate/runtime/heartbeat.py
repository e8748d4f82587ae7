"""The heartbeat: renews a run's lease at a third of it, as long as a turn lasts.

A lost lease shows at the next commit, which names its epoch; nothing here ends a run.
"""

from __future__ import annotations

import asyncio

from rehydrate.ports.loops import idle_timer

from .saver import LEASE_SECONDS, Saver


class Heartbeat:
    """Renews one lease until it is stopped."""

    __slots__ = ("_renewing", "_saver", "_timer")

    def __init__(self, saver: Saver) -> None:
        self._saver = saver
        self._renewing: asyncio.Task[None] | None = None
        self._timer = self._again()

    def _again(self) -> asyncio.TimerHandle:
        return idle_timer(LEASE_SECONDS / 3, self._renew)

    def _renew(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._saver.renew())
        self._renewing.add_done_callback(take_note)
        self._timer = self._again()

    def stop(self) -> None:
        """Renew no more."""
        self._timer.cancel()


def take_note(task: asyncio.Task[None]) -> None:
    """Read a task's error, so that nobody is told that it was not."""
    if not task.cancelled():
        task.exception()
