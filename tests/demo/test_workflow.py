"""The audit as a workflow: one verdict for each distribution, whoever decides it and whenever it is asked."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, WorkflowRunResult
from rehydrate.demo.environment import FindingKind
from rehydrate.demo.licences import DecidedBy
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest, LicenceQuestion
from rehydrate.demo.report import AuditReport
from rehydrate.demo.so_far import report_so_far
from rehydrate.demo.workflow import audit_workflow
from rehydrate.errors import MissingResourceError
from tests.demo.made import install


@pytest.fixture(name="site")
def make_site(tmp_path: Path) -> Path:
    """An environment with one clear and two unclear distributions."""
    site = tmp_path / "site-packages"
    install(site, "clear", "1.0", "License-Expression: MIT")
    install(site, "silent", "1.0")
    install(site, "lone", "1.0", "License: ISC")
    return site


def call(
    storage: CheckpointStorage, *sources: Path, answers: dict[str, str] | None = None, go_on: bool = True
) -> WorkflowRunResult:
    """Make one call on the run `a` with a workflow built anew."""

    async def once() -> WorkflowRunResult:
        return await audit_workflow(storage).run(
            AuditRequest(tuple(map(str, sources)), str(sources[0])) if sources else None,
            run_id="a",
            checkpoint="latest" if go_on else None,
            responses=answers,
            run_args={"journal": None},
            resources={"look_up": LookUp(0, 2)},
            on_pending="keep" if sources and go_on else None,
        )

    return asyncio.run(once())


def questions(result: WorkflowRunResult) -> dict[str, str]:
    """Return the request ids of the open questions by the name of the distribution."""
    found: dict[str, str] = {}
    for each in result.pending_requests:
        assert isinstance(each.data, LicenceQuestion)
        found[each.data.about.name] = each.request_id
    return found


def report(result: WorkflowRunResult) -> AuditReport:
    """Return the last report that a call gave."""
    last = result.outputs[-1]
    assert isinstance(last, AuditReport)
    return last


def test_what_metadata_cannot_decide_is_asked_two_levels_down(site: Path) -> None:
    """The question stands in the scope of the person inside that of the classification."""
    result = call(InMemoryCheckpointStorage(), site, go_on=False)
    assert sorted(questions(result)) == ["lone", "silent"]
    assert {each.path.split("#")[0] for each in result.pending_requests} == {"classify"}
    assert all(each.path.split("/")[1] == "person#1" for each in result.pending_requests)
    assert result.outputs == []


def test_answers_and_a_new_input_in_one_call_complete_the_audit(site: Path, tmp_path: Path) -> None:
    """A second source that names what is known asks nothing again, and what it lacks is missing."""
    storage = InMemoryCheckpointStorage()
    asked = questions(call(storage, site, go_on=False))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("silent\nabsent\n")

    async def go_on() -> WorkflowRunResult:
        return await audit_workflow(storage).run(
            AuditRequest((str(requirements),), str(site)),
            run_id="a",
            checkpoint="latest",
            responses={asked["silent"]: "GPLv3+", asked["lone"]: "ISC"},
            run_args={"journal": None},
            resources={"look_up": LookUp(0, 2)},
        )

    result = asyncio.run(go_on())
    assert result.pending_requests == ()
    rows = {row.name: (row.licence, row.decided_by) for row in report(result).rows}
    assert rows == {
        "clear": ("MIT", DecidedBy.METADATA),
        "silent": ("GPL-3.0-or-later", DecidedBy.PERSON),
        "lone": ("ISC", DecidedBy.PERSON),
    }
    assert [each.name for each in report(result).missing] == ["absent"]
    assert [each.source for each in report(result).sightings if each.key.startswith("silent")] == [
        str(site),
        str(requirements),
    ]


def test_an_environment_that_is_read_again_gives_no_new_rows(site: Path) -> None:
    """Only what was installed since is classified."""
    storage = InMemoryCheckpointStorage()
    asked = questions(call(storage, site, go_on=False))
    call(storage, answers={asked["silent"]: "MIT", asked["lone"]: "MIT"})
    assert len(report(call(storage, site)).rows) == 3
    install(site, "later", "1.0", "License-Expression: MIT")
    assert sorted(row.name for row in report(call(storage, site)).rows) == ["clear", "later", "lone", "silent"]


def test_an_answer_that_names_no_licence_is_asked_for_again(site: Path) -> None:
    """The run does not fail for a slip of the pen; the new question says what was wrong."""
    storage = InMemoryCheckpointStorage()
    asked = questions(call(storage, site, go_on=False))
    result = call(storage, answers={asked["silent"]: "MTI"})
    again = {each.request_id: each.data for each in result.pending_requests}
    assert asked["silent"] not in again
    data = again[questions(result)["silent"]]
    assert isinstance(data, LicenceQuestion)
    assert data.refused.startswith("'MTI' is no licence that is known here")


def test_what_is_found_so_far_can_be_read_from_the_checkpoint(site: Path) -> None:
    """Rows, sightings and findings come out of the state without running anything."""
    (site / "broken-1.0.dist-info").mkdir()
    result = call(InMemoryCheckpointStorage(), site, go_on=False)
    found = report_so_far(result.checkpoint, ())
    assert [(row.name, row.licence) for row in found.rows] == [("clear", "MIT")]
    assert [each.kind for each in found.findings] == [FindingKind.NO_METADATA]
    assert found.sources == (str(site),)
    assert len(found.sightings) == 3


def test_a_source_that_has_gone_is_a_finding(tmp_path: Path) -> None:
    """The run goes on with the other sources."""
    result = call(InMemoryCheckpointStorage(), tmp_path / "gone", go_on=False)
    assert [each.kind for each in report(result).findings] == [FindingKind.UNREADABLE]


def test_a_call_without_the_look_up_is_refused_before_anything_runs(site: Path) -> None:
    """The live object is declared, so its absence is an error of the call."""
    storage = InMemoryCheckpointStorage()
    request = AuditRequest((str(site),), str(site))
    with pytest.raises(MissingResourceError):
        asyncio.run(audit_workflow(storage).run(request, run_id="a", run_args={"journal": None}))
    assert asyncio.run(storage.head("a")) is None
