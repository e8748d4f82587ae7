"""Driving a run from a command: its progress while it runs, its result, and Ctrl-C, which stops it at what it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import click

from rehydrate.api.sigterm import drain_on_sigterm
from rehydrate.errors import RunFailedError
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.stream import RunStream
from rehydrate.service.service import Service

from .endings import Ending, ending_of_error, ending_of_status
from .progress import Progress, progress_of
from .results import Shown
from .session import Session

events_option = click.option(
    "--events", is_flag=True, help="With --json: a line for each event, then one for the result."
)


def drive(
    session: Session,
    begin: Callable[[Service], Awaitable[tuple[str, RunStream]]],
    *,
    events: bool = False,
    create: bool = False,
) -> int:
    """Run what `begin` returns, the name of a workflow and its stream, and return the exit code.

    SIGTERM hands the run on, and Ctrl-C stops it.
    """
    if events and not session.output.as_json:
        raise click.UsageError("--events needs --json.")

    async def work(service: Service) -> int:
        name, stream = await begin(service)
        workflow = service.workflow(name)
        interrupted = False
        async with progress_of(workflow, session.output, events=events) as progress:
            try:
                result = await _followed(stream, progress)
            except asyncio.CancelledError:
                interrupted = True
                result = await stream.cancel()
            except RunFailedError as error:
                if not isinstance(error.result, WorkflowRunResult):
                    raise
                return _failed(session, Shown(session, workflow, error.result), error)
        Shown(session, workflow, result).show()
        return Ending.INTERRUPTED if interrupted else ending_of_status(result.status)

    with drain_on_sigterm():
        return session.run(work, create=create)


async def _followed(stream: RunStream, progress: Progress) -> WorkflowRunResult:
    async with stream:  # whoever leaves it stops its run, as an output that nobody reads any more does
        async for event in stream:
            progress.tell(event)
        return await stream.result()


def _failed(session: Session, shown: Shown, error: RunFailedError) -> int:
    """Print how a run that failed stands, and why it did."""
    if session.output.as_json:
        session.output.document({**shown.document(), "error": session.output.error_document(error)})
    else:
        shown.show()
        if error.__cause__ is not None and error.__cause__.__traceback__ is not None:
            session.output.trace(error.__cause__)
    session.output.complain(error)
    return ending_of_error(error)
