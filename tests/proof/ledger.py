"""The ledger of the proofs: which promise each test is for, how often something was tried, and what was found.

    @pytest.mark.promise("P3", "rounds in which 8 processes resume one checkpoint")
    def test_...(tried): ...; tried(1000)

    @pytest.mark.notices("P3")
    def test_a_store_without_compare_and_set_is_noticed(): ...

A test that does not say how often has tried once. Works over several workers; must not change what a test does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pytest

#: Each promise of the design's section 10, and what is proved beside them, in the words of the table.
PROMISES: Final[Mapping[str, str]] = {
    "P1": "from any checkpoint, at any depth, a fresh process goes on the same",
    "P2": "an acknowledged checkpoint survives a kill; any other is all or nothing",
    "P3": "of many processes that resume one checkpoint, one runs",
    "P4": "restore, answers and new input are one transaction",
    "P5": "a turn delivered twice with one key runs once",
    "P6": "answered requests are never asked again, in any order",
    "P7": "a new turn replays nothing and has fresh counters",
    "P8": "what failed leaves no trace; no effect shows before its barrier",
    "P9": "damage is reported, never skipped",
    "P10": "decoding executes nothing and stays bounded",
    "P11": "a save costs what changed",
    "P12": "no run sees another",
    "simulation": "one seed, one world: crashes, delays, duplicates, clock jumps",
    "drain": "a drained process hands all its runs on within its grace time",
}
Tried: TypeAlias = Callable[[int], None]
_WIDTH: Final = 62


@dataclass
class Row:
    """What was tried in one way, and how long that took. `failed` are the tests that found something."""

    times: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)


class Ledger:
    """The pytest plugin: gathers what the tests say, in this process or in workers, and prints the table at the end."""

    def __init__(self, *, prints: bool) -> None:
        self._prints = prints
        self._tried: dict[tuple[str, str], Row] = {}
        self._noticed: dict[str, Row] = {}
        self._others = Row()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Send along with the report what the test is marked with."""
        item.user_properties += marked(item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test when its call is over, or its set-up has failed."""
        if report.when == "call" or not report.passed:
            self.count(report.nodeid, report.user_properties, report.duration, failed=report.failed)

    def count(self, test: str, properties: Iterable[tuple[str, Any]], seconds: float = 0.0, *, failed: bool) -> None:
        """Enter one test. What is for no promise is a wider form of a test that is."""
        said = list(properties)
        times = sum(value for name, value in said if name == "tried") or 1
        rows = [self._row(name, value) for name, value in said if name in {"promise", "notices"}]
        for row in rows or [self._others]:
            row.times += times
            row.seconds += seconds / max(len(rows), 1)
            row.failed += [test] if failed else []

    def _row(self, name: str, value: tuple[str, str]) -> Row:
        promise, what = value
        if name == "notices":
            return self._noticed.setdefault(promise, Row())
        return self._tried.setdefault((promise, what), Row())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table where the long forms were asked for."""
        if self._prints and (self._tried or self._noticed):
            terminalreporter.section("promises")
            for line in self.lines():
                terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """The table: a line for each promise, and below it one for each way to try it."""
        lines = [f"{'promise, and what was tried':{_WIDTH}} {'times':>9} {'seconds':>8}  found"]
        for promise, text in PROMISES.items():
            ways = {what: row for (name, what), row in self._tried.items() if name == promise}
            noticed = self._noticed.get(promise)
            if not ways and noticed is None:
                continue
            lines.append(f"{promise}: {text}")
            lines += [_line(what, row, found(row)) for what, row in sorted(ways.items())]
            if noticed is not None:
                lines.append(_line("deliberately broken variants", noticed, unnoticed(noticed)))
        if self._others.times:
            lines += ["beside the promises", _line("wider forms of the tests", self._others, found(self._others))]
        return lines


def found(row: Row) -> str:
    """What a way of trying has found."""
    return "nothing" if not row.failed else f"see {', '.join(row.failed)}"


def unnoticed(row: Row) -> str:
    """Whether a harness can fail."""
    return "all noticed" if not row.failed else f"not noticed: {', '.join(row.failed)}"


def _line(what: str, row: Row, text: str) -> str:
    return f"  {what:{_WIDTH - 2}} {row.times:>9,} {row.seconds:>8,.0f}  {text}"


def marked(item: pytest.Item) -> list[tuple[str, object]]:
    """Return what a test is marked with. Raises `ValueError` for a promise that is none."""
    said: list[tuple[str, object]] = []
    for name in ("promise", "notices"):
        for mark in item.iter_markers(name):
            promise, what = (*mark.args, "")[:2]
            if promise not in PROMISES:
                raise ValueError(f"{item.nodeid}: there is no promise {promise!r}")
            said.append((name, [promise, what]))
    return said
