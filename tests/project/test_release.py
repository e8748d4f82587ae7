"""What `make release` checks, as far as it costs nothing: bounds, programs for extras, and that the checks can fail."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import rehydrate
from release.advisories import Advisories
from release.audit import answered
from release.building import tracked_files
from release.contents import differing, wrong_in_sdist, wrong_in_wheel
from release.declared import declared, lower_bound, lowest
from release.environments import FailedError
from release.extras import PROGRAMS, program_of
from release.lowest import left_out, needed_together
from release.pages import looked_up
from tests.project.source import ROOT

PROJECT = """
[build-system]
requires = ["hatchling>=1.26"]
[project]
name = "tiny"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["Core>=0.19"]
classifiers = ["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.11"]
[project.optional-dependencies]
fast-path = ["a.b[c]>=2.10, <4; python_version < '3.14'"]
dev = ["tiny[fast-path]", "core>=0.20", "tool>=9"]
"""
TINY = declared(PROJECT)
METADATA = b"""Metadata-Version: 2.4
Name: tiny
Version: 1.0
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11
Requires-Dist: core>=0.19
Provides-Extra: dev
Requires-Dist: a-b[c]<4,>=2.10; (python_version < '3.14') and extra == 'dev'
Requires-Dist: core>=0.20; extra == 'dev'
Requires-Dist: tool>=9; extra == 'dev'
Provides-Extra: fast-path
Requires-Dist: a-b[c]<4,>=2.10; (python_version < '3.14') and extra == 'fast-path'
Description-Content-Type: text/markdown

# tiny
"""
INFO = "tiny-1.0.dist-info"
TRACKED = ["README.md", "src/tiny/__init__.py", "src/tiny/py.typed", "src/tiny/sql/1.sql", "tests/test_a.py"]


def test_every_extra_for_users_has_a_program_that_uses_it() -> None:
    """`make extras` tries each extra of pyproject.toml by a program of that name, and there is no program for none."""
    programs = {program_of(extra).name for extra in (None, *declared().offered)}
    assert {file.name for file in PROGRAMS.glob("use_*.py")} == programs


def test_everything_that_is_needed_has_a_lower_bound() -> None:
    """`make lowest` can install the lowest release of each requirement."""
    pins = lowest(declared().all_needs())
    assert len(pins) >= len({re.split("[=;]", pin)[0] for pin in pins}) > 0
    assert all("==" in pin for pin in pins)


def test_nothing_that_users_install_has_an_upper_bound_without_a_reason() -> None:
    """A cap keeps users from a newer release of what they share with us; those that are there are listed here."""
    needs = [*declared().needs, *(need for extra in declared().offered for need in declared().extras[extra])]
    capped = {need.name for need in needs if any(part.operator not in {">=", "!="} for part in need.specifier)}
    assert capped == set()


def test_extras_that_are_tested_apart_are_there_with_their_tests() -> None:
    """What `make lowest` leaves out of the common environment exists, so that nothing is left out by a slip."""
    apart = declared().apart
    assert set(apart) <= set(declared().offered)
    assert [test for tests in apart.values() for test in tests if not (ROOT / test.partition("::")[0]).exists()] == []


def test_an_extra_that_stands_apart_keeps_nothing_else_from_its_lowest_release() -> None:
    """Its needs, and other uses of what it brings, are not in the common environment; its tests are left out there."""
    project = declared(PROJECT + "[tool.release.apart]\nfast-path = ['t/a.py', 't/b.py::c']\n")
    assert [str(need) for need in needed_together(project)] == ["core>=0.20", "tool>=9"]
    assert left_out(project) == ["--ignore=t/a.py", "--deselect=t/b.py::c"]


def test_the_version_is_the_same_everywhere() -> None:
    """The package says the version that its distribution bears."""
    assert rehydrate.__version__ == declared().version


def test_the_sdist_takes_each_file_and_folder_of_the_checkout() -> None:
    """What lies at the top of the checkout is named in pyproject.toml, or hatchling takes it by itself."""
    try:
        there = {name.partition("/")[0] for name in tracked_files()}
    except FailedError:
        pytest.skip("an unpacked sdist has what it has")
    named = set(re.findall(r'"/([\w.-]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert there - named == {".gitignore", "LICENSE", "README.md", "pyproject.toml"}


def test_the_lowest_release_of_each_need_is_pinned_once() -> None:
    """The higher of two bounds counts, a marker stays, and the project itself is left out."""
    assert lowest(TINY.all_needs()) == ['a-b==2.10; python_version < "3.14"', "core==0.20", "tool==9"]


@pytest.mark.parametrize("need", ["core", "core<2", "core!=1.0", "core==2.*"])
def test_a_need_without_a_lower_bound_is_refused(need: str) -> None:
    """What cannot be pinned is an error that says what to write."""
    (found,) = declared(PROJECT.replace("Core>=0.19", need)).needs
    with pytest.raises(ValueError, match="write core>=X"):
        lower_bound(found)


def wheel_of(**changed: bytes | None) -> dict[str, bytes]:
    """Return a wheel that is right but for files that are changed, or left out where they are `None`."""
    files = {name.removeprefix("src/"): b"x" for name in TRACKED if name.startswith("src/")}
    files |= {f"{INFO}/{name}": b"y" for name in ("WHEEL", "entry_points.txt", "licenses/LICENSE")}
    files[f"{INFO}/METADATA"] = METADATA
    files = {name: body for name, body in {**files, **changed}.items() if body is not None}
    lines = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip('=')},{len(body)}"
        for name, body in files.items()
    ]
    return {**files, f"{INFO}/RECORD": "\n".join([*lines, f"{INFO}/RECORD,,"]).encode()}


def test_a_wheel_that_is_right_has_nothing_wrong() -> None:
    """The files of the package, the metadata and the record of both are all that is in it."""
    assert wrong_in_wheel(wheel_of(), TINY, TRACKED) == []


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        (wheel_of(**{"tests/test_a.py": b"x"}), "the wheel: tests/test_a.py does not belong there"),
        (wheel_of(**{"tiny/sql/1.sql": None}), "the wheel: tiny/sql/1.sql is missing"),
        (wheel_of(**{f"{INFO}/licenses/LICENSE": None}), f"the wheel: {INFO}/licenses/LICENSE is missing"),
        ({**wheel_of(), "tiny/__init__.py": b"z"}, "the wheel: its RECORD says something else of tiny/__init__.py"),
        (
            wheel_of(**{f"{INFO}/METADATA": METADATA.replace(b">=0.20", b">=0.18")}),
            "the wheel: requirements: core>=0.20 is missing",
        ),
        (
            wheel_of(**{f"{INFO}/METADATA": METADATA.replace(b"Version: 1.0", b"Version: 1.1")}),
            "the wheel: version is '1.1', not '1.0'",
        ),
        (
            wheel_of(**{f"{INFO}/METADATA": METADATA.replace(b"Expression: MIT", b"Expression: M I T")}),
            "the wheel: metadata: 'M I T' is invalid for 'license-expression'",
        ),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said(files: dict[str, bytes], wrong: str) -> None:
    """A file too many, a file too few, other bytes than recorded, and metadata that are not valid or not ours."""
    assert wrong in wrong_in_wheel(files, TINY, TRACKED)


def test_an_sdist_is_what_git_tracks() -> None:
    """A file that was not packed, and one that nobody committed, are named."""
    files = dict.fromkeys(TRACKED, b"x") | {"PKG-INFO": METADATA}
    assert wrong_in_sdist(files, TINY, TRACKED) == []
    del files["tests/test_a.py"]
    assert wrong_in_sdist({**files, "scratch.py": b""}, TINY, TRACKED) == [
        "the sdist: tests/test_a.py is missing",
        "the sdist: scratch.py does not belong there",
    ]


def test_archives_that_differ_are_told_apart_by_their_files() -> None:
    """A build that is not reproducible shows where."""
    assert differing({"a": b"1", "b": b"1"}, {"a": b"1", "b": b"2", "c": b""}) == ["b", "c"]


def test_what_an_audit_did_not_look_up_is_no_good_result() -> None:
    """Packages that a service does not know are told apart from those of which it knows nothing bad."""
    text = (
        '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]},'
        ' {"name": "b", "version": "1", "vulns": []}, {"name": "c", "skip_reason": "not found"}]}'
    )
    assert answered(text) == (["a 1: X-1, fixed in 2"], ["not found"])
    assert answered("Traceback") is None


ADVISORY = """
id: PYSEC-1
modified: 2026-05-01T00:00:00Z
affected:
- package: {ecosystem: PyPI, name: Some.Package}
  ranges:
  - type: ECOSYSTEM
    events: [{introduced: '0'}, {fixed: '1.2'}, {introduced: '2.0'}, {last_affected: '2.5'}]
  versions: [3.0b1]
