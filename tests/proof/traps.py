"""Traps: places that a call comes by, at one of which its process ends.

A place is before or after a command of the turn or a call of the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from rehydrate.model.checkpoint import CheckpointRef, Commit, Head, RequestRow, Stored, TurnRow
from rehydrate.runtime.watch import CommandKind, Moment, Watched
from rehydrate.testing.driving import Crash
from tests.call.desk import World

#: What is said of one place: a kind of command or a method of the store, its number from 1, and before or after it.
Point = tuple[str, int, Moment]


class Trap:
    """Counts the places that a call comes by, and ends its process at one of them."""

    def __init__(self, point: Point | None = None) -> None:
        self.point = point
        self.passed: list[Point] = []
        self._counts: Counter[tuple[str, Moment]] = Counter()

    def by(self, what: str, moment: Moment) -> None:
        self._counts[what, moment] += 1
        point = what, self._counts[what, moment], moment
        self.passed.append(point)
        if point == self.point:
            raise Crash(str(point))

    def __call__(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        """Watch commands; after a start the handler goes on to where it first waits, and nobody hears of it."""
        try:
            self.by(kind, moment)
        except Crash as crash:
            if (kind, moment) != ("start", "after"):
                raise
            asyncio.get_running_loop().call_soon(turn.break_off, crash)


class Trapped:
    """A store whose process may end before or after any of its calls."""

    trap: Trap | None = None
    world: World
    #: How long the diary was as each commit began, and how many were written.
    marks: list[int]
    written = 0

    def _by(self, what: str, moment: Moment) -> None:
        if self.trap is not None:
            self.trap.by(f"store {what}", moment)

    async def commit(self, commit: Commit) -> None:
        self._by("commit", "before")
        if self.trap is not None:
            self.marks.append(len(self.world.diary))
        await super().commit(commit)
        self.written += self.trap is not None
        self._by("commit", "after")

    async def head(self, run_id: str) -> Head | None:
        self._by("head", "before")
        found = await super().head(run_id)
        self._by("head", "after")
        return found

    async def load(self, ref: CheckpointRef) -> Stored | None:
        self._by("load", "before")
        found = await super().load(ref)
        self._by("load", "after")
        return found

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        self._by("find_turn", "before")
        found = await super().find_turn(workflow, key)
        self._by("find_turn", "after")
        return found

    async def find_request(self, request_id: str) -> RequestRow | None:
        self._by("find_request", "before")
        found = await super().find_request(request_id)
        self._by("find_request", "after")
        return found
