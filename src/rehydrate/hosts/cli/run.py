"""`rehydrate run`, `resume`, `answer` and `fork`: each is one call of a run, driven to where it rests."""

from __future__ import annotations

import click

from rehydrate.errors import UnknownRequestError, WrongCallError
from rehydrate.runtime.stream import RunStream
from rehydrate.service.service import Service, forked, workflow_at, workflow_of

from .completion import complete_answer, complete_run
from .driving import drive, events_option
from .given import Given, given_input, key_option, takes_input
from .session import Session, on_runs


@click.command()
@click.option("--message", "-m", metavar="JSON", required=True, help="The message that the workflow begins with.")
@click.option("--run", "run_id", metavar="RUN", help="The id that the run is to have.")
@key_option
@events_option
@on_runs
def run(session: Session, message: str, run_id: str | None, key: str | None, events: bool) -> int:
    """Start a run, and stay until it rests."""
    workflow = session.app.workflow()
    parsed = given_input(message).message_for(workflow)

    async def begin(service: Service) -> tuple[str, RunStream]:
        return workflow.name, service.start(workflow.name, parsed, run_id=run_id, idempotency_key=key)

    return drive(session, begin, events=events, create=True)


@click.command()
@click.option("--run", "run_id", metavar="RUN", help="The run, at its newest checkpoint.", shell_complete=complete_run)
@click.option("--checkpoint", metavar="ID", help="The checkpoint to go on from; its run is found by it.")
@click.option("--takeover", is_flag=True, help="Take the run from a process that drives it.")
@takes_input
@events_option
@on_runs
def resume(
    session: Session, run_id: str | None, checkpoint: str | None, takeover: bool, events: bool, given: Given
) -> int:
    """Go on with a run, in one call.

    With answers, a message, both, or, where it was interrupted, as it stands.
    """
    if run_id is None and checkpoint is None:
        raise WrongCallError("no run is named.", "Name it with --run, or one of its checkpoints with --checkpoint.")
    read = given.read()

    async def begin(service: Service) -> tuple[str, RunStream]:
        found = run_id or (await service.storage.inspect(checkpoint or "")).header.run_id
        workflow = await workflow_of(service, found)
        stream = await service.resume(
            found,
            read.message_for(workflow),
            checkpoint=checkpoint or "latest",
            responses=read.responses,
            **given.options(takeover=takeover),
        )
        return workflow.name, stream

    return drive(session, begin, events=events)


@click.command()
@click.argument("answers", metavar="ID=JSON...", nargs=-1, required=True, shell_complete=complete_answer)
@key_option
@events_option
@on_runs
def answer(session: Session, answers: tuple[str, ...], key: str | None, events: bool) -> int:
    """Answer open requests, and go on.

    Their run is found by their ids.
    """
    responses = given_input(None, answers).answers

    async def begin(service: Service) -> tuple[str, RunStream]:
        row = await service.storage.find_request(next(iter(responses)))
        if row is None:
            raise UnknownRequestError(next(iter(responses)))
        workflow = await workflow_of(service, row.run_id)
        return workflow.name, await service.answer(responses, idempotency_key=key)

    return drive(session, begin, events=events)


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--run", "run_id", metavar="RUN", help="The id that the copy is to have.")
@takes_input
@events_option
@on_runs
def fork(session: Session, checkpoint: str, run_id: str | None, events: bool, given: Given) -> int:
    """Go on with a copy of a run.

    The run is copied at one of its checkpoints, which may be an older one.
    """
    read = given.read()

    async def begin(service: Service) -> tuple[str, RunStream]:
        workflow = await workflow_at(service, checkpoint)
        message, responses = read.message_for(workflow), read.responses
        return workflow.name, forked(
            service, workflow, checkpoint, message, run_id=run_id, responses=responses, **given.options()
        )

    return drive(session, begin, events=events)
