"""Every metadata directory of an environment ends up as a distribution or as a finding."""

import sysconfig
from pathlib import Path

import pytest

from rehydrate.demo.environment import AuditInputError, FindingKind, site_directories
from rehydrate.demo.metadata import MAX_TEXT_LENGTH, MAX_TEXTS, read_environment
from tests.demo.made import MIT_TEXT, install


@pytest.fixture(name="site")
def make_site(tmp_path: Path) -> Path:
    """An empty environment's directory for packages."""
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    return site


def kinds(site: Path) -> list[FindingKind]:
    """Read an environment and return what is wrong with it."""
    return [finding.kind for finding in read_environment(str(site)).findings]


def test_everything_about_the_licence_is_read(site: Path) -> None:
    """Expression, field, licence classifiers and licence files come out; other classifiers do not."""
    install(
        site,
        "some-thing",
        "1.2",
        "License: MIT",
        "License-Expression: MIT",
        "Classifier: License :: OSI Approved :: MIT License",
        "Classifier: Programming Language :: Python",
        "License-File: LICENSE",
        "License-File: AUTHORS",
        files={"licenses/LICENSE": MIT_TEXT, "licenses/AUTHORS": "Me"},
    )
    (found,) = read_environment(str(site)).distributions
    assert (found.name, found.version, found.licence_expression, found.licence_field) == (
        "some-thing",
        "1.2",
        "MIT",
        "MIT",
    )
    assert found.classifiers == ("License :: OSI Approved :: MIT License",)
    assert found.licence_texts == (("licenses/LICENSE", MIT_TEXT),)
    assert found.location == str(site / "some_thing-1.2.dist-info")


def test_an_environment_is_found_by_its_root(site: Path) -> None:
    """The root of an environment and its package directory give the same distributions."""
    install(site, "thing", "1.0")
    root = site.parents[2]
    assert site_directories(str(root)) == (site,)
    assert [d.key for d in read_environment(str(root)).distributions] == [
        d.key for d in read_environment(str(site)).distributions
    ]


def test_a_second_way_to_the_same_directory_is_not_read_twice(site: Path) -> None:
    """`lib64` is often a link to `lib`."""
    install(site, "thing", "1.0")
    root = site.parents[2]
    (root / "lib64").symlink_to(root / "lib", target_is_directory=True)
    assert len(read_environment(str(root)).distributions) == 1
    assert read_environment(str(root)).findings == ()


def test_licence_files_without_a_header_are_found(site: Path) -> None:
    """Older tools put the file beside the metadata and say nothing about it."""
    install(
        site, "thing", "1.0", files={"LICENCE.txt": "one", "COPYING": "two", "NOTICE": "three", "top_level.txt": "x"}
    )
    (found,) = read_environment(str(site)).distributions
    assert found.licence_texts == (("COPYING", "two"), ("LICENCE.txt", "one"))


def test_licences_of_vendored_code_are_left_out(site: Path) -> None:
    """What a distribution carries of others does not speak for it."""
    install(site, "thing", "1.0", files={"licenses/LICENSE": "own", "licenses/thing/_vendor/x/LICENSE": "other"})
    (found,) = read_environment(str(site)).distributions
    assert found.licence_texts == (("licenses/LICENSE", "own"),)


def test_metadata_cannot_name_files_outside(site: Path) -> None:
    """A name that climbs out, or a link to elsewhere, is not followed."""
    (site / "LICENSE").write_text("secret")
    entry = install(
        site, "thing", "1.0", "License-File: ../LICENSE", f"License-File: {site}/LICENSE", "License-File: " + "x" * 9000
    )
    (entry / "LICENSE-link").symlink_to(site / "LICENSE")
    (found,) = read_environment(str(site)).distributions
    assert found.licence_texts == ()


def test_a_long_licence_text_is_cut_and_reported(site: Path) -> None:
    """The message stays small, and the report says that there was more."""
    install(site, "thing", "1.0", files={"LICENSE": "é" * (MAX_TEXT_LENGTH + 1)})
    read = read_environment(str(site))
    assert read.distributions[0].licence_texts == (("LICENSE", "é" * MAX_TEXT_LENGTH),)
    assert [finding.kind for finding in read.findings] == [FindingKind.CUT]


def test_too_many_licence_files_are_reported(site: Path) -> None:
    """Those that are not read are counted."""
    install(site, "thing", "1.0", files={f"licenses/LICENSE-{number:02}": "text" for number in range(MAX_TEXTS + 3)})
    read = read_environment(str(site))
    assert len(read.distributions[0].licence_texts) == MAX_TEXTS
    assert read.findings[0].detail == f"it has {MAX_TEXTS + 3} licence files, of which the first {MAX_TEXTS} are read"


