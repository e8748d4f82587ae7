"""How a line is measured: a clock that the work itself starts and stops, and repetitions that take turns.

It must not know what the work does, nor judge what it took.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


class Stopwatch:
    """Wall and CPU time of the part of a work that counts; CPU time is that of all threads of the process."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.cpu = 0.0
        self._started = (0.0, 0.0)

    def start(self) -> None:
        """Begin to count."""
        self._started = (time.perf_counter(), time.process_time())

    def stop(self) -> None:
        """End what `start` began."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.wall += wall - self._started[0]
        self.cpu += cpu - self._started[1]

    def __enter__(self) -> Stopwatch:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


#: Gets an empty folder and a stopwatch; what it prepares and cleans up stands outside the clock.
Work: TypeAlias = Callable[[Path, Stopwatch], Awaitable[None]]


@dataclass(frozen=True)
class Times:
    """All repetitions of one work, in seconds."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def minimum(self) -> float:
        return min(self.wall)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu)


def measure(works: Sequence[Work], folder: Path, repeat: int) -> list[Times]:
    """Do all works in turn, `repeat` times after one round that does not count, each in a folder of its own.

    Taking turns makes a slow moment of the machine hit a work and its floors alike.
    """
    rounds = [[once(work, folder) for work in works] for _ in range(repeat + 1)][1:]
    return [
        Times(tuple(watch.wall for watch in watches), tuple(watch.cpu for watch in watches))
        for watches in zip(*rounds, strict=True)
    ]


def once(work: Work, folder: Path, watch: Stopwatch | None = None) -> Stopwatch:
    """Do a work once, on an event loop and in an empty folder of its own."""
    watch = watch or Stopwatch()
    gc.collect()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        asyncio.run(_awaited(work, Path(place), watch))
    return watch


async def _awaited(work: Work, place: Path, watch: Stopwatch) -> None:
    await work(place, watch)
