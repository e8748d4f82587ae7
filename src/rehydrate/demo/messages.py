"""What travels through the audit: its input, what scanning announces, the question to a person, and progress.

Data only. Everything here but `Progress` is stored with the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rehydrate.demo.licences import Undecided

__all__ = ["AuditRequest", "LicenceQuestion", "Progress", "ProgressKind", "Scanned"]


@dataclass(frozen=True)
class AuditRequest:
    """The input: environments and requirements files to audit, the latter looked up in `installed_in`."""

    sources: tuple[str, ...]
    installed_in: str


@dataclass(frozen=True)
class Scanned:
    """All sources of one request are read; `new` distributions are on their way."""

    new: int


@dataclass(frozen=True)
class LicenceQuestion:
    """The question to a person; `refused` says why an earlier answer to it was not taken."""

    about: Undecided
    refused: str = ""


class ProgressKind(Enum):
    """What a running audit tells."""

    SCANNED = "scanned"
    CLASSIFIED = "classified"


@dataclass(frozen=True)
class Progress:
    """News of a running audit; streamed, never stored. `count` is how many distributions were new in a source."""

    kind: ProgressKind
    subject: str
    detail: str
    count: int = 0
