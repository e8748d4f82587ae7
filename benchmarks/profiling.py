"""One work under cProfile: where its time goes, by thread.

Times under a profile are several times longer than without; only their proportions say something.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import threading
from pathlib import Path
from types import FrameType

from benchmarks.measure import Stopwatch, Work, once

_TOP = 25
#: From 3.12 on one profile at a time sees the events of all threads.
_PER_THREAD = sys.version_info < (3, 12)


class ProfilingStopwatch(Stopwatch):
    """A stopwatch that profiles what is inside the clock, and the threads that work for it."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = cProfile.Profile()
        self._threads: list[tuple[threading.Thread, cProfile.Profile]] = []
        #: Kept, because a profile that is collected while it is enabled ends the profile of the collecting thread.
        self._before: list[tuple[threading.Thread, cProfile.Profile]] = []

    def start(self) -> None:
        # Threads that end before the clock starts worked for what was prepared; a closing one needs a moment more.
        for thread, _ in self._threads:
            thread.join(0.1)
        self._before = self._threads
        self._threads = [(thread, profile) for thread, profile in self._before if thread.is_alive()]
        super().start()
        self._loop.enable()

    def stop(self) -> None:
        self._loop.disable()
        super().stop()

    def watch_thread(self, frame: FrameType, event: str, argument: object) -> None:
        """The hook for new threads: it replaces itself with a profile at the thread's first call."""
        profile = cProfile.Profile()
        self._threads.append((threading.current_thread(), profile))
        profile.enable()

    def profiles(self) -> list[tuple[str, cProfile.Profile]]:
        """The profiles with the names of their threads."""
        return [("the loop", self._loop), *((thread.name, profile) for thread, profile in self._threads)]


def profile(work: Work, folder: Path) -> str:
    """Do a work once to warm up and once under cProfile; return the top of each thread by own time."""
    once(work, folder)
    watch = ProfilingStopwatch()
    if _PER_THREAD:
        threading.setprofile(watch.watch_thread)
    try:
        once(work, folder, watch)
    finally:
        threading.setprofile(None)
    return "\n".join(f"--- {name}\n{_top(found)}" for name, found in watch.profiles())


def _top(profile: cProfile.Profile) -> str:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(_TOP)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip())
