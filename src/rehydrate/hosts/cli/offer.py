"""`rehydrate offer`: leaves input for a run, whichever process drives it or will."""

from __future__ import annotations

import click

from rehydrate.errors import WrongCallError
from rehydrate.model.printable import printable
from rehydrate.service.service import Service, workflow_of

from .completion import complete_run
from .endings import Ending
from .given import answer_option, given_input, key_option, message_option
from .session import Session, on_runs


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@message_option
@answer_option
@key_option
@on_runs
def offer(session: Session, run_id: str, message: str | None, answers: tuple[str, ...], key: str | None) -> int:
    """Leave input for a run that is busy.

    Whoever drives it takes it; a worker takes what a run at rest is offered.
    """
    if message is None and not answers:
        raise WrongCallError("an offer needs a message or answers.", "Give --message, --answer ID=JSON, or both.")
    given = given_input(message, answers)

    async def work(service: Service) -> int:
        workflow = await workflow_of(service, run_id)
        number = await service.offer(run_id, given.message_for(workflow), responses=given.responses, key=key)
        session.output.document({"run_id": run_id, "number": number})
        session.output.line(f"offered to run {printable(run_id)} as number {number}.")
        return Ending.DONE

    return session.run(work)
