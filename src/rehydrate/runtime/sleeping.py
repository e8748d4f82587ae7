"""Whether a run only waits for a time: for a timer of a function, or for the next attempt of a handler or a step.

It looks and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import inf

from rehydrate.ports import Clock

from .functional_pass import Pass
from .invocation import Invocation


def sleeps_until(
    running: Iterable[Invocation | Pass | None], waiting: Iterable[asyncio.TimerHandle], clock: Clock
) -> float | None:
    """Return when the first of what waits goes on, in seconds since the epoch; `None` where something runs, or where
    nothing waits for a time."""
    now, ahead = asyncio.get_running_loop().time(), clock.time()
    dues = [ahead + timer.when() - now for timer in waiting]
    for invocation in running:
        due = invocation.sleeps_until() if isinstance(invocation, Pass) else None
        if due is None:
            return None
        dues.append(due)
    first = min(dues, default=inf)
    return None if first == inf else first