def test_metadata_without_a_name_is_a_finding(site: Path) -> None:
    """The directory is named, and the rest of the environment is read."""
    install(site, "good", "1.0")
    (site / "bad-1.0.dist-info").mkdir()
    (site / "bad-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nVersion: 1.0\n")
    read = read_environment(str(site))
    assert [d.name for d in read.distributions] == ["good"]
    assert [(f.kind, f.subject) for f in read.findings] == [(FindingKind.NO_NAME, "bad-1.0.dist-info")]


def test_metadata_without_a_version_is_audited_with_a_finding(site: Path) -> None:
    """A missing version says nothing about the licence."""
    (site / "bad.dist-info").mkdir()
    (site / "bad.dist-info" / "METADATA").write_text("Name: bad\nLicense-Expression: MIT\n")
    read = read_environment(str(site))
    assert [(d.name, d.version, d.licence_expression) for d in read.distributions] == [("bad", "", "MIT")]
    assert [f.kind for f in read.findings] == [FindingKind.NO_VERSION]


def test_an_empty_metadata_directory_is_a_finding(site: Path) -> None:
    """What an interrupted uninstall leaves behind is reported."""
    (site / "gone-1.0.dist-info").mkdir()
    assert kinds(site) == [FindingKind.NO_METADATA]


def test_undecodable_metadata_is_a_finding(site: Path) -> None:
    """Bytes that are no text do not stop the audit."""
    (site / "bytes-1.0.dist-info").mkdir()
    (site / "bytes-1.0.dist-info" / "METADATA").write_bytes(b"Name: \xff\xfe\n")
    assert kinds(site) == [FindingKind.UNREADABLE]


def test_an_old_metadata_file_is_read(site: Path) -> None:
    """Some system packages have a single file in the place of the directory."""
    (site / "old-0.1.egg-info").write_text("Name: old\nVersion: 0.1\nLicense: GPLv2\n")
    (found,) = read_environment(str(site)).distributions
    assert (found.name, found.licence_field, found.licence_texts) == ("old", "GPLv2", ())


def test_unknown_is_the_same_as_nothing(site: Path) -> None:
    """Old tools wrote UNKNOWN where nothing was given."""
    install(site, "thing", "1.0", "License: UNKNOWN")
    assert read_environment(str(site)).distributions[0].licence_field is None


def test_an_exact_copy_is_audited_once_and_reported(site: Path) -> None:
    """The same name, version and licence metadata twice is one distribution."""
    install(site, "thing", "1.0", "License: MIT")
    install(site, "thing", "1.0", "License: MIT", directory="thing.egg-info")
    (site / "thing.egg-info" / "METADATA").rename(site / "thing.egg-info" / "PKG-INFO")
    assert len(read_environment(str(site)).distributions) == 1
    assert kinds(site) == [FindingKind.COPY]


def test_two_versions_of_one_name_are_both_audited(site: Path) -> None:
    """Nothing is chosen on behalf of the reader."""
    install(site, "thing", "1.0", "License: MIT")
    install(site, "Thing", "2.0", "License: GPL")
    read = read_environment(str(site))
    assert sorted(d.version for d in read.distributions) == ["1.0", "2.0"]
    assert [(f.kind, f.subject) for f in read.findings] == [(FindingKind.DUPLICATE, "thing")]


def test_use_of_the_systems_packages_is_reported(site: Path) -> None:
    """They belong to another environment, which is not looked at unasked."""
    root = site.parents[2]
    (root / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")
    assert kinds(root) == [FindingKind.NOT_FOLLOWED]


@pytest.mark.parametrize("make", ["nothing", "empty directory"])
def test_what_is_no_environment_is_refused(tmp_path: Path, make: str) -> None:
    """A wrong path is an error, not an empty report."""
    path = tmp_path / "x"
    if make == "empty directory":
        path.mkdir()
    with pytest.raises(AuditInputError, match=str(path)):
        read_environment(str(path))


def test_the_running_environment_can_be_read() -> None:
    """The tests' own environment holds at least what runs them, each from its own place."""
    read = read_environment("running")
    assert {"pytest", "msgspec"} <= {d.name for d in read.distributions}
    site = sysconfig.get_path("purelib")
    assert any(d.location.startswith(site) for d in read.distributions)
