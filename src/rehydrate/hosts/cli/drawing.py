"""The drawing of a run in a terminal: a line for each active executor, below the scope that it is in, with its time.

It is drawn anew all the time in its place, and gone at the end, when the result stands there.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from rehydrate.model.events import Event
from rehydrate.model.printable import printable

from .activity import Activity, Line
from .output import encodable
from .told import shortened

#: Seconds between two drawings.
_EVERY: Final = 0.125
_CLOCK: Final = "{:7.1f} s"


class Drawing:
    """Takes events as they come, and draws what is active."""

    def __init__(self, workflow: str, console: Console | None = None) -> None:
        self._workflow = workflow
        self._run = ""
        self._activity = Activity(time.monotonic())
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def tell(self, event: Event) -> None:
        """Take the next event."""
        self._run = self._run or event.run_id
        self._activity.take(event, time.monotonic())

    async def draw(self) -> None:
        """Draw until cancelled."""
        with self._live:
            while True:
                self._live.update(self.drawn(time.monotonic()), refresh=True)
                await asyncio.sleep(_EVERY)

    def drawn(self, now: float) -> Text:
        """Return the drawing; it has no more lines than the terminal."""
        activity = self._activity
        lines = list(activity.lines())
        room = max(self._console.height - 3, 1)
        turn = f", turn {activity.turn}" if activity.turn else ""
        counts = f"{activity.outputs} output(s), {activity.requests} request(s)"
        name = f"{self._workflow} {self._run}".rstrip()
        tail = f"{turn}: {counts}" if cell_len(name) <= self._room - cell_len(f"{turn}: {counts}") else f": {counts}"
        drawn = [self._fitted(name, now - activity.began, tail)]
        drawn += [self._fitted(_text(line), now - line.since) for line in lines[:room]]
        if len(lines) > room:
            drawn.append(f"  and {len(lines) - room} more")
        return Text("\n".join(drawn), no_wrap=True, overflow="crop")

    @property
    def _room(self) -> int:
        """How many cells of a line there are beside its time."""
        return max(self._console.width - len(_CLOCK.format(0)) - 1, 10)

    def _fitted(self, text: str, seconds: float, tail: str = "") -> str:
        """Return a line with its time at the right end of the terminal; where it is too long, `tail` stays."""
        # In cells, since a letter may take two of them, and as it will be written: a line that is longer than it seems
        # takes two, and is not erased.
        written = encodable(printable(text), self._console.encoding)
        room = self._room
        kept = set_cell_size(written, min(cell_len(written), max(room - cell_len(tail), 0)))
        return f"{set_cell_size(f'{kept}{tail}', room)}{_CLOCK.format(seconds)}"


def _text(line: Line) -> str:
    note = f"  {shortened(line.note)}" if line.note else ""
    return f"{'  ' * (line.depth + 1)}{line.label}{note}"
