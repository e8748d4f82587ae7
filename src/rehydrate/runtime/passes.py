"""The passes of a run's functions that run now: whom the engine's word of a call goes to.

All of it can be made again from the records. Starting and stopping them is the crew's.
"""

from __future__ import annotations

from rehydrate.engine.commands import TellPass

from .functional_pass import Pass


class Passes:
    """Running passes, by scope and number."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], Pass] = {}

    def add(self, current: Pass) -> None:
        """Take in a pass that begins to run."""
        self._running[current.path, current.number] = current

    def remove(self, current: Pass) -> None:
        """Forget a pass that runs no more; the next invocation of it may run by now."""
        if self._running.get((current.path, current.number)) is current:
            del self._running[current.path, current.number]

    def tell(self, order: TellPass) -> None:
        """Let a pass know of a call of it."""
        current = self._running.get((order.path, order.pass_number))
        if current is not None:
            current.told(order)

    def look_again(self) -> None:
        """Let all passes look whether what they wait for can go on."""
        for current in list(self._running.values()):
            current.changed()
