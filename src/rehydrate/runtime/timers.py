"""Timers of a turn: one for each busy scope that has a time limit.

They run on the event loop's clock and tell the run when a time is up. What is left of it is in the records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rehydrate.engine.commands import StartTimer, StopScope, StopTimer
from rehydrate.engine.inputs import TimeUp


class Timers:
    """The timers that run now, by scope."""

    def __init__(self, tell: Callable[[TimeUp], None]) -> None:
        self._tell = tell
        self._running: dict[str, asyncio.TimerHandle] = {}

    def obey(self, command: StartTimer | StopTimer | StopScope) -> None:
        """Start a timer or stop one; a scope that is stopped takes the timers below it along."""
        if isinstance(command, StopScope):
            inside = f"{command.path}/"
            for path in [path for path in self._running if path == command.path or path.startswith(inside)]:
                self._stop(path)
            return
        self._stop(command.path)
        if isinstance(command, StartTimer):
            loop = asyncio.get_running_loop()
            up = TimeUp(command.path, command.deadline)
            self._running[command.path] = loop.call_later(command.seconds, self._tell, up)

    def stop_all(self) -> None:
        """Stop all timers."""
        for path in list(self._running):
            self._stop(path)

    def _stop(self, path: str) -> None:
        timer = self._running.pop(path, None)
        if timer is not None:
            timer.cancel()
