"""`rehydrate history` and `diff`: the checkpoints of a run, and what is not the same at two of them."""

from __future__ import annotations

import click

from rehydrate.model.printable import printable
from rehydrate.service.differences import Differences
from rehydrate.service.history import CheckpointPlace
from rehydrate.service.service import Service

from .advice import argument
from .completion import complete_run
from .documents import entry_document, place_text, time_text, value_document
from .endings import Ending
from .runs import limit_option, page_options, place
from .session import Session, on_runs


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.option("--before", type=click.IntRange(0), metavar="NUMBER", help="Begin below this number.")
@limit_option
@on_runs
def history(session: Session, run_id: str, before: int | None, limit: int) -> int:
    """List the checkpoints of a run, newest first."""

    async def work(service: Service) -> int:
        found = await service.history(run_id).entries(before=before, limit=limit)
        further = found[-1].number if len(found) == limit and found[-1].number else None
        session.output.document({"checkpoints": [entry_document(entry) for entry in found], "next": further})
        session.output.table(
            ("number", "checkpoint", "status", "turn", "by", "bytes", "open", "saved", "names", "reason"),
            (
                (each.number, each.checkpoint_id, each.status.value, each.turn, each.cause.value, each.size,
                 each.pending, time_text(each.created), ", ".join(each.tags), each.reason)
                for each in found
            ),
        )  # fmt: skip
        if further is not None:
            command = session.command("history", *page_options(limit, before=str(further)), *argument(run_id))
            session.output.say(f"There are more: {command}")
        return Ending.DONE

    return session.run(work, needs_app=False)


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.argument("before", metavar="BEFORE", type=place)
@click.argument("after", metavar="[AFTER]", type=place, required=False, default="latest")
@click.option(
    "--of", "other", metavar="RUN", help="The run that AFTER is of, as of a fork.", shell_complete=complete_run
)
@on_runs
def diff(session: Session, run_id: str, before: CheckpointPlace, after: CheckpointPlace, other: str | None) -> int:
    """Say what is not the same at two checkpoints: each by its number, id or name, or `latest`."""

    async def work(service: Service) -> int:
        later = await service.history(other or run_id).load(after)
        found = await service.history(run_id).diff(before, later)
        session.output.document(_document(found))
        for line in str(found).splitlines():
            session.output.line(printable(line))
        return Ending.DONE

    return session.run(work, needs_app=False)


def _document(found: Differences) -> dict[str, object]:
    ends = {"before": found.before.header, "after": found.after.header}
    return {
        **{name: {"run_id": each.run_id, "number": each.seq, "checkpoint_id": each.checkpoint_id}
           for name, each in ends.items()},
        "differences": [
            {
                "path": row.path,
                "scope": place_text(row.path),
                "kind": row.kind,
                "key": row.key,
                "inside": row.inside,
                "change": row.change,
                "before": value_document(row.before),
                "after": value_document(row.after),
            }
            for row in found
        ],
    }  # fmt: skip
