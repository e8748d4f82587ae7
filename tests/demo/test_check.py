"""The check finds what is lost, doubled or asked twice, and nothing in a sound audit."""

from pathlib import Path

import pytest

from rehydrate.demo.check import check, ran_again
from rehydrate.demo.environment import Finding, FindingKind, Missing
from rehydrate.demo.families import Family
from rehydrate.demo.journal import Entry, Happened, note, read_journal
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict
from rehydrate.demo.report import AuditReport
from tests.demo.made import install


def row(name: str, version: str = "1.0", by: DecidedBy = DecidedBy.METADATA) -> Verdict:
    """Make one row."""
    return Verdict(f"{name}=={version}#k", name, version, "env", "MIT", Family.PERMISSIVE, by)


def wrong(report: AuditReport, site: Path, *journal: Entry) -> list[str]:
    """Return the claims that the check contradicts, with what contradicts them."""
    return [str(each) for each in check(report, str(site), journal) if each.wrong]


@pytest.fixture(name="site")
def make_site(tmp_path: Path) -> Path:
    """An environment with two distributions."""
    site = tmp_path / "site-packages"
    install(site, "one", "1.0")
    install(site, "Two.X", "1.0")
    return site


def test_a_sound_audit_passes(site: Path) -> None:
    """Every distribution is there once; a name that is spelled otherwise is the same name."""
    assert wrong(AuditReport((str(site),), rows=(row("one"), row("two-x"))), site) == []


def test_a_lost_distribution_is_found(site: Path) -> None:
    """The check looks at the disk, not at what the audit says it saw."""
    found = wrong(AuditReport((str(site),), rows=(row("one"),)), site)
    assert found == ["WRONG none of 2 installed distributions is lost: not so for two-x 1.0"]


def test_a_row_from_nowhere_is_found(site: Path) -> None:
    """A version that is not installed counts as another distribution."""
    found = wrong(AuditReport((str(site),), rows=(row("one"), row("two-x"), row("one", "2.0"))), site)
    assert found == ["WRONG nothing is in the report that is not installed: not so for one 2.0"]


def test_a_doubled_row_is_found(site: Path) -> None:
    """A distribution that was classified twice has two rows."""
    found = wrong(AuditReport((str(site),), rows=(row("one"), row("two-x"), row("one"))), site)
    assert found == ["WRONG no distribution is in the report twice: not so for one==1.0#k"]


def test_an_open_question_is_found(site: Path) -> None:
    """A report that still waits is not complete."""
    waiting = (Undecided("two-x==1.0#k", "two-x", "1.0", "env", "", ("why",)),)
    found = wrong(AuditReport((str(site),), rows=(row("one"), row("two-x")), waiting=waiting), site)
    assert found == ["WRONG no question is open: not so for two-x"]


def test_a_lost_requirement_is_found(site: Path, tmp_path: Path) -> None:
    """Each name of a requirements file has a row or is missing."""
    file = tmp_path / "r.txt"
    file.write_text("one\nabsent\ngone\n")
    missing = (Missing("absent", "absent", "not installed", str(file)),)
    found = wrong(AuditReport((str(file),), rows=(row("one"),), missing=missing), site)
    assert found == ["WRONG none of 3 required names is lost: not so for gone"]


def test_a_nameless_directory_without_a_finding_is_found(site: Path) -> None:
    """Broken metadata may not vanish either."""
    (site / "broken-1.0.dist-info").mkdir()
    (site / "broken-1.0.dist-info" / "METADATA").write_text("Version: 1.0\n")
    rows = (row("one"), row("two-x"))
    finding = Finding(FindingKind.NO_NAME, "broken-1.0.dist-info", "no Name", str(site))
    assert wrong(AuditReport((str(site),), rows=rows, findings=(finding,)), site) == []
    assert wrong(AuditReport((str(site),), rows=rows), site) == [
        "WRONG none of 1 metadata directories without a name is lost: not so for 1 of them"
    ]


def test_a_committed_classification_that_ran_again_is_found(site: Path) -> None:
    """Running again is wrong after the commit and allowed before it."""
    report = AuditReport((str(site),), rows=(row("one"), row("two-x")))
    before = Entry(Happened.CLASSIFIED, "one", process=1)
    committed = Entry(Happened.COMMITTED, "one", process=1)
    after = Entry(Happened.CLASSIFIED, "one", process=2)
    assert wrong(report, site, before, after, committed) == []
    assert ran_again((before, after, committed)) == ("one",)
    assert wrong(report, site, before, committed, after) == [
        "WRONG none of 1 committed classifications ran again: not so for one"
    ]


def test_a_second_question_about_the_same_is_found(site: Path) -> None:
    """The same request seen by two processes is one question; two requests are two."""
    report = AuditReport((str(site),), rows=(row("one", by=DecidedBy.PERSON), row("two-x")))
    key = report.rows[0].key
    first = Entry(Happened.ASKED, key, process=1, request_id="a")
    assert wrong(report, site, first, Entry(Happened.ASKED, key, process=2, request_id="a")) == []
    assert wrong(report, site, first, Entry(Happened.ASKED, key, process=2, request_id="b")) == [
        f"WRONG none of 1 questions was asked twice: not so for {key}"
    ]


def test_a_verdict_of_a_person_who_was_not_asked_is_found(site: Path) -> None:
    """Questions and answers belong together."""
    report = AuditReport((str(site),), rows=(row("one", by=DecidedBy.PERSON), row("two-x")))
    assert wrong(report, site, Entry(Happened.CLASSIFIED, "one==1.0#k", process=1)) == [
        "WRONG who was asked about is who a person decided: not so for one==1.0#k"
    ]


def test_a_journal_line_that_a_kill_cut_counts_for_nothing(tmp_path: Path) -> None:
    """Whole lines before it are read."""
    path = str(tmp_path / "journal")
    note(path, Happened.ASKED, "one", "r-1")
    with Path(path).open("a") as file:
        file.write('{"happened": "comm')
    assert [(entry.happened, entry.key, entry.request_id) for entry in read_journal(path)] == [
        (Happened.ASKED, "one", "r-1")
    ]
