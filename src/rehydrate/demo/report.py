"""The report of an audit as plain text: the same rows give the same text, in whatever order they came.

Formats only; it decides nothing about licences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rehydrate.demo.environment import Finding, Missing, normalised_name
from rehydrate.demo.families import Family
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict
from rehydrate.model.printable import printable

__all__ = ["AuditReport", "Sighting", "render"]

_MAX_CELL: Final = 48
_HEAD: Final = ("distribution", "version", "licence", "decided by", "from")


@dataclass(frozen=True)
class Sighting:
    """A distribution was seen in a source; one that is seen twice is still classified once."""

    key: str
    source: str


@dataclass(frozen=True)
class AuditReport:
    """All that an audit has found so far; `waiting` are distributions whose question is open."""

    sources: tuple[str, ...]
    sightings: tuple[Sighting, ...] = ()
    rows: tuple[Verdict, ...] = ()
    waiting: tuple[Undecided, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()


def render(report: AuditReport) -> str:
    """Return the report as text that ends with a newline."""
    numbers = {source: str(number) for number, source in enumerate(report.sources, start=1)}
    seen_in = _seen_in(report.sightings, numbers)
    rows = [(row, _cells(row, seen_in.get(row.key, ""))) for row in sorted(report.rows, key=_order)]
    widths = [max(map(len, column)) for column in zip(_HEAD, *(cells for _, cells in rows), strict=True)]
    lines = ["Licence audit", *(f"  [{number}] {printable(source)}" for source, number in numbers.items()), ""]
    lines += [_summary(report), ""]
    for family in Family:
        members = [(row, cells) for row, cells in rows if row.family is family]
        if members:
            lines += [f"{family.value} ({len(members)})", _line(_HEAD, widths)]
            lines += [text for row, cells in members for text in _row_lines(row, cells, widths)]
            lines.append("")
    lines += _section("waiting for a person", (_waiting_line(each) for each in sorted(report.waiting, key=_order)))
    lines += _section("required but missing", sorted(_missing_line(each, numbers) for each in report.missing))
    lines += _section("findings", sorted(_finding_line(each, numbers) for each in report.findings))
    return "\n".join(lines).rstrip("\n") + "\n"


def _summary(report: AuditReport) -> str:
    by_person = sum(row.decided_by is DecidedBy.PERSON for row in report.rows)
    flagged = sum(bool(row.flags) for row in report.rows)
    parts = [
        f"{len(report.rows) + len(report.waiting)} distributions",
        f"{len(report.rows) - by_person} decided from metadata ({flagged} with a note)",
        f"{by_person} by a person",
        f"{len(report.waiting)} waiting for a person",
        f"{len(report.missing)} missing",
    ]
    return ", ".join(parts)


def _order(row: Verdict | Undecided) -> tuple[str, str, str]:
    return normalised_name(row.name), row.version, row.key


def _seen_in(sightings: Iterable[Sighting], numbers: dict[str, str]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for sighting in sightings:
        found.setdefault(sighting.key, set()).add(numbers.get(sighting.source, "?"))
    return {key: ",".join(sorted(marks, key=lambda mark: (len(mark), mark))) for key, marks in found.items()}


def _cells(row: Verdict, seen_in: str) -> tuple[str, ...]:
    values = (row.name, row.version or "-", row.licence, row.decided_by.value, seen_in or "-")
    return tuple(_short(printable(value)) for value in values)


def _row_lines(row: Verdict, cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    yield _line(cells, widths)
    for flag in row.flags:
        yield f"      note: {printable(flag)}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _waiting_line(each: Undecided) -> str:
    return f"{printable(each.name)} {printable(each.version) or '-'}: {printable('; '.join(each.reasons))}"


def _missing_line(each: Missing, numbers: dict[str, str]) -> str:
    return f"[{numbers.get(each.source, '?')}] {printable(each.requirement)}: {printable(each.reason)}"


def _finding_line(each: Finding, numbers: dict[str, str]) -> str:
    mark = numbers.get(each.source, "?")
    return f"[{mark}] {each.kind.value}: {printable(each.subject)}: {printable(each.detail)}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    return [f"{title} ({len(found)})", *(f"  {line}" for line in found), ""] if found else []


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 3] + "..."
