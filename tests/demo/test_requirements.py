"""Requirements files are looked up among what is installed; what is not there is missing."""

from pathlib import Path

import pytest

from rehydrate.demo.environment import AuditInputError, FindingKind
from rehydrate.demo.requirements import read_requirements
from rehydrate.demo.sources import read_source
from rehydrate.demo.versions import Fit, fit
from tests.demo.made import install


def test_lines_of_all_usual_forms_are_read(tmp_path: Path) -> None:
    """Names come out, with their version clauses; comments, options, markers and extras do not."""
    (tmp_path / "more.txt").write_text("-r main.txt\nmore\n")
    (tmp_path / "main.txt").write_text(
        "# comment\n"
        "plain\n"
        "Pinned == 1.0  # why\n"
        "extra[a,b]>=1,<2\n"
        'marked ; python_version < "3.12"\n'
        "hashed==2.0 \\\n    --hash=sha256:00\n"
        "direct @ https://example.org/direct.whl\n"
        "--index-url https://example.org\n"
        "-c constraints.txt\n"
        "-r more.txt\n"
    )
    found, findings = read_requirements(tmp_path / "main.txt")
    assert [(each.name, each.clauses) for each in found] == [
        ("plain", ()),
        ("Pinned", (("==", "1.0"),)),
        ("extra", ((">=", "1"), ("<", "2"))),
        ("marked", ()),
        ("hashed", (("==", "2.0"),)),
        ("direct", ()),
        ("more", ()),
    ]
    assert findings == ()


def test_a_line_without_a_name_is_a_finding(tmp_path: Path) -> None:
    """What an editable install or an address brings is not known, and the report says so."""
    path = tmp_path / "r.txt"
    path.write_text("good\n-e ./src\nhttps://example.org/x.whl\n./local\n")
    found, findings = read_requirements(path)
    assert [each.name for each in found] == ["good"]
    assert [(each.kind, each.subject) for each in findings] == [
        (FindingKind.UNREADABLE_LINE, "-e ./src"),
        (FindingKind.UNREADABLE_LINE, "https://example.org/x.whl"),
        (FindingKind.UNREADABLE_LINE, "./local"),
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x7fELF not a list of names !\n", b"x = {1: 2}\n"])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that asks for nothing that can be read is an error."""
    path = tmp_path / "r.txt"
    path.write_bytes(content)
    with pytest.raises(AuditInputError, match=r"r\.txt"):
        read_requirements(path)


def test_a_further_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The error names the file that is missing."""
    path = tmp_path / "r.txt"
    path.write_text("-r other.txt\n")
    with pytest.raises(AuditInputError, match=r"other\.txt"):
        read_requirements(path)


def test_installed_and_missing_are_told_apart(tmp_path: Path) -> None:
    """A distribution counts if name and version fit; each other line says what was found in its place."""
    site = tmp_path / "site-packages"
    install(site, "Some.Thing", "1.5", "License: MIT")
    install(site, "pinned", "2.0")
    install(site, "unasked", "1.0")
    path = tmp_path / "r.txt"
    path.write_text("some_thing~=1.2\npinned==1.0\nabsent\n")
    read = read_source(str(path), installed_in=str(site))
    assert [(d.name, d.source) for d in read.distributions] == [("Some.Thing", str(path))]
    assert [(m.name, m.requirement, m.reason) for m in read.missing] == [
        ("pinned", "pinned==1.0", f"installed in {site} is 2.0"),
        ("absent", "absent", f"not installed in {site}"),
    ]


def test_the_same_distribution_has_the_same_key_from_both_kinds_of_source(tmp_path: Path) -> None:
    """So an audit that knows the environment does not ask again for the file."""
    site = tmp_path / "site-packages"
    install(site, "thing", "1.0", "License: MIT")
    (tmp_path / "r.txt").write_text("thing\n")
    (from_file,) = read_source(str(tmp_path / "r.txt"), installed_in=str(site)).distributions
    (from_environment,) = read_source(str(site)).distributions
    assert from_file.key == from_environment.key


def test_a_version_that_cannot_be_compared_is_audited_with_a_finding(tmp_path: Path) -> None:
    """Nothing is guessed about pre-releases."""
    site = tmp_path / "site-packages"
    install(site, "thing", "2.0rc1")
    (tmp_path / "r.txt").write_text("thing<2\n")
    read = read_source(str(tmp_path / "r.txt"), installed_in=str(site))
    assert [d.version for d in read.distributions] == ["2.0rc1"]
    assert [f.kind for f in read.findings] == [FindingKind.UNCLEAR_VERSION]


@pytest.mark.parametrize(
    ("version", "operator", "wanted", "expected"),
    [
        ("1.0", "==", "1.0.0", Fit.YES),
        ("1.0", "==", "1.1", Fit.NO),
        ("1.10", ">", "1.9", Fit.YES),
        ("1.4.5", "==", "1.4.*", Fit.YES),
        ("1.5", "!=", "1.4.*", Fit.YES),
        ("1.5", ">=", "1.*", Fit.UNCLEAR),
        ("1.9", "~=", "1.4", Fit.YES),
        ("2.0", "~=", "1.4", Fit.NO),
        ("1.4.9", "~=", "1.4.2", Fit.YES),
        ("1.5.0", "~=", "1.4.2", Fit.NO),
        ("2.0", "<", "2", Fit.NO),
        ("2.0", "<=", "2", Fit.YES),
        ("1.0rc1", "==", "1.0RC1", Fit.YES),
        ("1.0rc1", "==", "1.0", Fit.UNCLEAR),
        ("", ">=", "1", Fit.UNCLEAR),
    ],
)
def test_versions_are_compared_by_number(version: str, operator: str, wanted: str, expected: Fit) -> None:
    """Plain releases compare as numbers; anything else is unclear rather than guessed."""
    assert fit(version, [(operator, wanted)]) is expected
