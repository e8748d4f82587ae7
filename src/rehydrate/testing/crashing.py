"""Crash injection: the process of a run ends before or after any command, and the same call is made again.

A crash is what a kill is: nothing more is saved, told or cleaned up, and the lease is not given back. What was
committed is in the store. Must not ask a run to stop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rehydrate.runtime.watch import CommandKind, Moment, Watched

from .driving import Answers, Crash, Drive, Driven, StoreMaker, Workflows, built, fresh_store
from .facts import differences
from .outside import Outside


@dataclass(frozen=True)
class CrashPoint:
    """Where a process ends: `before` or `after` the command that is the `number`-th of its kind, from 1.

    After a `start` the handler has run up to where it first waits.
    """

    kind: CommandKind
    number: int
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} {self.kind} {self.number}"


class CrashError(AssertionError):
    """A run that was crashed and taken up again ended otherwise than the uninterrupted one; `differences` say where."""

    def __init__(self, found: Mapping[CrashPoint, list[str]], tried: int) -> None:
        self.differences = dict(found)
        lines = [f"{len(found)} of {tried} crashes change how the run ends:"]
        for point, texts in found.items():
            lines += [f"- {point}: {text}" for text in texts]
        lines.append(
            "What is kept beside the run is lost with its process: assert_resumable names it. What handlers do in"
        )
        lines.append("the world may be done again: see ctx.effect_key.")
        super().__init__("\n".join(lines))


class _Counting:
    """Notes every point that a run comes by."""

    def __init__(self) -> None:
        self.points: list[CrashPoint] = []
        self._counts: Counter[tuple[CommandKind, Moment]] = Counter()

    def __call__(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        del turn
        self._counts[kind, moment] += 1
        self.points.append(CrashPoint(kind, self._counts[kind, moment], moment))


class _Crashing:
    """Ends the process at one point, once."""

    def __init__(self, point: CrashPoint) -> None:
        self._point = point
        self._left = point.number

    def __call__(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        if (kind, moment) != (self._point.kind, self._point.moment):
            return
        self._left -= 1
        if self._left != 0:
            return
        crash = Crash(str(self._point))
        if (kind, moment) != ("start", "after"):
            raise crash
        # The handler's task takes its first step before that, and nobody hears of it after that.
        asyncio.get_running_loop().call_soon(turn.break_off, crash)


@dataclass(frozen=True)
class Crashes:
    """Crashes of the runs of one workflow with one message; each run has a store of its own from `make_store`.

    A new process finds what executors hold beside their runs as it was, as far as it can be found, but for what is in
    `keep`; given a function that builds the workflow, it has executors of its own.
    """

    workflow: Workflows
    message: object
    answers: Answers | None = None
    make_store: StoreMaker | None = None
    run_args: object = None
    resources: Mapping[str, object] | None = None
    keep: Sequence[object] = ()

    @cached_property
    def _outside(self) -> Outside:
        return Outside(built(self.workflow).definition, self.keep)

    async def points(self) -> list[CrashPoint]:
        """Return every point of the uninterrupted run."""
        return (await self._uninterrupted())[1]

    async def at(self, point: CrashPoint) -> Driven:
        """Drive a run whose process ends at a point, and go on with it as another process does."""
        crashing = _Crashing(point)
        return await self._drive(lambda _: crashing)

    async def check(self) -> int:
        """Crash at every point in turn and compare outputs, requests, statuses and state with the uninterrupted run.

        Returns the number of crashes. Raises `CrashError`.
        """
        expected, points = await self._uninterrupted()
        found: dict[CrashPoint, list[str]] = {}
        for point in points:
            wrong = differences(expected.results, (await self.at(point)).results)
            if wrong:
                found[point] = wrong
        if found:
            raise CrashError(found, len(points))
        return len(points)

    async def _uninterrupted(self) -> tuple[Driven, list[CrashPoint]]:
        counting = _Counting()
        driven = await self._drive(lambda _: counting)
        return driven, counting.points

    async def _drive(self, watching: Callable[[int], _Counting | _Crashing]) -> Driven:
        options = {"run_args": self.run_args, "resources": self.resources}
        async with fresh_store(self.make_store) as store:
            drive = Drive(
                self.workflow,
                store,
                watching=watching,
                restarted=self._outside.reset,
                is_new=lambda attempt: attempt > 0,
                options=options,
            )
            return await drive.run((self.message,), self.answers)
