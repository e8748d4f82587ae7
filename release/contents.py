"""What is in a wheel and a source distribution, and what is wrong with it, as functions over names and bytes.

Builds nothing and installs nothing.
"""

import base64
import csv
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.declared import Declared

#: Beside the package in a wheel.
_BESIDE = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")


def of_wheel(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def of_sdist(sdist: Path) -> dict[str, bytes]:
    """Return the files of a source distribution, without the folder around them."""
    with tarfile.open(sdist) as opened:
        files = [member for member in opened.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: opened.extractfile(member).read() for member in files}


def wrong_in_wheel(files: Mapping[str, bytes], project: Declared, tracked: Iterable[str]) -> list[str]:
    """Say what is wrong: it must hold the tracked files of the package and its metadata, whole, and no other."""
    info = f"{project.name}-{project.version}.dist-info"
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    wrong = _differences("the wheel", files, package | {f"{info}/{name}" for name in _BESIDE})
    recorded = _recorded(files.get(f"{info}/RECORD", b"").decode())
    wrong += [
        f"the wheel: its RECORD says something else of {name}"
        for name, body in files.items()
        if name != f"{info}/RECORD" and recorded.get(name) != (_digest(body), str(len(body)))
    ]
    if f"{project.name}/py.typed" not in files:
        wrong.append("the wheel: no py.typed, so type checkers would not read our annotations")
    return wrong + wrong_in_metadata("the wheel", files.get(f"{info}/METADATA", b""), project)


def wrong_in_sdist(files: Mapping[str, bytes], project: Declared, tracked: Iterable[str]) -> list[str]:
    """Say what is wrong: it must hold what git tracks and its metadata, so that all tests can be run from it."""
    wrong = _differences("the sdist", files, {*tracked, "PKG-INFO"})
    return wrong + wrong_in_metadata("the sdist", files.get("PKG-INFO", b""), project)


def wrong_in_metadata(where: str, text: bytes, project: Declared) -> list[str]:
    """Say where metadata are not valid, or not what pyproject.toml says."""
    try:
        told = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [f"{where}: metadata: {error}" for error in group.exceptions]
    pairs = {
        "name": (told.name, project.name),
        "version": (str(told.version), project.version),
        "requires-python": (str(told.requires_python), project.requires_python),
        "extras": (sorted(told.provides_extra or []), sorted(map(canonicalize_name, project.extras))),
        "licence": (told.license_expression, "MIT"),
        "licence files": (told.license_files, ["LICENSE"]),
        "type of the description": (told.description_content_type, "text/markdown"),
        "start of the description": ((told.description or "")[: len(project.name) + 2], f"# {project.name}"),
    }
    wrong = [f"{where}: {what} is {found!r}, not {due!r}" for what, (found, due) in pairs.items() if found != due]
    # An extra that names others of ours is written out in the metadata.
    told_needs = set(map(_shown, told.requires_dist or []))
    return wrong + _differences(f"{where}: requirements", told_needs, set(map(_shown, project.all_needs())))


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """Name the files in which two archives differ, so that a failed comparison says where to look."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _differences(where: str, files: Iterable[str], due: set[str]) -> list[str]:
    found = set(files)
    missing = [f"{where}: {name} is missing" for name in sorted(due - found)]
    return missing + [f"{where}: {name} does not belong there" for name in sorted(found - due)]


def _shown(need: Requirement) -> str:
    return f"{canonicalize_name(need.name)}{need.specifier}"


def _recorded(text: str) -> dict[str, tuple[str, str]]:
    return {row[0]: (row[1], row[2]) for row in csv.reader(io.StringIO(text))}


def _digest(body: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
