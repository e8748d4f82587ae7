"""`rehydrate prune`: lets go of old checkpoints, and of runs that ended long ago, by the rules of a retention."""

from __future__ import annotations

import click

from rehydrate.errors import WrongCallError
from rehydrate.model.printable import printable
from rehydrate.service.pruning import PrunedRun, PruneSummary
from rehydrate.service.pruning import prune as prune_store
from rehydrate.service.retention import Retention
from rehydrate.service.service import Service

from .completion import complete_run
from .endings import Ending
from .retaining import takes_retention
from .runs import workflow_option
from .session import Session, on_runs


@click.command()
@takes_retention
@workflow_option
@click.option("--run", "run_id", metavar="RUN", help="Only this run.", shell_complete=complete_run)
@click.option("--dry-run", is_flag=True, help="Only say what would go, and why the rest stays.")
@on_runs
def prune(
    session: Session, retention: Retention | None, workflow: str | None, run_id: str | None, dry_run: bool
) -> int:
    """Let go of what no rule keeps. Heads, named checkpoints and open requests always stay."""
    if retention is None:
        raise WrongCallError(
            "no rule says what may go.", "Give --keep-last, --keep-for or --delete-ended-after; try it with --dry-run."
        )

    async def work(service: Service) -> int:
        summary = await prune_store(service.storage, retention, run_id=run_id, workflow=workflow, dry_run=dry_run)
        session.output.document(_document(summary))
        rows = [_row(run) for run in summary.runs]
        if rows:
            session.output.table(("run", "goes", "stays", "passed over", "bytes"), rows)
        if workflow is not None and not summary.looked_at:  # no error: a job that prunes may come first, or again
            session.output.say(printable(f"There is no run of workflow {workflow!r:.250} in this store."))
            return Ending.DONE
        first, *_ = str(summary).splitlines()
        session.output.say(printable(first))
        return Ending.DONE

    return session.run(work, needs_app=False)


def _row(run: PrunedRun) -> tuple[str, str, str, str, int]:
    goes = f"the whole run, {len(run.forgotten)}" if run.deleted else str(len(run.forgotten))
    stays = ", ".join(f"{kept.number} ({', '.join(kept.why)})" for kept in run.kept[-3:])
    more = f"{len(run.kept) - 3} more, " if len(run.kept) > 3 else ""
    return run.run_id, goes, more + stays, run.passed_over, run.size


def _document(summary: PruneSummary) -> dict[str, object]:
    return {
        "dry_run": summary.dry_run,
        "runs_looked_at": summary.looked_at,
        "checkpoints_forgotten": summary.forgotten,
        "runs_deleted": list(summary.deleted),
        "size": summary.size,
        "runs": [
            {
                "run_id": run.run_id,
                "deleted": run.deleted,
                "forgotten": list(run.forgotten),
                "kept": [{"number": kept.number, "why": list(kept.why)} for kept in run.kept],
                "size": run.size,
                "passed_over": run.passed_over or None,
            }
            for run in summary.runs
        ],
    }
