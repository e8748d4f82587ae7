"""Timers of a turn: one for each busy scope that has a time limit.

They run on the event loop's clock and tell the run when a time is up. What is left of it is in the records.
"""

from __future__ import annotations

import asyncio

from rehydrate.engine.commands import StartTimer
from rehydrate.engine.inputs import TimeUp

from .crew import Tell


class Timers:
    """The timers that run now, by scope."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[str, asyncio.TimerHandle] = {}

    def start(self, order: StartTimer, tell: Tell) -> None:
        """Start the timer of a scope in the place of the one that it had."""
        self.stop(order.path)
        up = TimeUp(order.path, order.deadline)
        self._running[order.path] = asyncio.get_running_loop().call_later(order.seconds, tell, up, None)

    @property
    def are_running(self) -> bool:
        """Whether there are any."""
        return bool(self._running)

    def stop(self, path: str) -> None:
        """Stop the timer of a scope, if it has one."""
        timer = self._running.pop(path, None)
        if timer is not None:
            timer.cancel()

    def stop_below(self, path: str) -> None:
        """Stop the timers of a scope and of all below it."""
        inside = f"{path}/"
        for other in [other for other in self._running if other == path or other.startswith(inside)]:
            self.stop(other)

    def stop_all(self) -> None:
        """Stop all timers."""
        for path in list(self._running):
            self.stop(path)
