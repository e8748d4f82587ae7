"""The check of a finished audit against the environments themselves and against the journal.

Looks at the disk anew, through `importlib.metadata` and not through the audit's own reader, so that it cannot repeat a
mistake of the audit. It repairs nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata as installed
from pathlib import Path

from rehydrate.demo.environment import RUNNING, FindingKind, normalised_name, site_directories
from rehydrate.demo.journal import Entry, Happened
from rehydrate.demo.licences import DecidedBy
from rehydrate.demo.report import AuditReport
from rehydrate.demo.requirements import read_requirements

__all__ = ["Checked", "check", "ran_again"]

_BROKEN = frozenset({FindingKind.NO_NAME, FindingKind.NO_METADATA, FindingKind.UNREADABLE})

Installed = tuple[str, str]
"""Normalised name and version."""


@dataclass(frozen=True)
class Checked:
    """One thing that was checked; `wrong` lists what contradicts it."""

    claim: str
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        if not self.wrong:
            return f"ok    {self.claim}"
        return f"WRONG {self.claim}: not so for {', '.join(self.wrong)}"


def check(report: AuditReport, installed_in: str, journal: Iterable[Entry]) -> tuple[Checked, ...]:
    """Compare a complete report with what is on the disk now, and with the journal of all its processes."""
    entries = tuple(journal)
    return (*_against_disk(report, installed_in), *_against_itself(report), *_against_journal(report, entries))


def ran_again(journal: Iterable[Entry]) -> tuple[str, ...]:
    """Return what was classified more than once: a kill came before the commit, which is what may happen."""
    counts = Counter(entry.key for entry in journal if entry.happened is Happened.CLASSIFIED)
    return tuple(sorted(key for key, count in counts.items() if count > 1))


def _against_disk(report: AuditReport, installed_in: str) -> Iterator[Checked]:
    rows = {(normalised_name(row.name), row.version) for row in report.rows}
    files = [source for source in report.sources if source != RUNNING and Path(source).is_file()]
    expected: set[Installed] = set()
    nameless = 0
    for source in report.sources:
        if source not in files:
            found, unnamed = _installed(source)
            expected |= found
            nameless += unnamed
    required = {normalised_name(each.name) for file in files for each in read_requirements(Path(file))[0]}
    from_files = {each for each in _installed(installed_in)[0] if each[0] in required} if files else set[Installed]()
    yield Checked(f"none of {len(expected)} installed distributions is lost", _names(expected - rows))
    yield Checked("nothing is in the report that is not installed", _names(rows - expected - from_files))
    if files:
        accounted = {normalised_name(each.name) for each in report.missing} | {name for name, _ in rows}
        yield Checked(f"none of {len(required)} required names is lost", tuple(sorted(required - accounted)))
    if nameless:
        broken = sum(each.kind in _BROKEN for each in report.findings)
        lost = (f"{nameless - broken} of them",) if broken < nameless else ()
        yield Checked(f"none of {nameless} metadata directories without a name is lost", lost)


def _against_itself(report: AuditReport) -> Iterator[Checked]:
    twice = tuple(sorted(key for key, count in Counter(row.key for row in report.rows).items() if count > 1))
    yield Checked("no distribution is in the report twice", twice)
    yield Checked("no question is open", tuple(sorted(each.name for each in report.waiting)))


def _against_journal(report: AuditReport, entries: tuple[Entry, ...]) -> Iterator[Checked]:
    if not entries:
        return
    committed: set[str] = set()
    again: set[str] = set()
    requests: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        if entry.happened is Happened.COMMITTED:
            committed.add(entry.key)
        elif entry.happened is Happened.CLASSIFIED and entry.key in committed:
            again.add(entry.key)
        elif entry.happened is Happened.ASKED:
            requests[entry.key].add(entry.request_id)
    yield Checked(f"none of {len(committed)} committed classifications ran again", tuple(sorted(again)))
    asked_twice = tuple(sorted(key for key, ids in requests.items() if len(ids) > 1))
    yield Checked(f"none of {len(requests)} questions was asked twice", asked_twice)
    by_person = {row.key for row in report.rows if row.decided_by is DecidedBy.PERSON}
    yield Checked("who was asked about is who a person decided", tuple(sorted(by_person ^ set(requests))))


def _installed(source: str) -> tuple[set[Installed], int]:
    found: set[Installed] = set()
    unnamed = 0
    paths = [str(directory) for directory in site_directories(source)]
    for distribution in installed.distributions(path=paths):
        name, version = _name_and_version(distribution)
        if name is None:
            unnamed += 1
        else:
            found.add((normalised_name(name), version))
    return found, unnamed


def _name_and_version(distribution: installed.Distribution) -> tuple[str | None, str]:
    try:
        headers = distribution.metadata
        names, versions = headers.get_all("Name") or [], headers.get_all("Version") or []
    except (OSError, ValueError):
        return None, ""
    return next(iter(names), None), next(iter(versions), "")


def _names(found: Iterable[Installed]) -> tuple[str, ...]:
    return tuple(f"{name} {version}".strip() for name, version in sorted(found))
