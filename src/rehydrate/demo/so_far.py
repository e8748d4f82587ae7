"""The report of an audit that is not complete, read from a checkpoint's state in plain values; nothing runs for it.

Rows come without their evidence, which the report does not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rehydrate import WorkflowCheckpoint
from rehydrate.demo.environment import Finding, FindingKind, Missing
from rehydrate.demo.families import Family
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict
from rehydrate.demo.report import AuditReport, Sighting

__all__ = ["report_so_far"]

Plain = dict[str, Any]
"""One object of the state in plain values; members of an Enum are objects with a `name`."""


def report_so_far(checkpoint: WorkflowCheckpoint, waiting: tuple[Undecided, ...]) -> AuditReport:
    """Return what a run has found up to a checkpoint; `waiting` are the distributions that it asks about."""
    state = cast("Mapping[str, list[Any]]", checkpoint.state)
    return AuditReport(
        sources=tuple(state.get("sources", [])),
        sightings=tuple(Sighting(each["key"], each["source"]) for each in state.get("sightings", [])),
        rows=tuple(_verdict(each) for each in state.get("rows", [])),
        waiting=waiting,
        missing=tuple(_missing(each) for each in state.get("missing", [])),
        findings=tuple(_finding(each) for each in state.get("findings", [])),
    )


def _verdict(plain: Plain) -> Verdict:
    return Verdict(
        key=plain["key"],
        name=plain["name"],
        version=plain["version"],
        source=plain["source"],
        licence=plain["licence"],
        family=Family[plain["family"]["name"]],
        decided_by=DecidedBy[plain["decided_by"]["name"]],
        flags=tuple(plain["flags"]),
    )


def _missing(plain: Plain) -> Missing:
    return Missing(plain["name"], plain["requirement"], plain["reason"], plain["source"])


def _finding(plain: Plain) -> Finding:
    return Finding(FindingKind[plain["kind"]["name"]], plain["subject"], plain["detail"], plain["source"])
