"""The progress of a run on standard error: drawn anew all the time in a terminal, a line an event elsewhere.

With `--json` there is none; with `--events` each event is a line of JSON on standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncGenerator
from typing import Protocol

from rehydrate.api.workflow import Workflow
from rehydrate.model.events import Event

from .output import Output
from .told import event_document, event_line


class Progress(Protocol):
    """Where the events of a run go."""

    def tell(self, event: Event) -> None:
        """Take the next event."""
        ...


class _Nothing:
    def tell(self, event: Event) -> None:
        pass


class _JsonLines:
    def __init__(self, output: Output, workflow: Workflow) -> None:
        self._output = output
        self._codec = workflow.program.codec

    def tell(self, event: Event) -> None:
        self._output.document(event_document(event, self._codec))


class _Lines:
    def __init__(self, output: Output, workflow: Workflow) -> None:
        self._output = output
        self._codec = workflow.program.codec
        self._began = time.monotonic()

    def tell(self, event: Event) -> None:
        line = event_line(event, self._codec)
        if line is not None:
            self._output.note(f"{time.monotonic() - self._began:8.2f}  {line}")


@contextlib.asynccontextmanager
async def progress_of(workflow: Workflow, output: Output, *, events: bool) -> AsyncGenerator[Progress]:
    """Show the progress of a run for as long as this is entered."""
    if events:
        yield _JsonLines(output, workflow)
    elif output.as_json:
        yield _Nothing()
    elif not sys.stderr.isatty() or os.environ.get("TERM") in {"dumb", "unknown"}:
        yield _Lines(output, workflow)
    else:
        from .drawing import Drawing  # noqa: PLC0415  (only a terminal needs it, and it takes its time to load)

        drawing = Drawing(workflow.name)
        task = asyncio.create_task(drawing.draw())
        try:
            yield drawing
        finally:
            task.cancel()
            await asyncio.wait([task])