"""


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.1", 1), ("1.1", 1), ("1.2", 0), ("1.9", 0), ("2.0", 1), ("2.5", 1), ("2.5.1", 0), ("3.0b1", 1), ("3.0", 0)],
)
def test_an_advisory_counts_in_its_ranges_and_for_its_versions(tmp_path: Path, version: str, known: int) -> None:
    """A release is affected from `introduced` to before `fixed`, up to `last_affected`, and where it is listed."""
    (tmp_path / "vulns" / "some-package").mkdir(parents=True)
    (tmp_path / "vulns" / "some-package" / "PYSEC-1.yaml").write_text(ADVISORY)
    read = Advisories.read(tmp_path)
    assert (read.of("some_package", version), read.youngest) == (["PYSEC-1"] * known, "2026-05-01")
    assert read.of("another", version) == []


def test_a_folder_without_advisories_is_no_clean_audit(tmp_path: Path) -> None:
    """A wrong path is an error and not an audit that found nothing."""
    with pytest.raises(ValueError, match="no advisories"):
        Advisories.read(tmp_path)


PAGES = {
    "clean": {"info": {"version": "2.0"}, "vulnerabilities": []},
    "known": {"info": {"version": "1.0"}, "vulnerabilities": [{"id": "X-1"}, {"id": "X-2", "withdrawn": "2026-01-01"}]},
    "older": {"info": {"version": "3.0"}, "vulnerabilities": []},
    "silent": {"info": {"version": "1.0"}},
}


class Pages(BaseHTTPRequestHandler):
    """An index with a page for each of `PAGES`."""

    def do_GET(self) -> None:
        page = PAGES.get(self.path.removesuffix("/json").removeprefix("/"))
        self.send_response(404 if page is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(page).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_page_of_the_index_answers_for_the_newest_release_only() -> None:
    """What is known is told, and of an older release, a page without the field and no page nothing was found out."""
    there = {"clean": "2", "known": "1.0", "older": "2.9", "silent": "1.0", "nowhere": "1.0"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        found, unknown = looked_up(there, f"http://127.0.0.1:{index.server_port}")
        index.shutdown()
    assert found == ["known 1.0: X-1"]
    assert unknown == [
        "nowhere 1.0: HTTPError: HTTP Error 404: Not Found",
        "older 2.9: the page speaks of 3.0 only",
        "silent 1.0: KeyError: 'vulnerabilities'",
    ]
