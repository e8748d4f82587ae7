"""`python -m benchmarks.stores`: what a save and a load cost on a store, each figure beside its bound.

It never fails because something is slow or large; it says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import store_work
from benchmarks.disk import default_folder, file_system
from benchmarks.places import Places, open_places
from benchmarks.store_work import Row, Rows

#: What is measured, by name; each gets the places and the options.
LINES: dict[str, Callable[[Places, argparse.Namespace], Rows]] = {
    "growth": lambda places, options: store_work.growth(places, options.supersteps),
    "edits": lambda places, options: store_work.edits(places, 1),
    "constant": lambda places, options: store_work.constant(places, 200),
    "head": lambda places, options: store_work.head(places, options.supersteps),
    "pipeline": lambda places, options: store_work.pipeline(places, 300),
    "restore": lambda places, options: store_work.restore(places, 0),
    "restore-read": lambda places, options: store_work.restore(places, 10),
    "runs": lambda places, options: store_work.runs(places, 1_000),
    "requests": lambda places, options: store_work.requests(places, options.requests),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    chosen = {name: line for name, line in LINES.items() if not options.only or name in options.only}
    with (
        tempfile.TemporaryDirectory(prefix="rehydrate-bench-", dir=options.dir or default_folder()) as folder,
        open_places(options.store, Path(folder), options.url) as places,
    ):
        if not options.json:
            print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {options.store}", end=", ")
            print(f"file system {file_system(Path(folder))}\n")
        rows = asyncio.run(_measured(chosen, places, options))
    if options.json:
        print(json.dumps([{**asdict(row), "ok": row.ok} for row in rows], indent=2))


async def _measured(
    chosen: dict[str, Callable[[Places, argparse.Namespace], Rows]], places: Places, options: argparse.Namespace
) -> list[Row]:
    rows: list[Row] = []
    for line in chosen.values():
        async for row in line(places, options):
            rows.append(row)
            if not options.json:
                print(_shown(row), flush=True)
    return rows


def _shown(row: Row) -> str:
    bound = ""
    if row.bound is not None:
        sign = ">=" if row.at_least else "<="
        bound = f"{sign} {row.bound:,g} {row.unit}".rstrip() + ("  ok" if row.ok else "  MISSED")
    value = f"{row.value:,.0f}" if abs(row.value) >= 100 else f"{row.value:.2f}"
    return f"{row.title:<62}{value:>9} {row.unit:<7}{bound:<20}  {row.note}".rstrip()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description="Measure a store.")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--url", help="a PostgreSQL server that may be given databases; else one is started")
    parser.add_argument("--only", action="append", choices=tuple(LINES), help="a line by name; may be repeated")
    parser.add_argument("--supersteps", type=int, default=10_000, help="of the longest run (default 10,000)")
    parser.add_argument("--requests", type=int, default=1_000_000, help="open requests (default a million)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--dir", type=Path, metavar="PATH", help="where the stores are made; a folder on a disk")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
