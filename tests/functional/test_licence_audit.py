"""The licence audit as a function: the report of the graph, whatever it finds and however it is interrupted."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage, Workflow, WorkflowRunResult
from rehydrate.demo.journal import Happened, read_journal
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest, LicenceQuestion
from rehydrate.demo.report import AuditReport, render
from rehydrate.demo.workflow import audit_workflow
from tests.demo.made import install
from tests.functional.audited import example
from tests.project.source import ROOT

ANSWERS = {"silent": "GPLv3+", "lone": "ISC"}
FLOWS = {"function": example().audit, "graph": audit_workflow()}


def make_site(folder: Path) -> Path:
    """An environment with clear and unclear distributions, and a broken one."""
    site = folder / "site-packages"
    install(site, "clear-a", "1.0", "License-Expression: MIT")
    install(site, "clear-b", "1.0", "License-Expression: Apache-2.0")
    install(site, "lone", "1.0", "License: ISC")
    install(site, "silent", "1.0")
    (site / "broken-1.0.dist-info").mkdir()
    return site


def call(
    flow: Workflow,
    store: CheckpointStorage,
    request: AuditRequest | None,
    answers: dict[str, str] | None = None,
    journal: Path | None = None,
) -> WorkflowRunResult:
    """Make one call on the run `a`; without answers it begins."""
    return asyncio.run(
        flow.run(
            request,
            run_id="a",
            checkpoint=None if answers is None else "latest",
            responses=answers,
            checkpoint_storage=store,
            run_args={"journal": str(journal) if journal else None},
            resources={"look_up": LookUp(0, 2)},
        )
    )


def answered(result: WorkflowRunResult, answers: dict[str, str]) -> dict[str, str]:
    """The answers to the open questions, by request."""
    found: dict[str, str] = {}
    for request in result.pending_requests:
        assert isinstance(request.data, LicenceQuestion)
        found[request.request_id] = answers[request.data.about.name]
    return found


def report(result: WorkflowRunResult) -> str:
    """The last report of a call, as text."""
    last = result.outputs[-1]
    assert isinstance(last, AuditReport)
    return render(last)


def whole_story(flow: Workflow, site: Path, more: tuple[str, ...]) -> list[str]:
    """Every report of a run that asks, is answered wrongly, is answered, and is given more in the same call."""
    store = InMemoryCheckpointStorage()
    asked = call(flow, store, AuditRequest((str(site),), str(site)))
    asked = call(flow, store, None, answered(asked, ANSWERS | {"silent": "MTI"}))
    (again,) = asked.pending_requests
    assert isinstance(again.data, LicenceQuestion)
    assert again.data.refused.startswith("'MTI' is no licence that is known here")
    done = call(flow, store, AuditRequest(more, str(site)), answered(asked, ANSWERS))
    install(site, "later", "1.0", "License-Expression: MIT")
    last = call(flow, store, AuditRequest((str(site),), str(site)), {})
    return [report(done), report(last)]


def test_function_and_graph_give_the_same_reports(tmp_path: Path) -> None:
    """Questions, a slip of the pen, more sources with the answers, one that is gone, an environment read again."""
    told: list[list[str]] = []
    for name, flow in FLOWS.items():
        place = tmp_path / name
        site = make_site(place)
        requirements = place / "requirements.txt"
        requirements.write_text("silent\nabsent\n")
        reports = whole_story(flow, site, (str(requirements), str(place / "gone")))
        told.append([text.replace(str(place), "") for text in reports])
    assert told[0] == told[1]
    assert [text.splitlines()[5].split(",")[0] for text in told[0]] == ["4 distributions", "5 distributions"]
    assert "GPL-3.0-or-later" in told[0][0]
    assert "required but missing (1)" in told[0][0]


def test_an_audit_that_was_killed_gives_the_same_report(tmp_path: Path) -> None:
    """What two steps had saved before the kill is not judged again; the rest is, once."""
    site = make_site(tmp_path)
    file, journal = tmp_path / "runs.db", tmp_path / "journal.jsonl"
    command = [sys.executable, "-m", "tests.functional.audited", str(file), str(journal), str(site)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "stuck\n"
        finally:
            child.kill()
    assert [entry.key.split("==")[0] for entry in read_journal(str(journal))] == ["clear-a", "clear-b"]

    function = FLOWS["function"]
    asked = call(function, SqliteCheckpointStorage(file), None, {}, journal)
    done = call(function, SqliteCheckpointStorage(file), None, answered(asked, ANSWERS), journal)
    times = Counter(each.key.split("==")[0] for each in read_journal(str(journal)))
    assert times == {"clear-a": 1, "clear-b": 1, "lone": 1, "silent": 1}
    assert {each.happened for each in read_journal(str(journal))} == {Happened.CLASSIFIED}

    store = InMemoryCheckpointStorage()
    asked = call(FLOWS["graph"], store, AuditRequest((str(site),), str(site)))
    assert report(done) == report(call(FLOWS["graph"], store, None, answered(asked, ANSWERS)))
