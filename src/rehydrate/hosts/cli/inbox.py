"""`rehydrate inbox`: what runs ask and nobody has answered, over all runs of a store, with the command that answers.

It needs no code of the workflows; where it is there, it shows what JSON an answer is, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from rehydrate.errors import RehydrateError
from rehydrate.model.printable import printable
from rehydrate.service.service import Service, WaitingRequest
from rehydrate.service.shapes import answer_shapes

from .completion import complete_run
from .documents import place_text, request_document
from .endings import Ending
from .output import shown
from .runs import after_option, limit_option, page_options, workflow_option
from .session import Session, on_runs
from .told import shortened


@click.command()
@workflow_option
@click.option("--run", "run_id", metavar="RUN", help="Only those of this run.", shell_complete=complete_run)
@after_option
@limit_option
@on_runs
def inbox(session: Session, workflow: str | None, run_id: str | None, after: str | None, limit: int) -> int:
    """List open requests of all runs, ordered by their ids."""

    async def work(service: Service) -> int:
        found = await service.inbox(workflow=workflow, run_id=run_id, after=after, limit=limit)
        shapes = await _shapes(session, service, found)
        further = found[-1].request.request_id if len(found) == limit else None
        session.output.document({
            "requests": [_document(session, each, shapes) for each in found],
            "next": further,
        })  # fmt: skip
        for each in found:
            for line in _lines(session, each, shapes):
                session.output.line(line)
        if not found:
            session.output.say("Nothing is asked.")
        if further is not None:
            options = page_options(limit, workflow=workflow, run=run_id, after=further)
            session.output.say(f"There may be more: {session.command('inbox', *options)}")
        return Ending.DONE

    return session.run(work, needs_app=False)


def _document(session: Session, waiting: WaitingRequest, shapes: dict[str, str]) -> dict[str, object]:
    request_id = waiting.request.request_id
    return {
        "run_id": waiting.run_id,
        "workflow": waiting.workflow,
        **request_document(waiting.request),
        "expects": shapes.get(request_id),
        "command": session.answering(request_id),
    }


def _lines(session: Session, waiting: WaitingRequest, shapes: dict[str, str]) -> Iterator[str]:
    request = waiting.request
    place = place_text(request.path, request.executor_id)
    yield f"request  {printable(request.request_id)} of run {printable(waiting.run_id)}, from {printable(place)}"
    yield f"  asks     {shortened(shown(request.data))}"
    yield f"  expects  {printable(shapes.get(request.request_id, request.response_type))}"
    yield f"  answer   {session.answering(request.request_id)}"


async def _shapes(session: Session, service: Service, found: Iterable[WaitingRequest]) -> dict[str, str]:
    """Return what JSON answers are, by request id, as far as the workflows are there and can still be read."""
    if session.app_name is None:
        return {}
    try:
        workflows = {named.workflow.name: named.workflow for named in session.app.workflows}
    except RehydrateError as error:
        session.output.note(f"note: without the workflows only the names of types are known. {printable(error.text())}")
        return {}
    shapes: dict[str, str] = {}
    for run_id, name in {each.run_id: each.workflow for each in found}.items():
        if name in workflows:
            shapes.update(await answer_shapes(service.storage, workflows[name], run_id))
    return shapes
