"""The progress of a run in a notebook: a table of what is active, drawn anew in its place, and a line at the end.

IPython is not needed to import this; it is what a notebook has. It drives nothing: the stream does.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable
from typing import Final, Protocol, cast

from rehydrate.errors import WrongCallError
from rehydrate.runtime.html import heading_html, table_html
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.stream import RunStream

from .cli.activity import Activity, Line

#: Seconds between two drawings.
_EVERY: Final = 0.25


class Shown(Protocol):
    """A place in a notebook in which one thing after the other is shown."""

    def update(self, shown: object) -> None:
        """Show something else in it."""
        ...


class Html:
    """HTML that a notebook shows as such."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return "<the progress of a run>"


async def show_progress(stream: RunStream, *, display: Callable[[object], Shown] | None = None) -> WorkflowRunResult:
    """Read a stream to its end, show below the cell what is active meanwhile, and return the result.

    A line that says how the run ended stays; the result itself is shown as a cell shows what its last line gives.
    `display` shows something and returns its place; without it IPython's is taken. Leaving it stops the run, as leaving
    the stream does. Raises what `stream.result()` does, and `WrongCallError` where there is no IPython.
    """
    loop = asyncio.get_running_loop()
    activity = Activity(loop.time())
    place = (display or _ipython_display())(Html(progress_html(activity, "", loop.time())))
    name = [""]

    async def draw() -> None:
        while True:
            await asyncio.sleep(_EVERY)
            place.update(Html(progress_html(activity, name[0], loop.time())))

    drawing = asyncio.ensure_future(draw())
    left: object = stream
    try:
        async with stream:  # a cell that is interrupted stops its run
            async for event in stream:
                name[0] = event.run_id
                activity.take(event, loop.time())
            result = await stream.result()
        left = Html(_heading(activity, result.run_id, result.status.value, loop.time()))
        return result
    finally:
        drawing.cancel()
        # Whatever the end was: the place must not say for ever that something is active.
        place.update(left)


def progress_html(activity: Activity, run_id: str, now: float) -> str:
    """Return what is active, each scope followed by what is in it."""
    lines = list(activity.lines())
    heading = _heading(activity, run_id or "a run", "RUNNING", now)
    rows = (_row(line, now) for line in lines)
    return f"<div>{heading}{table_html(('active', 'since', 'tells'), rows, len(lines))}</div>"


def _heading(activity: Activity, name: str, status: str, now: float) -> str:
    counts = f"turn {activity.turn}, {activity.outputs} output(s), {activity.requests} request(s)"
    return heading_html(name, status, f"{counts}, {now - activity.began:.1f} s")


def _row(line: Line, now: float) -> tuple[str, str, str]:
    return f"{'· ' * line.depth}{line.label}", f"{now - line.since:.1f} s", line.note


def _ipython_display() -> Callable[[object], Shown]:
    # IPython makes `display` a builtin of the programs that it runs; nothing has to be imported for it.
    found = cast("Callable[..., Shown | None] | None", getattr(builtins, "display", None))
    if found is None:
        raise WrongCallError(
            "there is no IPython to show progress with.", "Call it in a notebook, or iterate over the stream."
        )
    show = found

    def shown(thing: object) -> Shown:
        place = show(thing, display_id=True)
        if place is None:
            raise WrongCallError("this is no notebook.", "Iterate over the stream, or await its result().")
        return place

    return shown
