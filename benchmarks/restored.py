"""A fresh process that restores 10 MB, or reads and decodes the same bytes without the library, and prints the seconds.

Imports are made before the clock starts, in both cases.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks import workflows
from benchmarks.places import Place, place_of
from rehydrate.model.events import OutputYielded
from rehydrate.runtime.checkpoint import restored as _warm  # noqa: F401  (what a server has imported long before)

PART = 64 * 1024


def bare(place: Path) -> float:
    """Read 10 MB in rows of 64 KB and decode them."""
    path = place.with_suffix(".bare")
    if not path.exists():
        _write_bare(path)
    started = time.perf_counter()
    connection = sqlite3.connect(path)
    for key in range(workflows.BIG_KEYS):
        rows = connection.execute("SELECT data FROM part WHERE key = ? ORDER BY no", (key,))
        value = msgspec.msgpack.decode(b"".join(data for (data,) in rows))
        assert len(value) == workflows.KB
    return time.perf_counter() - started


def _write_bare(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE part (key INTEGER, no INTEGER, data BLOB, PRIMARY KEY (key, no))")
    for key, value in enumerate(workflows.values_of_a_megabyte()):
        data = msgspec.msgpack.encode(value)
        rows = [(key, no, data[no : no + PART]) for no in range(0, len(data), PART)]
        connection.executemany("INSERT INTO part VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


async def ours(place: Place, run_id: str, keys: int) -> float:
    """Restore with a new message, up to the first output."""
    flow = workflows.alone(workflows.Recall([]))
    seconds = 0.0
    async with place.store() as store:
        started = time.perf_counter()
        stream = flow.run(keys, run_id=run_id, checkpoint="latest", checkpoint_storage=store, stream=True)
        async for event in stream:
            if isinstance(event, OutputYielded):
                seconds = time.perf_counter() - started
                break
        await stream.result()
    return seconds


def main() -> None:
    """Do what the command line says."""
    what, kind, name, run_id, keys = json.loads(sys.argv[1])
    if what == "bare":
        seconds = bare(Path(name) if kind == "sqlite" else Path(tempfile.gettempdir(), "rehydrate-bench"))
    else:
        seconds = asyncio.run(ours(place_of(kind, name), run_id, keys))
    sys.stdout.write(str(seconds))


if __name__ == "__main__":
    main()
