"""The report is the same text for the same findings and hides nothing."""

import random

from rehydrate.demo.environment import Finding, FindingKind, Missing
from rehydrate.demo.families import Family
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict
from rehydrate.demo.report import AuditReport, Sighting, render


def row(name: str, licence: str, family: Family, *flags: str, by: DecidedBy = DecidedBy.METADATA) -> Verdict:
    """Make one row of version 1.0 from the environment `env`."""
    return Verdict(f"{name}==1.0", name, "1.0", "env", licence, family, by, flags)


ROWS = (
    row("beta", "MIT", Family.PERMISSIVE),
    row("Alpha", "BSD-*", Family.PERMISSIVE, "BSD-* leaves open which of its forms is meant"),
    row("gamma", "MPL-2.0", Family.WEAK_COPYLEFT, by=DecidedBy.PERSON),
)
REPORT = AuditReport(
    sources=("env", "requirements.txt"),
    sightings=(
        Sighting("beta==1.0", "requirements.txt"),
        Sighting("beta==1.0", "env"),
        Sighting("Alpha==1.0", "env"),
        Sighting("gamma==1.0", "env"),
    ),
    rows=ROWS,
    waiting=(Undecided("delta==2.0", "delta", "2.0", "env", "env/delta", ("nothing says", "no file")),),
    missing=(Missing("absent", "absent>=1", "not installed in env", "requirements.txt"),),
    findings=(Finding(FindingKind.NO_NAME, "x.dist-info", "the metadata has no Name", "env"),),
)

TEXT = """\
Licence audit
  [1] env
  [2] requirements.txt

4 distributions, 2 decided from metadata (1 with a note), 1 by a person, 1 waiting for a person, 1 missing

permissive (2)
  distribution  version  licence  decided by  from
  Alpha         1.0      BSD-*    metadata    1
      note: BSD-* leaves open which of its forms is meant
  beta          1.0      MIT      metadata    1,2

weak copyleft (1)
  distribution  version  licence  decided by  from
  gamma         1.0      MPL-2.0  person      1

waiting for a person (1)
  delta 2.0: nothing says; no file

required but missing (1)
  [2] absent>=1: not installed in env

findings (1)
  [1] no name: x.dist-info: the metadata has no Name
"""


def test_the_report_shows_everything() -> None:
    """Rows stand by family, with notes, sources and who decided; then what waits, is missing or was found."""
    assert render(REPORT) == TEXT


def test_the_order_of_arrival_does_not_matter() -> None:
    """Any order of rows and sightings gives the same text."""
    chance = random.Random(7)
    for _ in range(10):
        rows, sightings = list(REPORT.rows), list(REPORT.sightings)
        chance.shuffle(rows)
        chance.shuffle(sightings)
        shuffled = AuditReport(
            REPORT.sources, tuple(sightings), tuple(rows), REPORT.waiting, REPORT.missing, REPORT.findings
        )
        assert render(shuffled) == TEXT


def test_a_row_that_is_there_twice_is_shown_twice() -> None:
    """The report does not hide what must not happen."""
    doubled = AuditReport(("env",), (), (ROWS[0], ROWS[0]))
    assert render(doubled).count("  beta  ") == 2


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Metadata is written by strangers."""
    hostile = AuditReport(("env",), (), (row("evil\x1b[2J\nfake", "MIT\r", Family.PERMISSIVE),))
    text = render(hostile)
    assert "\x1b" not in text
    assert "\r" not in text
    assert r"evil\x1b[2J\nfake" in text


def test_an_empty_audit_says_so() -> None:
    """Nothing found is a report, too."""
    assert render(AuditReport(("env",))) == (
        "Licence audit\n  [1] env\n\n"
        "0 distributions, 0 decided from metadata (0 with a note), 0 by a person, 0 waiting for a person, 0 missing\n"
    )
