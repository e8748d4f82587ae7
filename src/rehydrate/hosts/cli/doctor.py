"""`rehydrate doctor`: how a store is, and what stands still or is damaged among its runs. It changes nothing."""

from __future__ import annotations

import click

from rehydrate.model.printable import printable
from rehydrate.ports import Finding
from rehydrate.service.health import check_health
from rehydrate.service.retention import Retention
from rehydrate.service.service import Service

from .endings import Ending
from .retaining import takes_retention
from .session import Session, on_runs


@click.command()
@click.option("--full", is_flag=True, help="Read and check every checkpoint of every run, however long that takes.")
@takes_retention
@on_runs
def doctor(session: Session, full: bool, retention: Retention | None) -> int:
    """Look at a store and at its runs. Exit code 1 where something is a problem."""

    async def work(service: Service) -> int:
        report = await check_health(service.storage, full=full, retention=retention)
        session.output.document({"healthy": bool(report), "findings": [_document(each) for each in report.findings]})
        session.output.table(("level", "what", "how it is", "next"), map(_row, report.findings))
        problems, notes = len(report.problems), sum(each.level == "note" for each in report.findings)
        session.output.say(printable(f"{problems} problem(s), {notes} note(s)"))
        return Ending.DONE if report else Ending.FAILED

    return session.run(work, needs_app=False)


def _row(finding: Finding) -> tuple[str, str, str, str]:
    return finding.level, finding.about, finding.text, finding.action


def _document(finding: Finding) -> dict[str, str]:
    return {"about": finding.about, "level": finding.level, "text": finding.text, "action": finding.action}
