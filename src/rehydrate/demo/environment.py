"""What is installed where: the distributions of an environment and everything about it that could not be read.

Reads files only; nothing of the environment is imported or run. A part that cannot be read becomes a finding, never a
gap: every metadata directory ends up in the result.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = [
    "RUNNING",
    "AuditInputError",
    "Distribution",
    "Environment",
    "Finding",
    "FindingKind",
    "Missing",
    "normalised_name",
    "site_directories",
]

RUNNING: Final = "running"
"""Stands for the environment of the interpreter that runs the audit, where a path is asked for."""

_SITE_PATTERNS: Final = (
    "lib/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib64/python3*/site-packages",
    "local/lib/python3*/site-packages",
    "local/lib/python3*/dist-packages",
    "Lib/site-packages",
)


class AuditInputError(Exception):
    """What was given to audit cannot be audited; the text is one line."""


class FindingKind(Enum):
    """What is wrong with a part of an environment."""

    NO_NAME = "no name"
    NO_VERSION = "no version"
    NO_METADATA = "no metadata"
    UNREADABLE = "unreadable"
    COPY = "exact copy"
    DUPLICATE = "installed twice"
    CUT = "read in part"
    NOT_FOLLOWED = "not followed"
    UNREADABLE_LINE = "unreadable line"
    UNCLEAR_VERSION = "unclear version"


@dataclass(frozen=True)
class Finding:
    """Something about an environment that a person should know; the audit went on without it."""

    kind: FindingKind
    subject: str
    detail: str
    source: str


@dataclass(frozen=True)
class Missing:
    """A requirement that is not installed where it was looked for."""

    name: str
    requirement: str
    reason: str
    source: str


@dataclass(frozen=True)
class Distribution:
    """What the metadata of one installed distribution says about its licence.

    `classifiers` are those that begin with `License ::`; `licence_texts` are pairs of file name and text, both cut to a
    fixed size. `source` is the environment as the caller named it, `location` the metadata directory.
    """

    name: str
    version: str
    licence_expression: str | None
    licence_field: str | None
    classifiers: tuple[str, ...]
    licence_texts: tuple[tuple[str, str], ...]
    source: str
    location: str

    @property
    def key(self) -> str:
        """Same name, version and licence metadata: same key, wherever it is installed."""
        said = (self.licence_expression, self.licence_field, self.classifiers, self.licence_texts)
        return f"{normalised_name(self.name)}=={self.version}#{sha256(json.dumps(said).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Environment:
    """All that was found under one path."""

    source: str
    distributions: tuple[Distribution, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()


def normalised_name(name: str) -> str:
    """Return a distribution name as packaging tools compare it: lower case, runs of `-_.` as one hyphen."""
    return re.sub(r"[-_.]+", "-", name).lower()


def site_directories(source: str) -> tuple[Path, ...]:
    """Return the directories of an environment that hold metadata, in search order.

    Takes `RUNNING`, the root of a virtual environment or installation, or one such directory itself. Raises
    `AuditInputError` if there is nothing of the kind.
    """
    if source == RUNNING:
        return _without_repeats(Path(entry) for entry in sys.path)
    root = Path(source)
    if not root.exists():
        raise AuditInputError(f"{source}: no such file or directory")
    if not root.is_dir():
        raise AuditInputError(f"{source}: not a directory")
    try:
        if root.name in {"site-packages", "dist-packages"} or metadata_entries(root):
            return (root,)
    except OSError as error:
        raise AuditInputError(f"{source}: {error.strerror or error}") from error
    found = _without_repeats(path for pattern in _SITE_PATTERNS for path in sorted(root.glob(pattern)))
    if not found:
        raise AuditInputError(f"{source}: neither a Python environment nor a directory with installed distributions")
    return found


def metadata_entries(directory: Path) -> tuple[Path, ...]:
    """Return what in a directory describes an installed distribution, sorted by name."""
    if directory.suffix.lower() == ".egg":
        return tuple(entry for entry in directory.iterdir() if entry.name.lower() == "egg-info")
    found = (entry for entry in directory.iterdir() if entry.suffix.lower() in {".dist-info", ".egg-info"})
    return tuple(sorted(found, key=lambda entry: entry.name))


def _without_repeats(paths: Iterable[Path]) -> tuple[Path, ...]:
    # "lib64" is often a link to "lib", and a search path may name a directory twice.
    kept: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            kept.setdefault(path.resolve(), path)
    return tuple(kept.values())
