"""Moments at which a run is stopped, drawn from a seed, and what waits for them.

A moment is a command of the run (the n-th of its kind), and some turns of the event loop or some seconds after it. Must
not know what is done then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Literal

import msgspec

from rehydrate import Workflow
from rehydrate.runtime.watch import Watch, Watched
from rehydrate.testing.virtual_time import VirtualLoop

#: How a run is stopped: by a drain; by a cancelled `await run(...)` or `await stream.result()`; by `stream.cancel()`;
#: by leaving `async with`; by letting go of the stream; `both`: by a drain, and cancelled meanwhile.
Way = Literal["drain", "both", "await", "result", "cancel", "leave", "drop"]
DRAINS: tuple[Way, ...] = ("drain", "drain", "drain", "both")
CANCELS: tuple[Way, ...] = ("await", "result", "cancel", "leave", "drop")
#: The command that each call begins with; the others are those of `Watch`.
OPENING = "opening before"


class Stop(msgspec.Struct, frozen=True):
    """One moment, counted from the one before, and how the run is stopped there.

    `lag`: so many turns of the event loop later. `seconds` later, and `grace`: where the run is in virtual time.
    """

    way: Way
    command: str
    number: int
    lag: int = 0
    seconds: float = 0.0
    grace: float = 0.0


class Ticks:
    """Counts the commands of a run."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, kind: str, moment: str, turn: Watched) -> None:
        del turn
        self.counts[f"{kind} {moment}"] += 1


def draw_stops(random: Random, ways: tuple[Way, ...], counts: Counter[str]) -> list[Stop]:
    """Draw where a run that gives these commands is stopped: the first place is anywhere in it."""
    stops: list[Stop] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        command = random.choice(sorted(counts))
        reach = counts[command] if not stops else 1 + counts[command] // 3
        stops.append(
            Stop(
                way=random.choice(ways),
                command=command,
                number=1 + random.randrange(reach),
                lag=random.choice((0, 0, 0, 1, 2, 3, 5, 8, 13)),
                seconds=random.choice((0.0, 0.0, 0.01, 1.0, 2.5)),
                grace=random.choice((0.0, 0.02, 1.0, 3.0, 30.0)),
            )
        )
    return stops


class Trigger:
    """Waits for one moment over any number of calls, and then does, once, what the call that runs has said."""

    def __init__(self, stop: Stop | None) -> None:
        self.stop = stop
        self._left = stop.number if stop is not None else 0
        self._act: Callable[[], Awaitable[object]] | None = None
        self._doing: asyncio.Task[None] | None = None

    @property
    def fired(self) -> bool:
        """Whether the moment has come."""
        return self._doing is not None

    def arm(self, act: Callable[[], Awaitable[object]]) -> None:
        """Say what to do for the call that now begins."""
        self._act = act
        self._count(OPENING)

    def __call__(self, kind: str, moment: str, turn: Watched) -> None:
        del turn
        self._count(f"{kind} {moment}")

    def _count(self, command: str) -> None:
        if self.stop is None or self.stop.command != command or self.fired or self._act is None:
            return  # without an act, it is what a stream that was let go of still does
        self._left -= 1
        if self._left == 0:
            self._doing = asyncio.get_running_loop().create_task(self._later(self.stop))

    async def _later(self, stop: Stop) -> None:
        for _ in range(stop.lag):
            await asyncio.sleep(0)
        await pause(stop.seconds)
        assert self._act is not None
        await self._act()

    async def done(self) -> None:
        """Wait until it has been done, where the moment has come."""
        if self._doing is not None:
            await self._doing


async def pause(seconds: float) -> None:
    """Let virtual time pass; in real time none does."""
    loop = asyncio.get_running_loop()
    if seconds and isinstance(loop, VirtualLoop):
        await asyncio.wait([loop.create_future()], timeout=seconds)


def watched(workflow: Workflow, watch: Watch) -> Workflow:
    """Let the commands of a workflow's runs be told."""
    workflow._program = replace(workflow.program, watch=watch)
    return workflow
