"""The report of an audit that is not complete, read from a checkpoint's state in plain values; nothing runs for it.

Rows come without their evidence, which the report does not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rehydrate import WorkflowCheckpoint
from rehydrate.demo.environment import Finding, FindingKind, Missing
from rehydrate.demo.families import Family
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict
from rehydrate.demo.report import AuditReport, Sighting

__all__ = ["report_so_far"]

Plain = Mapping[str, object]
"""One object of the state in plain values; members of an Enum are objects with a `name`."""


def report_so_far(checkpoint: WorkflowCheckpoint, waiting: tuple[Undecided, ...]) -> AuditReport:
    """Return what a run has found up to a checkpoint; `waiting` are the distributions that it asks about."""
    state = cast("Mapping[str, list[Plain]]", checkpoint.state)
    return AuditReport(
        sources=tuple(map(str, state.get("sources", []))),
        sightings=tuple(Sighting(*_texts(each, "key", "source")) for each in state.get("sightings", [])),
        rows=tuple(map(_verdict, state.get("rows", []))),
        waiting=waiting,
        missing=tuple(
            Missing(*_texts(each, "name", "requirement", "reason", "source")) for each in state.get("missing", [])
        ),
        findings=tuple(map(_finding, state.get("findings", []))),
    )


def _verdict(plain: Plain) -> Verdict:
    return Verdict(
        *_texts(plain, "key", "name", "version", "source", "licence"),
        family=Family[_member(plain["family"])],
        decided_by=DecidedBy[_member(plain["decided_by"])],
        flags=tuple(cast("list[str]", plain["flags"])),
    )


def _finding(plain: Plain) -> Finding:
    return Finding(FindingKind[_member(plain["kind"])], *_texts(plain, "subject", "detail", "source"))


def _texts(plain: Plain, *names: str) -> tuple[str, ...]:
    return tuple(str(plain[name]) for name in names)


def _member(value: object) -> str:
    return str(cast("Plain", value)["name"])
