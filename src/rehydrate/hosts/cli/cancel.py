"""`rehydrate cancel`: stops a run at what it has."""

from __future__ import annotations

import click

from rehydrate.model.printable import printable
from rehydrate.service.service import Service

from .completion import complete_run
from .endings import Ending
from .session import Session, on_runs


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@on_runs
def cancel(session: Session, run_id: str) -> int:
    """Stop a run at what it has.

    A process that drives it is asked to.
    """

    async def work(service: Service) -> int:
        stopped = await service.cancel(run_id)
        session.output.document({"run_id": run_id, "stopped": stopped})
        told = "is stopped" if stopped else "was asked to stop; the process that drives it does so"
        session.output.line(f"run {printable(run_id)} {told}.")
        return Ending.DONE

    return session.run(work)
