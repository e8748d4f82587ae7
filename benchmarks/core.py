"""The script: measures the lines that are asked for and prints them as a table, as JSON or as a profile.

It never fails because something is slow; it says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.disk import default_folder, file_system
from benchmarks.lines import LINES, Line
from benchmarks.measure import measure
from benchmarks.profiling import profile
from benchmarks.report import Measured, as_json, heading, rows


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    lines: tuple[Line, ...]
    repeat: int
    folder: Path
    as_json: bool
    profile: bool


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="rehydrate-bench-", dir=options.folder) as name:
        folder = Path(name)
        if options.profile:
            _print_profiles(options, folder)
        elif options.as_json:
            measured = [as_json(_measured(line, folder, options.repeat)) for line in options.lines]
            print(json.dumps({"machine": _machine(folder), "repeat": options.repeat, "lines": measured}, indent=2))
        else:
            _print_table(options, folder)


def _print_table(options: Options, folder: Path) -> None:
    print(", ".join(f"{name} {value}" for name, value in _machine(folder).items()))
    print(f"milliseconds; {options.repeat} repetitions after one that does not count; CPU is of all threads, median")
    print()
    print(heading())
    for line in options.lines:
        for row in rows(_measured(line, folder, options.repeat)):
            print(row, flush=True)
    print(f"\nload {_load()} at the end; above the number of CPUs, wall times and verdicts say little: read CPU")


def _print_profiles(options: Options, folder: Path) -> None:
    for line in options.lines:
        print(f"=== {line.number} {line.name}: {line.title}")
        print(profile(line.work, folder), flush=True)


def _measured(line: Line, folder: Path, repeat: int) -> Measured:
    times, *floors = measure([line.work, *(floor.work for floor in line.floors)], folder, repeat)
    extra = asyncio.run(_awaited(line, folder)) if line.extra else None
    return Measured(line, times, tuple(floors), extra)


async def _awaited(line: Line, folder: Path) -> str | None:
    return await line.extra(folder) if line.extra else None


def _machine(folder: Path) -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "CPUs": str(os.cpu_count()),
        "load": _load(),
        "file system": file_system(folder),
    }


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the core beside its floors.")
    parser.add_argument("--only", action="append", metavar="NAME", help="a line by name or number; may be repeated")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="repetitions that count (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--profile", metavar="NAME", help="profile one line instead of measuring")
    parser.add_argument("--dir", type=Path, metavar="PATH", help="where the stores are made; a folder on a disk")
    given = parser.parse_args(arguments)
    if given.repeat < 1:
        parser.error("--repeat must be at least 1")
    names = [given.profile] if given.profile else given.only
    try:
        lines = _chosen(names)
    except ValueError as error:
        parser.error(str(error))
    return Options(lines, given.repeat, given.dir or default_folder(), given.json, bool(given.profile))


def _chosen(names: Sequence[str] | None) -> tuple[Line, ...]:
    if not names:
        return LINES
    wanted = {name.lower() for name in names}
    unknown = wanted - {line.name for line in LINES} - {line.number.lower() for line in LINES}
    if unknown:
        known = ", ".join(f"{line.number} {line.name}" for line in LINES)
        raise ValueError(f"no line is called {', '.join(sorted(unknown))}; there are {known}")
    return tuple(line for line in LINES if line.name in wanted or line.number.lower() in wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
