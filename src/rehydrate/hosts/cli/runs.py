"""`rehydrate runs` and `show`: which runs there are, and how one stands. Neither needs the code of its workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from rehydrate.codecs import plain
from rehydrate.engine.inspecting import inspected
from rehydrate.engine.reading import scopes
from rehydrate.model.checkpoint import Head, Header, Status
from rehydrate.model.printable import printable
from rehydrate.ports import Inspection
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.facts import facts_of
from rehydrate.service.history import CheckpointPlace
from rehydrate.service.service import Service

from .completion import complete_run
from .documents import header_document, place_text, request_document, time_text
from .endings import Ending
from .output import shown
from .session import Session, on_runs
from .told import shortened

#: Ids of checkpoints are no shorter, and some may be digits alone.
_SHORTEST_ID: Final = 20

#: Rows of a page where no other number is said.
_ROWS: Final = 100

limit_option = click.option(
    "--limit", type=click.IntRange(1), default=_ROWS, show_default=True, help="How many are shown at most."
)
after_option = click.option("--after", metavar="ID", help="Begin behind this one: the `next` of the page before.")
workflow_option = click.option("--workflow", metavar="NAME", help="Only those of this workflow.")


def page_options(limit: int, **filters: str | None) -> list[str]:
    """Return what was said of a page, by the names of the options, as the words that say it of the next one."""
    said = {**filters, "limit": None if limit == _ROWS else str(limit)}
    return [word for name, value in said.items() if value is not None for word in (f"--{name}", value)]


def place(text: str) -> CheckpointPlace:
    """Return a checkpoint of a run: its number where that is one, else its id, its name, or `latest`."""
    is_number = text.isascii() and text.isdigit() and len(text) < _SHORTEST_ID
    return int(text) if is_number else text


@click.command()
@workflow_option
@click.option("--status", type=click.Choice([status.value for status in Status], case_sensitive=False))
@after_option
@limit_option
@on_runs
def runs(session: Session, workflow: str | None, status: str | None, after: str | None, limit: int) -> int:
    """List runs, ordered by their ids."""

    async def work(service: Service) -> int:
        found = await service.runs(workflow=workflow, status=status, after=after, limit=limit)
        further = found[-1].run_id if len(found) == limit else None
        session.output.document({"runs": [header_document(header) for header in found], "next": further})
        session.output.table(
            ("run", "workflow", "status", "turn", "open", "saved"),
            ((each.run_id, each.workflow, each.status.value, each.turn, each.pending, time_text(each.created))
             for each in found),
        )  # fmt: skip
        if further is not None:
            options = page_options(limit, workflow=workflow, status=status, after=further)
            session.output.say(f"There may be more: {session.command('runs', *options)}")
        return Ending.DONE

    return session.run(work, needs_app=False)


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.option("--checkpoint", "at", type=place, metavar="CHECKPOINT", help="Its number, id or name.")
@click.option("--state", "with_state", is_flag=True, help="Show state, messages and all else that it holds, too.")
@on_runs
def show(session: Session, run_id: str, at: CheckpointPlace | None, with_state: bool) -> int:
    """Show how a run stands: outputs, open requests, and what would run next."""

    async def work(service: Service) -> int:
        checkpoint = await service.history(run_id).load("latest" if at is None else at)
        found = inspected(checkpoint.header, checkpoint.records, plain)
        head = await service.storage.head(run_id)
        failures = list(_failures(checkpoint))
        rows = [] if not with_state else [
            {"path": path, "kind": kind, "key": key, "value": fact.show()}
            for (path, kind, key), fact in facts_of(checkpoint).items()
        ]  # fmt: skip
        document = {
            **_document(found, head),
            "failures": [{"place": place, "text": text} for place, text in failures],
        }
        session.output.document({**document, "holds": rows} if with_state else document)
        for line in _lines(session, found, head):
            session.output.line(line)
        for place, text in failures:
            session.output.line(f"failed     {printable(place)}: {shortened(printable(text))}")
        if with_state:
            session.output.table(("scope", "what", "key", "value"), (
                (place_text(str(row["path"])), str(row["kind"]), str(row["key"]), shortened(shown(row["value"])))
                for row in rows
            ))  # fmt: skip
        return Ending.DONE

    return session.run(work, needs_app=False)


def _document(found: Inspection, head: Head | None) -> dict[str, object]:
    return {
        **header_document(found.header),
        "is_newest": head is not None and head.header.checkpoint_id == found.header.checkpoint_id,
        "driven": head is not None and head.alive,
        "input_waits": head is not None and head.offered,
        "outputs": list(found.outputs),
        "requests": [request_document(request) for request in found.requests],
        "next_executors": list(found.next_executors),
        "next_due": found.next_due,
    }


def _lines(session: Session, found: Inspection, head: Head | None) -> Iterator[str]:
    header = found.header
    yield f"run        {printable(header.run_id)} of workflow {printable(header.workflow)}"
    yield f"status     {header.status.value}, turn {header.turn}, superstep {header.superstep}"
    yield f"checkpoint {printable(header.checkpoint_id)}, number {header.seq}, saved {time_text(header.created)}"
    if head is not None and head.header.checkpoint_id != header.checkpoint_id:
        yield f"newest     number {head.header.seq}, {head.header.status.value}"
    yield from _around(header, head)
    for output in found.outputs:
        yield f"output     {shortened(shown(output))}"
    for request in found.requests:
        asker = printable(place_text(request.path, request.executor_id))
        yield f"request    {printable(request.request_id)} from {asker}"
        yield f"  asks     {shortened(shown(request.data))}"
        yield f"  expects  {printable(request.response_type)}"
    if found.next_executors:
        yield f"would run  {printable(', '.join(found.next_executors))}"
    if found.next_due is not None:
        yield f"timer      {time_text(found.next_due)}"
    if found.requests:
        yield f"answer     {session.answering(found.requests[0].request_id)}"


def _failures(checkpoint: WorkflowCheckpoint) -> Iterator[tuple[str, str]]:
    """Give the place of each failure that was not repaired, and its text."""
    for path in scopes(checkpoint.records):
        for name, record in checkpoint.records.items(path, "failure"):
            yield place_text(path, record.executor or name), f"{record.failure.type}: {record.failure.text}"


def _around(header: Header, head: Head | None) -> Iterator[str]:
    """Say who drives a run, as of now."""
    if head is None:
        return
    if head.alive:
        yield "driven     by a process that lives"
    elif head.header.status is Status.RUNNING and head.header.checkpoint_id == header.checkpoint_id:
        waits = "" if header.due is None else f", as it waits until {time_text(header.due)}"
        yield f"driven     by nobody{waits}: a worker{' then' if waits else ''} or resume takes it up"
    if head.offered:
        yield "inbox      something waits in it"
