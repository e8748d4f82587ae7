"""`rehydrate worker`: takes up runs whose process died, that something was offered to, or whose timer is up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Never

import click

from rehydrate.api.sigterm import drain_on_sigterm
from rehydrate.errors import RehydrateError
from rehydrate.model.printable import printable
from rehydrate.runtime.draining import drain
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.service.service import Service
from rehydrate.service.worker import Worker

from .endings import Ending
from .output import Output
from .results import Shown
from .session import Session, on_runs
from .streams import UnwrittenError


@click.command()
@click.option("--concurrency", type=click.IntRange(min=1), default=10, show_default=True, help="Runs at a time.")
@click.option(
    "--every", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Seconds between two looks."
)
@click.option(
    "--once",
    is_flag=True,
    help="Take up what can go on now, and end. What waits for a time more than ten seconds away is left.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Seconds that SIGTERM gives handlers.",
)
@on_runs
def worker(session: Session, concurrency: int, every: float, once: bool, grace: float) -> int:
    """Take up runs that nobody drives.

    Those whose process died, that something was offered to, or whose timer is up. SIGTERM and Ctrl-C hand on the runs
    that it has.
    """

    async def work(service: Service) -> int:
        unwritten: asyncio.Future[Never] = asyncio.get_running_loop().create_future()

        def told(run_id: str, end: WorkflowRunResult | RehydrateError) -> None:
            try:
                _tell(session, service, run_id, end)
            except UnwrittenError as error:
                if not unwritten.done():
                    unwritten.set_exception(error)

        takes_up = Worker(service, concurrency=concurrency, every=every, told=told)
        if not once:
            names = ", ".join(sorted(workflow.name for workflow in service.workflows))
            session.output.say(f"worker for {names}; SIGTERM or Ctrl-C hands on what it has")
        return await _until_stopped(takes_up.finish() if once else takes_up.run(), unwritten, grace)

    with drain_on_sigterm(grace):
        return session.run(work, create=True)  # it may begin before the first run


async def _until_stopped(work: Coroutine[None, None, object], unwritten: asyncio.Future[Never], grace: float) -> int:
    """Let a worker work. Ctrl-C, which cancels this, and an output that takes no more, drain the process as SIGTERM
    does."""
    working = asyncio.create_task(work)
    interrupted = False
    try:
        await asyncio.wait((working, unwritten), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        interrupted = True
    if interrupted or unwritten.done():
        await drain(grace)
    await working
    if unwritten.done():
        unwritten.result()
    return Ending.INTERRUPTED if interrupted else Ending.DONE


def _tell(session: Session, service: Service, run_id: str, end: WorkflowRunResult | RehydrateError) -> None:
    """Print how a run has ended that was taken up: a line each, also as JSON."""
    output: Output = session.output
    if isinstance(end, WorkflowRunResult):
        workflow = service.workflow(end.checkpoint.workflow_name)
        output.document(Shown(session, workflow, end).document())
        output.line(f"{printable(run_id)}\t{end.status.value}\tturn {end.turn}")
        return
    output.document({"run_id": run_id, "error": output.error_document(end)})
    output.line(f"{printable(run_id)}\terror [{end.code}]\t{printable(end.text())}")
