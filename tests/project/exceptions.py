"""The list of allowed exceptions and the judge: what is found must be listed, what is listed must be found.

Must not know how anything is found; the rules are given.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.project.budgets import Finding
from tests.project.source import Source, sources

LIST = Path(__file__).with_name("budget_exceptions.toml")

Rule = Callable[[Source], Iterable[Finding]]
Allowed = Mapping[str, str | Mapping[str, object]]


def allowed(rule: str) -> Allowed:
    """The listed exceptions of one rule, by place."""
    return tomllib.loads(LIST.read_text(encoding="utf-8")).get(rule, {})


def listed_rules() -> set[str]:
    """The names of the rules that have a table in the list."""
    return set(tomllib.loads(LIST.read_text(encoding="utf-8")))


def judged(
    folder: Path, rules: Mapping[str, Callable[[Source], Iterable[Finding]]], *, counted: set[str]
) -> dict[str, list[str]]:
    """What is wrong in the files under a folder, by rule; each file is read once for all rules."""
    found: dict[str, list[Finding]] = {rule: [] for rule in rules}
    for source in sources(folder):
        for rule, find in rules.items():
            found[rule] += find(source)
    wrong = {rule: complaints(there, allowed(rule), counted=rule in counted) for rule, there in found.items()}
    return {rule: lines for rule, lines in wrong.items() if lines}


def complaints(found: Iterable[Finding], listed: Allowed, *, counted: bool) -> list[str]:
    """What is wrong, one line each: not listed, over the listed limit, listed without need or without a reason."""
    by_place: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        by_place[finding.where].append(finding)
    wrong = [f"{place}: listed, but no longer needed; remove the line" for place in listed if place not in by_place]
    for place, findings in by_place.items():
        worst = max(findings, key=lambda finding: finding.amount)
        problem = _problem(worst, listed.get(place), counted=counted)
        if problem:
            wrong.append(f"{place} (line {worst.line}): {problem}")
    return sorted(wrong)


def _problem(finding: Finding, entry: str | Mapping[str, object] | None, *, counted: bool) -> str | None:
    if entry is None:
        return f"{finding.amount} is over the limit" if counted else "not allowed here"
    reason = entry if isinstance(entry, str) else entry.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        return "listed without a reason"
    if not counted:
        return None
    limit = None if isinstance(entry, str) else entry.get("limit")
    if not isinstance(limit, int):
        return "listed without a limit"
    if finding.amount > limit:
        return f"{finding.amount} is over its own limit of {limit}"
    return None
