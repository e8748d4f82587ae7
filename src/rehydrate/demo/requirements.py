"""Requirements files: the names (and versions) that a project asks for, looked up among installed distributions.

Reads the common lines only: names, extras, version clauses, markers, comments and further files. Installs nothing and
asks no index; a line that it cannot read becomes a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rehydrate.demo.environment import (
    AuditInputError,
    Distribution,
    Environment,
    Finding,
    FindingKind,
    Missing,
    normalised_name,
)
from rehydrate.demo.versions import Fit, fit

__all__ = ["Requirement", "look_up", "read_requirements"]

MAX_FILE_SIZE: Final = 1_000_000

_LINE: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*"
    r"(?:\[[^\]]*\])?\s*"
    r"(?:@\s*(?P<url>\S+)|\(?(?P<clauses>[^;()@]*)\)?)\s*"
    r"(?:;\s*(?P<marker>.*))?$"
)
_CLAUSE: Final = re.compile(r"^\s*(===|==|~=|>=|<=|!=|<|>)\s*([^\s,]+)\s*$")
_COMMENT: Final = re.compile(r"(^|\s)#.*$")
_FURTHER_FILE: Final = re.compile(r"^(?:-r|--requirement)[\s=]+(?P<path>\S.*)$")
_OPTION_BEHIND: Final = re.compile(r"\s--?[a-z][\w-]*.*$")
_NOT_PACKAGES: Final = re.compile(r"^(?:-c|-i|-f|--(?!requirement\b)(?!editable\b)[a-z-]+)\b")


@dataclass(frozen=True)
class Requirement:
    """One line that asks for a distribution; `clauses` are pairs of operator and version."""

    name: str
    text: str
    clauses: tuple[tuple[str, str], ...]


def read_requirements(path: Path) -> tuple[tuple[Requirement, ...], tuple[Finding, ...]]:
    """Read a requirements file and those that it names.

    Raises `AuditInputError` if a file cannot be read or has no line that asks for a distribution.
    """
    requirements: list[Requirement] = []
    findings: list[Finding] = []
    _read_into(path, requirements, findings, opened=set())
    if findings and not requirements:
        raise AuditInputError(f"{path}: not a requirements file (line {findings[0].subject!r} names no distribution)")
    return tuple(requirements), tuple(findings)


def look_up(path: Path, installed: Environment) -> Environment:
    """Return what of a requirements file is installed in an environment, and what is missing there."""
    requirements, unread = read_requirements(path)
    source = str(path)
    by_name: dict[str, list[Distribution]] = {}
    for distribution in installed.distributions:
        by_name.setdefault(normalised_name(distribution.name), []).append(distribution)
    found: dict[str, Distribution] = {}
    missing: list[Missing] = []
    findings = list(unread)
    for requirement in requirements:
        candidates = by_name.get(normalised_name(requirement.name), [])
        fits = {each.key: _fit(requirement, each) for each in candidates}
        taken = [each for each in candidates if fits[each.key] is not Fit.NO]
        if not taken:
            missing.append(Missing(requirement.name, requirement.text, _why_missing(candidates, installed), source))
        for each in taken:
            found.setdefault(each.key, replace(each, source=source))
            if fits[each.key] is Fit.UNCLEAR:
                detail = f"whether {each.version} satisfies it is not clear; it is audited"
                findings.append(Finding(FindingKind.UNCLEAR_VERSION, requirement.text, detail, source))
    return Environment(source, tuple(found.values()), tuple(missing), tuple(findings))


def _fit(requirement: Requirement, distribution: Distribution) -> Fit:
    return fit(distribution.version, requirement.clauses)


def _why_missing(candidates: list[Distribution], installed: Environment) -> str:
    if not candidates:
        return f"not installed in {installed.source}"
    versions = ", ".join(each.version or "no version" for each in candidates)
    return f"installed in {installed.source} is {versions}"


def _read_into(path: Path, requirements: list[Requirement], findings: list[Finding], opened: set[Path]) -> None:
    # Files may name each other; each is read once.
    if path.resolve() in opened:
        return
    opened.add(path.resolve())
    for line in _logical_lines(_text_of(path)):
        further = _FURTHER_FILE.match(line)
        if further:
            _read_into(path.parent / further["path"].strip("'\""), requirements, findings, opened)
            continue
        if _NOT_PACKAGES.match(line):
            continue
        requirement = _requirement(line)
        if requirement is None:
            detail = "the line does not name a distribution; what it installs is not looked at"
            findings.append(Finding(FindingKind.UNREADABLE_LINE, line[:120], detail, str(path)))
        else:
            requirements.append(requirement)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        raise AuditInputError(f"{path}: {error.strerror or error}") from error
    if len(data) > MAX_FILE_SIZE:
        raise AuditInputError(f"{path}: larger than {MAX_FILE_SIZE:,} bytes, so it is no requirements file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AuditInputError(f"{path}: not a text file in UTF-8") from error


def _logical_lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    for raw in joined.splitlines():
        line = _COMMENT.sub("", raw).strip()
        if line:
            yield line


def _requirement(line: str) -> Requirement | None:
    text = _OPTION_BEHIND.sub("", line).strip()
    match = _LINE.match(text)
    if match is None:
        return None
    # A direct reference names its distribution, too; which version lies there is not known.
    parts = [part for part in (match["clauses"] or "").split(",") if part.strip()]
    clauses = [_CLAUSE.match(part) for part in parts]
    if not all(clauses):
        return None
    pairs = tuple((clause[1], clause[2]) for clause in clauses if clause)
    return Requirement(match["name"], " ".join(text.split()), pairs)
