"""`python -m benchmarks.growth`: how the cost of a run grows with steps, state, width, depth and the number of runs.

Each size is measured in turn with bare SQLite, a hop per step. It never fails because something is slow; it says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.axes import AXES, Axis
from benchmarks.disk import default_folder, file_system
from benchmarks.floors import sqlite_with_hop
from benchmarks.measure import measure

#: What the exponent of an axis may be above the one that it should have; at small sizes fixed costs keep it below.
TOLERANCE: Final = 0.15


@dataclass(frozen=True)
class Point:
    """One size of an axis: medians of the wall time of the work and of its floor, in seconds, and CPU time."""

    size: int
    seconds: float
    cpu: float
    floor: float

    @property
    def ratio(self) -> float:
        """How many times as long as bare SQLite."""
        return self.seconds / self.floor


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    chosen = [axis for axis in AXES if not options.only or axis.name in options.only]
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="rehydrate-bench-", dir=options.dir or default_folder()) as name:
        folder = Path(name)
        if not options.json:
            print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, load {_load()}", end=", ")
            print(f"file system {file_system(folder)}; medians of {options.repeat}")
        for axis in chosen:
            sizes = [size for size in axis.sizes if options.largest is None or size <= options.largest]
            points = [_measured(axis, size, folder, options.repeat) for size in sizes]
            found[axis.name] = {"points": [asdict(point) for point in points], "exponent": exponent(points)}
            if not options.json:
                print("\n" + "\n".join(shown(axis, points)), flush=True)
    print(json.dumps(found, indent=2) if options.json else f"\nload {_load()} at the end")


def _measured(axis: Axis, size: int, folder: Path, repeat: int) -> Point:
    times, floor = measure([axis.work(size), sqlite_with_hop(axis.floor(size))], folder, repeat)
    return Point(size, times.median, times.cpu_median, floor.median)


def exponent(points: Sequence[Point]) -> float | None:
    """How the CPU time grows from the last size but one to the last: 1 is linear; `None` for fewer than two sizes."""
    if len(points) < 2:
        return None
    before, last = points[-2:]
    return math.log(last.cpu / before.cpu) / math.log(last.size / before.size)


def shown(axis: Axis, points: Sequence[Point]) -> list[str]:
    """The table of an axis, in Markdown, as the page on benchmarks has it."""
    lines = [
        f"{axis.name}: {axis.title}",
        "",
        f"| {axis.unit} | ms | µs of CPU {'a save' if axis.saves else 'each'} | x bare SQLite |",
    ]
    lines.append("|---:|---:|---:|---:|")
    for point in points:
        each = point.cpu / (axis.saves or point.size) * 1e6
        lines.append(f"| {point.size:,} | {point.seconds * 1000:,.1f} | {each:,.1f} | {point.ratio:.1f} |")
    grown = exponent(points)
    if grown is not None:
        verdict = "ok" if grown <= axis.exponent + TOLERANCE else "MISSED"
        lines += ["", f"CPU time grows with exponent {grown:.2f} (<= {axis.exponent + TOLERANCE:.2f} {verdict})"]
    return lines


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="Measure how the cost grows.")
    names = [axis.name for axis in AXES]
    parser.add_argument("--only", action="append", choices=names, help="an axis by name; may be repeated")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions that count (default 3)")
    parser.add_argument("--largest", type=int, metavar="N", help="leave out sizes above this")
    parser.add_argument("--json", action="store_true", help="print JSON, times in seconds")
    parser.add_argument("--dir", type=Path, metavar="PATH", help="where the stores are made; a folder on a disk")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
