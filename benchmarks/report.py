"""What is printed: the table for people, the same as JSON for programs.

Judges by medians; measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.lines import Floor, Line
from benchmarks.measure import Times

_WIDTHS = (50, 9, 9, 9, 8, 8)


@dataclass(frozen=True)
class Measured:
    """A line with its times and those of its floors, in their order."""

    line: Line
    times: Times
    floors: tuple[Times, ...]
    extra: str | None = None


def heading() -> str:
    """The column titles."""
    return _row("", "median", "min", "CPU", "x floor", "(min)", "bound")


def rows(measured: Measured) -> Iterator[str]:
    """The lines of the table for one measurement."""
    line = measured.line
    yield _row(f"{line.number:<4}{line.title}", *_milliseconds(measured.times), "", "", _seconds_verdict(measured))
    for floor, times in zip(line.floors, measured.floors, strict=True):
        median, minimum = _ratios(measured.times, times)
        bound = _times_verdict(line, floor, median, minimum)
        yield _row(f"      {floor.name}", *_milliseconds(times), f"{median:.2f}", f"({minimum:.2f})", bound)
    if measured.extra:
        yield f"      {measured.extra}"


def as_json(measured: Measured) -> dict[str, object]:
    """One measurement as plain data; times are in seconds."""
    line = measured.line
    floors: list[dict[str, object]] = []
    for floor, times in zip(line.floors, measured.floors, strict=True):
        median, minimum = _ratios(measured.times, times)
        judged = line.times if floor.judged else None
        ok = None if judged is None else median <= judged
        floors.append(
            {"name": floor.name, **_plain(times), "ratio": median, "ratio_min": minimum, "bound": judged, "ok": ok}
        )
    return {
        "number": line.number,
        "name": line.name,
        "title": line.title,
        **_plain(measured.times),
        "bound_seconds": line.seconds,
        "ok": None if line.seconds is None else measured.times.median <= line.seconds,
        "floors": floors,
        "extra": measured.extra,
    }


def _ratios(times: Times, floor: Times) -> tuple[float, float]:
    return times.median / floor.median, times.minimum / floor.minimum


def _seconds_verdict(measured: Measured) -> str:
    bound = measured.line.seconds
    if bound is None:
        return ""
    verdict = _verdict(measured.times.median, measured.times.minimum, bound)
    return f"<= {bound * 1000:.0f} ms  {verdict}"


def _times_verdict(line: Line, floor: Floor, median: float, minimum: float) -> str:
    if line.times is None:
        return ""
    shown = f"<= {line.times:.1f} x  {_verdict(median, minimum, line.times)}"
    return shown if floor.judged else f"({shown})"


def _verdict(median: float, minimum: float, bound: float) -> str:
    if median <= bound:
        return "ok"
    return "missed (minimum ok)" if minimum <= bound else "MISSED"


def _milliseconds(times: Times) -> tuple[str, str, str]:
    return f"{times.median * 1000:.2f}", f"{times.minimum * 1000:.2f}", f"{times.cpu_median * 1000:.2f}"


def _plain(times: Times) -> dict[str, object]:
    return {
        "median": times.median,
        "min": times.minimum,
        "cpu_median": times.cpu_median,
        "wall": times.wall,
        "cpu": times.cpu,
    }


def _row(label: str, *cells: str) -> str:
    width, *widths = _WIDTHS
    *numbers, last = cells
    shown = "".join(f"{cell:>{size}}" for cell, size in zip(numbers, widths, strict=True))
    return f"{label:<{width}}{shown}  {last}".rstrip()
